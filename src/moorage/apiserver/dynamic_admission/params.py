"""Finds the parameters of a policy to which a binding refers."""

from __future__ import annotations

from typing import Any

from moorage.api.admissionregistration import DENY, ParamKind, ParamRef
from moorage.api.labels import SelectorFault, read_selector
from moorage.apiserver.dynamic_admission.attributes import Attributes, tree_of
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.verbs.list import ListOptions, ReadingInTurn, list_entries
from moorage.apiserver.verbs.selectors import read_selection

PARAMS_MAX = 1000  # objects that one selector may find; with more, the request is rejected


class ConfigurationError(Exception):
    """A policy or its binding cannot be evaluated."""


def find_param_resource(resources: Resources, kind: ParamKind) -> Resource | None:
    """Return the resource of a kind, or None if the server does not serve it."""
    group, _, version = kind.api_version.rpartition("/")
    for resource in resources:
        found = resource.kinds.get(version)
        if resource.group == group and found is not None and found.name == kind.kind:
            return resource
    return None


async def collect_params(
    attributes: Attributes, kind: ParamKind | None, ref: ParamRef | None
) -> list[Any]:
    """Return the parameters of a binding as trees; a single None if it has no parameters.

    An empty list means that the binding does not apply. Raises ConfigurationError.
    """
    if kind is None:
        return [None]
    resource = find_param_resource(attributes.server.resources, kind)
    if resource is None:
        group, _, version = kind.api_version.rpartition("/")
        shown = f"{group}/{version}, Kind={kind.kind}"
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")
    if ref is None:
        return [None]
    namespace = _namespace_of(resource, ref, attributes.namespace)
    if ref.name:
        found = await attributes.server.registry.find(resource, namespace, ref.name)
        params = [] if found is None else [found]
    else:
        params = await _selected(attributes, resource, namespace, ref)
    if not params and ref.parameter_not_found_action == DENY:
        raise ConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return [tree_of(each, kind.api_version) for each in params]


def _namespace_of(resource: Resource, ref: ParamRef, namespace: str) -> str:
    if not resource.namespaced:
        if ref.namespace:
            raise ConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        return ""
    if not (ref.namespace or namespace):
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return ref.namespace or namespace


async def _selected(
    attributes: Attributes, resource: Resource, namespace: str, ref: ParamRef
) -> list[Any]:
    selector = read_selector(ref.selector)
    if isinstance(selector, SelectorFault):
        raise ConfigurationError(selector.text)
    server = attributes.server
    version = resource.hub_version.rpartition("/")[2]
    try:
        page = await list_entries(
            server.registry,
            resource,
            namespace,
            read_selection("", "", resource, version),
            ListOptions(),
            ReadingInTurn(server.workers, attributes.user.name),
        )
    except StatusError as error:
        raise ConfigurationError(error.status.message) from None
    values = server.registry.readable(resource, page.entries).values
    found = [value for value in values if selector.matches(value.metadata.labels)]
    if len(found) > PARAMS_MAX:
        raise ConfigurationError(f"paramRef.selector selects more than {PARAMS_MAX} objects")
    return found
