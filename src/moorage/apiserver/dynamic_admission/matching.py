"""Which requests a policy, a binding or a webhook matches.

    namespace selector ─ object selector ─ excluded rules ─ rules ─ rules in equivalent versions

With the match policy Equivalent, a rule also matches requests for the same objects in other
versions; the policy or webhook then sees the request in the version of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from moorage.api.admissionregistration import EXACT, AnyRule, AnyWebhook, MatchResources
from moorage.api.labels import NOTHING, Selector, SelectorFault, read_selector
from moorage.api.meta import LabelSelector
from moorage.apiserver.dynamic_admission.attributes import (
    CREATE,
    NAMESPACES,
    UPDATE,
    Attributes,
    ResourceEndpoint,
    endpoint_of,
)
from moorage.apiserver.http.status import internal, not_found
from moorage.apiserver.resources import Resource, Resources


class MatchCriteria(NamedTuple):
    """The criteria of a policy, a binding or a webhook."""

    namespaces: LabelSelector | None
    objects: LabelSelector | None
    rules: tuple[AnyRule, ...]
    excluded: tuple[AnyRule, ...] = ()
    is_exact: bool = False
    matches_without_rules: bool = True

    @classmethod
    def of_resources(cls, match: MatchResources) -> MatchCriteria:
        """Return the criteria of a policy or a binding."""
        return cls(
            match.namespace_selector,
            match.object_selector,
            match.resource_rules,
            match.exclude_resource_rules,
            match.match_policy in (None, EXACT),
        )

    @classmethod
    def of_webhook(cls, webhook: AnyWebhook) -> MatchCriteria:
        """Return the criteria of a webhook, which matches nothing without rules."""
        return cls(
            webhook.namespace_selector,
            webhook.object_selector,
            webhook.rules,
            is_exact=webhook.match_policy in (None, EXACT),
            matches_without_rules=False,
        )


async def match_request(criteria: MatchCriteria, attributes: Attributes) -> ResourceEndpoint | None:
    """Return the endpoint in whose version the hook sees a request, or None without a match.

    Raises StatusError if a selector cannot be evaluated.
    """
    matched = _match_resources(criteria, attributes)
    if matched is None or not _match_object(criteria.objects, attributes):
        return None
    return matched if await _match_namespace(criteria.namespaces, attributes) else None


def may_match(criteria: MatchCriteria, attributes: Attributes) -> bool:
    """Return whether requests like this may match, whatever their objects and names."""
    if not criteria.rules:
        return criteria.matches_without_rules
    endpoints = [attributes.endpoint]
    if not criteria.is_exact:
        endpoints += equivalents_of(attributes)
    return any(_fits(rule, attributes, each) for rule in criteria.rules for each in endpoints)


# --- resources ------------------------------------------------------------------------------------


def _match_resources(criteria: MatchCriteria, attributes: Attributes) -> ResourceEndpoint | None:
    if _match_rules(criteria.excluded, attributes, is_exact=criteria.is_exact) is not None:
        return None
    if not criteria.rules:
        return attributes.endpoint if criteria.matches_without_rules else None
    return _match_rules(criteria.rules, attributes, is_exact=criteria.is_exact)


def _match_rules(
    rules: Sequence[AnyRule], attributes: Attributes, *, is_exact: bool
) -> ResourceEndpoint | None:
    for rule in rules:
        if _fits(rule, attributes, attributes.endpoint) and _names(rule, attributes.name):
            return attributes.endpoint
    if is_exact or not rules:
        return None
    equivalents = equivalents_of(attributes)
    for rule in rules:
        for endpoint in equivalents:
            if _fits(rule, attributes, endpoint) and _names(rule, attributes.name):
                return endpoint
    return None


def equivalents_of(attributes: Attributes) -> list[ResourceEndpoint]:
    """Return the other endpoints that write the same objects."""
    resource, resources = attributes.request.resource, attributes.server.resources
    return [
        endpoint
        for endpoint in _endpoints(resources, resource, attributes.subresource)
        if endpoint != attributes.endpoint
    ]


@lru_cache(maxsize=1024)
def _endpoints(resources: Resources, resource: Resource, part: str) -> tuple[ResourceEndpoint, ...]:
    alike = (each for each in resources if each.prefix == resource.prefix)
    return tuple(endpoint_of(each, version, part) for each in alike for version in each.kinds)


def _names(rule: AnyRule, name: str) -> bool:
    wanted = getattr(rule, "resource_names", ())
    return not wanted or name in wanted


def _fits(rule: AnyRule, attributes: Attributes, endpoint: ResourceEndpoint) -> bool:
    """Return whether a rule matches an operation on an endpoint, whatever the name."""
    return (
        _has(rule.operations, attributes.operation)
        and _has(rule.api_groups, endpoint.group)
        and _has(rule.api_versions, endpoint.version)
        and _has_resource(rule.resources, endpoint.resource, attributes.subresource)
        and _has_scope(rule.scope, attributes)
    )


def _has(words: tuple[str, ...], word: str) -> bool:
    return word in words or "*" in words


def _has_resource(resources: tuple[str, ...], resource: str, subresource: str) -> bool:
    for text in resources:
        name, _, part = text.partition("/")
        if name in ("*", resource) and part in ("*", subresource):
            return True
    return False


def _has_scope(scope: str | None, attributes: Attributes) -> bool:
    if scope in (None, "*"):
        return True
    is_cluster = attributes.is_namespace or not attributes.namespace
    return is_cluster if scope == "Cluster" else not is_cluster


# --- selectors ------------------------------------------------------------------------------------


def _selector(selector: LabelSelector | None) -> Selector:
    """Return a selector that can be evaluated; no selector selects nothing."""
    found = NOTHING if selector is None else read_selector(selector)
    if isinstance(found, SelectorFault):
        raise internal(found.text)
    return found


def _match_object(selector: LabelSelector | None, attributes: Attributes) -> bool:
    wanted = _selector(selector)
    if wanted.is_empty:
        return True
    return any(labels is not None and wanted.matches(labels) for labels in attributes.labels())


async def _match_namespace(selector: LabelSelector | None, attributes: Attributes) -> bool:
    if not attributes.namespace and not attributes.is_namespace:
        return True  # Only objects in namespaces can be exempted.
    wanted = _selector(selector)
    if wanted.is_empty:
        return True
    if attributes.is_namespace and not attributes.subresource:
        new, old = attributes.labels()
        labels = new if attributes.operation in (CREATE, UPDATE) else old
        return wanted.matches(labels or {})
    namespace = await attributes.namespace_object()
    if namespace is None:
        about = attributes.server.resources.of("", NAMESPACES).about
        raise not_found(about, attributes.namespace)
    return wanted.matches(namespace.metadata.labels)
