"""Rules for when a container is restarted: by its policy, by exit codes, and when it is resized."""

from __future__ import annotations

from typing import Any

from mooring.api.core.container import Container
from mooring.api.fieldpath import Path
from mooring.validation.errors import (
    Errors,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from mooring.validation.pod.field_rules import Tree

POLICIES = ("Always", "Never", "OnFailure")
ACTIONS = ("Restart", "RestartAllContainers")
OPERATORS = ("In", "NotIn")
RESIZED = ("cpu", "memory")
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
RULES_MAX = 20
EXIT_CODES_MAX = 255

_NO_POLICY = "must specify restartPolicy when restart rules are used"
_NOT_SIDECAR = "must not be set to 'RestartContainer' for non-sidecar initContainers"


def check_restarts(container: Container, path: Path) -> Errors:
    """Check the restart policy of a container and the rules that come before it."""
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None and not rules:
        return []
    found: Errors = []
    if policy is None:
        found.append(required(path.child("restartPolicy"), _NO_POLICY))
    elif policy not in POLICIES:
        found.append(not_supported(path.child("restartPolicy"), policy, POLICIES))
    return found + _check_rules(rules, path.child("restartPolicyRules"))


def check_init_restarts(container: Container, path: Path) -> Errors:
    """Check the same of an init container, which must also have a policy before it has rules."""
    if container.restart_policy is None:
        if container.restart_policy_rules:
            return [required(path.child("restartPolicy"), _NO_POLICY)]
        return _check_no_restart(container, path)
    found = check_restarts(container, path)
    return found if container.is_sidecar else found + _check_no_restart(container, path)


def _check_no_restart(container: Container, path: Path) -> Errors:
    """Check that a container that ends before others start is not restarted to be resized."""
    return [
        invalid(
            path.child("resizePolicy").index(position).child("restartPolicy"),
            "RestartContainer",
            _NOT_SIDECAR,
        )
        for position, policy in enumerate(container.resize_policy)
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def _check_rules(rules: tuple[Tree, ...], path: Path) -> Errors:
    found: Errors = []
    if len(rules) > RULES_MAX:
        found.append(too_many(path, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        place = path.index(position)
        action = rule.get("action", "")
        if action not in ACTIONS:
            found.append(not_supported(place.child("action"), action, ACTIONS))
        found += _check_exit_codes(rule.get("exitCodes"), place.child("exitCodes"))
    return found


def _check_exit_codes(codes: Tree | None, path: Path) -> Errors:
    if codes is None:
        return [required(path, "must be specified")]
    found: Errors = []
    operator, values = codes.get("operator", ""), codes.get("values", ())
    if operator not in OPERATORS:
        found.append(not_supported(path.child("operator"), operator, OPERATORS))
    if len(values) > EXIT_CODES_MAX:
        found.append(too_many(path.child("values"), len(values), EXIT_CODES_MAX))
    return found


def check_resize_policy(policies: tuple[Tree, ...], pod_policy: str, path: Path) -> Errors:
    """Check whether a container is restarted when its resources change."""
    found: Errors = []
    taken: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restarts = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in taken:
            found.append(duplicate(path.index(position), resource))
        taken.add(resource)
        found += _one_of(resource, RESIZED, path) + _one_of(restarts, RESIZE_POLICIES, path)
        if pod_policy == "Never" and restarts != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(invalid(path, restarts, detail))
    return found


def _one_of(value: Any, supported: tuple[str, ...], path: Path) -> Errors:
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]
