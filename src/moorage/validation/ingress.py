"""Strategies of Ingresses and IngressClasses."""

from __future__ import annotations

import re

from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.namespace import TypedLocalObjectReference
from moorage.api.field_path import Path, root
from moorage.api.networking import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressClass,
    IngressClassParametersReference,
    IngressRule,
    IngressServiceBackend,
    IngressTLS,
)
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import each, each_invalid, subdomain, unchanged
from moorage.validation.networking import is_address
from moorage.validation.pod.networking import port_name_faults, validate_port_number
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
SCOPES = ("Cluster", "Namespace")
CONTROLLER_MAX_BYTES = 250

_WRONG_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_WRONG_ENDS = ("/..", "/.")
_WILDCARD = (
    r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"  # as Kubernetes shows it
)
_is_wildcard = re.compile(_WILDCARD).fullmatch
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
    f"character (e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
)
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch


class IngressStrategy(ObjectStrategy[Ingress]):
    """The strategy of Ingresses."""

    tracks_generation = True
    rechecks_metadata = True
    keeps_metadata_with_status = False

    def validate(self, new: Ingress, context: Context) -> ErrorList:
        """Validate everything, and that the annotation names the same class."""
        found = super().validate(new, context)
        named, wanted = new.metadata.annotations.get(CLASS_ANNOTATION), new.spec.ingress_class_name
        if named is not None and wanted is not None and named != wanted:
            path = root("annotations").child(CLASS_ANNOTATION)
            found.append(
                invalid(path, named, "must match `ingressClassName` when both are specified")
            )
        return found

    def validate_fields(self, new: Ingress) -> ErrorList:
        """Validate the rules, the backend, the hosts and the class."""
        spec, found = new.spec, ErrorList()
        if not spec.rules and spec.default_backend is None:
            detail = "either `defaultBackend` or `rules` must be specified"
            found.append(invalid(SPEC, None, detail))
        if spec.default_backend is not None:
            found += _validate_backend(spec.default_backend, SPEC.child("defaultBackend"))
        found += each(spec.rules, _validate_rule, SPEC.child("rules"))
        found += each(spec.tls, _validate_tls, SPEC.child("tls"))
        if spec.ingress_class_name is not None:
            found += subdomain(spec.ingress_class_name, SPEC.child("ingressClassName"))
        return found

    def warnings_on_create(self, new: Ingress) -> list[str]:
        """Return that the annotation is deprecated."""
        if CLASS_ANNOTATION not in new.metadata.annotations or new.spec.ingress_class_name:
            return []
        instead = "please use 'spec.ingressClassName' instead"
        return [f'annotation "{CLASS_ANNOTATION}" is deprecated, {instead}']

    def warnings_on_update(self, new: Ingress, old: Ingress) -> list[str]:  # noqa: ARG002
        """Return none."""
        return []

    def validate_status(self, new: Ingress, old: Ingress) -> ErrorList:  # noqa: ARG002
        """Validate the addresses of the load balancer."""
        found: ErrorList = []
        for place, each_one in enumerate(new.status.load_balancer.ingress):
            path = root("status").child("loadBalancer").child("ingress").index(place)
            if each_one.ip and not is_address(each_one.ip):
                detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                found.append(invalid(path.child("ip"), each_one.ip, detail))
            if each_one.hostname:
                found += subdomain(each_one.hostname, path.child("hostname"))
                found += _not_an_address(each_one.hostname, path.child("hostname"))
        return found


def _not_an_address(host: str, path: Path) -> ErrorList:
    if not is_address(host):
        return []
    return [invalid(path, host, "must be a DNS name, not an IP address")]


def _host_faults(host: str) -> list[str]:
    if "*" not in host:
        return names.dns1123_subdomain(host)
    faults = [] if names.byte_length(host) <= names.SUBDOMAIN_MAX else [_too_long()]
    return faults if _is_wildcard(host) else [*faults, _WILDCARD_RULE]


def _too_long() -> str:
    return f"must be no more than {names.SUBDOMAIN_MAX} characters"


def _validate_rule(rule: IngressRule, path: Path) -> ErrorList:
    found: ErrorList = []
    if rule.host:
        found += _not_an_address(rule.host, path.child("host"))
        found += each_invalid(path.child("host"), rule.host, _host_faults(rule.host))
    if rule.http is None:
        return found
    paths, place = rule.http.paths or (), path.child("http").child("paths")
    return found + (each(paths, _validate_path, place) if paths else [required(place)])


def _validate_path(value: HTTPIngressPath, path: Path) -> ErrorList:
    kind, text, at = value.path_type, value.path, path.child("path")
    if kind is None:
        return [required(path.child("pathType"), "pathType must be specified")]
    found: ErrorList = []
    if kind not in PATH_TYPES:
        found.append(not_supported(path.child("pathType"), kind, PATH_TYPES))
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        found.append(invalid(at, text, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        found += [
            invalid(at, text, f"must not contain '{sequence}'")
            for sequence in _WRONG_SEQUENCES
            if sequence in text
        ]
        found += [
            invalid(at, text, f"cannot end with '{end}'")
            for end in _WRONG_ENDS
            if text.endswith(end)
        ]
    return found + _validate_backend(value.backend, path.child("backend"))


def _validate_backend(backend: IngressBackend, path: Path) -> ErrorList:
    if backend.resource is not None and backend.service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.resource is not None:
        return _validate_reference(backend.resource, path.child("resource"))
    if backend.service is not None:
        return _validate_service(backend.service, path)
    return [invalid(path, "", "resource or service backend is required")]


def _validate_service(service: IngressServiceBackend, path: Path) -> ErrorList:
    below = path.child("service")
    if service.name:
        messages = names.dns1123_label(service.name)
        found = each_invalid(below.child("name"), service.name, messages)
    else:
        found = [required(below.child("name"))]
    port, at = service.port, below.child("port")
    if port.name and port.number:
        return [*found, invalid(path, "", "cannot set both port name & port number")]
    if port.name:
        return found + each_invalid(at.child("name"), port.name, port_name_faults(port.name))
    if port.number:
        return found + validate_port_number(port.number, at.child("number"))
    return [*found, required(path, "port name or number is required")]


def _validate_reference(
    value: TypedLocalObjectReference | IngressClassParametersReference, path: Path
) -> ErrorList:
    found: ErrorList = []
    if value.api_group is not None:
        found += subdomain(value.api_group, path.child("apiGroup"))
    for name, text in (("kind", value.kind), ("name", value.name)):
        if text:
            found += each_invalid(path.child(name), text, names.path_segment(text))
        else:
            found.append(required(path.child(name)))
    return found


def _validate_tls(tls: IngressTLS, path: Path) -> ErrorList:
    found: ErrorList = []
    for place, host in enumerate(tls.hosts):
        found += each_invalid(path.child("hosts").index(place), host, _host_faults(host))
    return found + (subdomain(tls.secret_name, path.child("secretName")) if tls.secret_name else [])


# --- IngressClasses -------------------------------------------------------------------------------


class IngressClassStrategy(ObjectStrategy[IngressClass]):
    """The strategy of IngressClasses."""

    namespaced = False
    tracks_generation = True
    qualified_finalizers = False

    def default(self, value: IngressClass, api_version: str, context: Context) -> IngressClass:  # noqa: ARG002
        """Set the scope of the parameters."""
        parameters = value.spec.parameters
        if parameters is None or parameters.scope is not None:
            return value
        scoped = replace(parameters, scope="Cluster")
        return replace(value, spec=replace(value.spec, parameters=scoped))

    def validate_fields(self, new: IngressClass) -> ErrorList:
        """Validate the controller and its parameters."""
        found = _validate_controller(new.spec.controller, SPEC.child("controller"))
        parameters, path = new.spec.parameters, SPEC.child("parameters")
        if parameters is None:
            return found
        found += _validate_reference(parameters, path)
        if parameters.scope is None:
            return [*found, required(path.child("scope"))]
        return found + _validate_scope(parameters, path)

    def validate_changes(self, new: IngressClass, old: IngressClass) -> ErrorList:
        """Validate that the controller is unchanged."""
        return unchanged(new.spec.controller, old.spec.controller, SPEC.child("controller"))


def _validate_scope(parameters: IngressClassParametersReference, path: Path) -> ErrorList:
    at = path.child("namespace")
    match parameters.scope:
        case "Namespace" if parameters.namespace is None:
            return [required(at, "`parameters.scope` is set to 'Namespace'")]
        case "Namespace":
            messages = names.dns1123_label(parameters.namespace or "")
            return each_invalid(at, parameters.namespace or "", messages)
        case "Cluster" if parameters.namespace is not None:
            return [forbidden(at, "`parameters.scope` is set to 'Cluster'")]
        case "Cluster":
            return []
        case scope:
            return [not_supported(path.child("scope"), scope, SCOPES)]


def _validate_controller(text: str, path: Path) -> ErrorList:
    """Validate a path with a domain before it."""
    found: ErrorList = []
    if names.byte_length(text) > CONTROLLER_MAX_BYTES:
        found.append(too_long(path, CONTROLLER_MAX_BYTES))
    if not text:
        return [*found, required(path)]
    host, _, rest = text.partition("/")
    if not host or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [*found, invalid(path, text, detail)]
    found += each_invalid(path, host, names.dns1123_subdomain(host))
    if not _is_http_path(rest):
        detail = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        found.append(invalid(path, rest, detail))
    return found
