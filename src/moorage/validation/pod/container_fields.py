"""Rules of parts of a container: probes and hooks, restart policies, environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moorage.api.core.pod import Container
from moorage.api.field_path import Path
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from moorage.validation.field_rules import each_invalid, label, not_negative
from moorage.validation.pod.field_rules import (
    ENV_FIELDS,
    Tree,
    config_key,
    no_backsteps,
    object_name,
    object_name_prefix,
    one_of,
    require,
    required_one_of,
    validate_field,
    validate_resource,
    variable_name,
)
from moorage.validation.pod.networking import port_name_faults, validate_port_number

HTTP_SCHEMES = ("HTTP", "HTTPS")

_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = "[-A-Za-z0-9]+"
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    f"regex used for validation is '{_HEADER}')"
)
_is_header = re.compile(_HEADER).fullmatch
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


def validate_probes(container: Container, grace_period_s: int | None, path: Path) -> ErrorList:
    """Validate the hooks and probes of a container or sidecar."""
    found: ErrorList = []
    if container.lifecycle is not None:
        found += _validate_lifecycle(container.lifecycle, grace_period_s, path.child("lifecycle"))
    for name, probe in _probes(container).items():
        if probe is not None:
            found += _validate_probe(name, probe, path.child(name))
    return found


def validate_no_probes(container: Container, path: Path) -> ErrorList:
    """Validate that an init container that is no sidecar has neither hooks nor probes."""
    given_parts = {"lifecycle": container.lifecycle, **_probes(container)}
    return [
        forbidden(path.child(name), _ONLY_SIDECARS)
        for name, part in given_parts.items()
        if part is not None
    ]


def _probes(container: Container) -> dict[str, Any]:
    return {
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }


def _validate_probe(name: str, probe: Tree, path: Path) -> ErrorList:
    found = _validate_handler(probe, None, path)
    for number in _NUMBERS:
        found += not_negative(probe.get(number), path.child(number))
    grace_period, place = (
        probe.get("terminationGracePeriodSeconds"),
        path.child("terminationGracePeriodSeconds"),
    )
    if grace_period is not None and grace_period <= 0:
        found.append(invalid(place, grace_period, "must be greater than 0"))
    if name == "readinessProbe":
        if grace_period is not None:
            found.append(invalid(place, grace_period, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        threshold = probe.get("successThreshold", 0)
        found.append(invalid(path.child("successThreshold"), threshold, "must be 1"))
    return found


def _validate_lifecycle(lifecycle: Tree, grace_period_s: int | None, path: Path) -> ErrorList:
    found: ErrorList = []
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            found += _validate_handler(lifecycle[name], grace_period_s, path.child(name))
    return found


# --- handlers -----------------------------------------------------------------------------


def _validate_handler(handler: Tree, grace_period_s: int | None, path: Path) -> ErrorList:
    """Validate a handler: exactly one action; only the first is validated."""
    found: ErrorList = []
    chosen = ""
    for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        if name not in handler:
            continue
        place = path.child(name)
        if chosen:
            found.append(forbidden(place, "may not specify more than 1 handler type"))
            continue
        chosen = name
        match name:
            case "exec":
                found += require(handler[name], ("command",), place)
            case "httpGet":
                found += _validate_http(handler[name], place)
            case "sleep":
                found += _validate_sleep(handler[name], grace_period_s, place)
            case _:
                found += _validate_port(handler[name].get("port", 0), place.child("port"))
    if not chosen:
        found.append(required(path, "must specify a handler type"))
    return found


def _validate_http(action: Tree, path: Path) -> ErrorList:
    found = require(action, ("path",), path)
    found += _validate_port(action.get("port", 0), path.child("port"))
    found += one_of(action.get("scheme", ""), HTTP_SCHEMES, path.child("scheme"))
    for header in action.get("httpHeaders", ()):
        name = header.get("name", "")
        if not _is_header(name):
            found.append(invalid(path.child("httpHeaders"), name, _HEADER_RULE))
    return found


def _validate_port(port: int | str, path: Path) -> ErrorList:
    if isinstance(port, int):
        return validate_port_number(port, path)
    return each_invalid(path, port, port_name_faults(port))


def _validate_sleep(action: Tree, grace_period_s: int | None, path: Path) -> ErrorList:
    seconds = action.get("seconds", 0)
    if grace_period_s is None or 0 <= seconds <= grace_period_s:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period_s})"
    return [invalid(path, seconds, detail)]


# --- restart and resize policies ----------------------------------------------------------

POLICIES = ("Always", "Never", "OnFailure")
ACTIONS = ("Restart", "RestartAllContainers")
OPERATORS = ("In", "NotIn")
RESIZED = ("cpu", "memory")
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
RULES_MAX = 20
EXIT_CODES_MAX = 255

_NO_POLICY = "must specify restartPolicy when restart rules are used"
_NOT_SIDECAR = "must not be set to 'RestartContainer' for non-sidecar initContainers"


def validate_restarts(container: Container, path: Path) -> ErrorList:
    """Validate the restart policy of a container and its restart rules."""
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None and not rules:
        return []
    found: ErrorList = []
    if policy is None:
        found.append(required(path.child("restartPolicy"), _NO_POLICY))
    elif policy not in POLICIES:
        found.append(not_supported(path.child("restartPolicy"), policy, POLICIES))
    return found + _validate_rules(rules, path.child("restartPolicyRules"))


def validate_init_restarts(container: Container, path: Path) -> ErrorList:
    """Validate the restart policy of an init container, which rules require."""
    if container.restart_policy is None:
        if container.restart_policy_rules:
            return [required(path.child("restartPolicy"), _NO_POLICY)]
        return _validate_no_restart(container, path)
    found = validate_restarts(container, path)
    return found if container.is_sidecar else found + _validate_no_restart(container, path)


def _validate_no_restart(container: Container, path: Path) -> ErrorList:
    """Validate that an init container that is no sidecar is not restarted to be resized."""
    return [
        invalid(
            path.child("resizePolicy").index(position).child("restartPolicy"),
            "RestartContainer",
            _NOT_SIDECAR,
        )
        for position, policy in enumerate(container.resize_policy)
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def _validate_rules(rules: tuple[Tree, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    if len(rules) > RULES_MAX:
        found.append(too_many(path, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        place = path.index(position)
        action = rule.get("action", "")
        if action not in ACTIONS:
            found.append(not_supported(place.child("action"), action, ACTIONS))
        found += _validate_exit_codes(rule.get("exitCodes"), place.child("exitCodes"))
    return found


def _validate_exit_codes(codes: Tree | None, path: Path) -> ErrorList:
    if codes is None:
        return [required(path, "must be specified")]
    found: ErrorList = []
    operator, values = codes.get("operator", ""), codes.get("values", ())
    if operator not in OPERATORS:
        found.append(not_supported(path.child("operator"), operator, OPERATORS))
    if len(values) > EXIT_CODES_MAX:
        found.append(too_many(path.child("values"), len(values), EXIT_CODES_MAX))
    return found


def validate_resize_policy(policies: tuple[Tree, ...], pod_policy: str, path: Path) -> ErrorList:
    """Validate the resize policy of a container."""
    found: ErrorList = []
    taken: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restarts = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in taken:
            found.append(duplicate(path.index(position), resource))
        taken.add(resource)
        found += required_one_of(resource, RESIZED, path) + required_one_of(
            restarts, RESIZE_POLICIES, path
        )
        if pod_policy == "Never" and restarts != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(invalid(path, restarts, detail))
    return found


# --- environment variables ----------------------------------------------------------------

_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_NO_SOURCE_OF_MANY = "must specify one of: `configMapRef` or `secretRef`"
_SEVERAL = "may not have more than one field specified at a time"


def validate_environment(container: Container, path: Path) -> ErrorList:
    """Validate the environment of a container."""
    found: ErrorList = []
    for position, variable in enumerate(container.env):
        place = path.child("env").index(position)
        name = variable.get("name", "")
        found += variable_name(name, place.child("name")) if name else require({}, ("name",), place)
        if "valueFrom" in variable:
            found += _validate_source(variable, place.child("valueFrom"))
    return found + _validate_sources_of_many(container.env_from, path.child("envFrom"))


def _validate_source(variable: Tree, path: Path) -> ErrorList:
    source = variable["valueFrom"]
    found: ErrorList = []
    if "fieldRef" in source:
        found += validate_field(source["fieldRef"], ENV_FIELDS, path.child("fieldRef"))
    if "resourceFieldRef" in source:
        place = path.child("resourceFieldRef")
        found += validate_resource(source["resourceFieldRef"], place, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            found += _validate_key(source[name], path.child(name))
    if "fileKeyRef" in source:
        found += _validate_file_key(source["fileKeyRef"], path.child("fileKeyRef"))
    if not source:
        found.append(invalid(path, "", _NO_SOURCE))
    elif variable.get("value"):
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        found.append(invalid(path, "", _SEVERAL))
    return found


def _validate_key(selector: Tree, path: Path) -> ErrorList:
    found = object_name(selector.get("name", ""), path.child("name"))
    key = selector.get("key", "")
    return found + (config_key(key, path.child("key")) if key else [required(path.child("key"))])


def _validate_file_key(selector: Tree, path: Path) -> ErrorList:
    found = require(selector, ("key", "volumeName", "path"), path)
    found += variable_name(selector.get("key", ""), path.child("key"))
    if selector.get("volumeName"):
        found += label(selector["volumeName"], path.child("volumeName"))
    return found + no_backsteps(selector.get("path", ""), path.child("path"))


def _validate_sources_of_many(sources: tuple[Tree, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    for position, source in enumerate(sources):
        place = path.index(position)
        found += variable_name(source.get("prefix", ""), place.child("prefix"))
        chosen = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in chosen:
            found += _validate_reference(source[name], place.child(name, "name"))
        if not chosen:
            found.append(invalid(path, "", _NO_SOURCE_OF_MANY))
        elif len(chosen) > 1:
            found.append(invalid(path, "", _SEVERAL))
    return found


def _validate_reference(reference: Tree, path: Path) -> ErrorList:
    name = reference.get("name", "")
    return object_name_prefix(name, path) if name else [required(path)]


def validate_file_volumes(
    containers: Iterable[tuple[Container, Path]], volumes: tuple[Tree, ...]
) -> ErrorList:
    """Validate that fileKeyRef refers to an emptyDir volume of the pod."""
    by_name = {volume.get("name", ""): volume for volume in volumes}
    found: ErrorList = []
    for container, path in containers:
        for position, variable in enumerate(container.env):
            reference = variable.get("valueFrom", {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            place = path.child("env").index(position).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in by_name:
                found.append(not_found(place, name))
            elif "emptyDir" not in by_name[name]:
                detail = "referenced volume must be of type emptyDir"
                found.append(invalid(place, name, detail))
    return found
