"""Rules of the spec of a Job, with its pod failure policy and its success policy.

Both policies are read as plain JSON; a value of the wrong type counts as absent.
"""

from __future__ import annotations

import re
from typing import Any

from moorage.api import names
from moorage.api.batch import JobSpec
from moorage.api.field_path import Path
from moorage.api.names import byte_length
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    invalid,
    invalid_whole,
    not_supported,
    required,
    too_long,
    too_many,
)
from moorage.validation.field_rules import each_invalid, label_name, not_negative
from moorage.validation.go_layout import internal_policy
from moorage.validation.job_scheduling import validate_scheduling
from moorage.validation.pod_template import validate_matching, validate_template

NON_INDEXED = "NonIndexed"

PARALLELISM_MAX = 100_000
FAILED_INDEXES_MAX = 100_000
MANY_COMPLETIONS = 100_000  # above it lower limits apply
PARALLELISM_OF_MANY_MAX = 10_000
FAILED_INDEXES_OF_MANY_MAX = 10_000
MANAGER_MAX_BYTES = 63

_NEEDS_INDEXES = "requires indexed completion mode"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path = re.compile(_PATH).fullmatch


def validate_job_spec(spec: JobSpec, path: Path, *, is_template: bool = False) -> ErrorList:
    """Validate the spec of a job, new or changed; jobs of a template get their selectors later."""
    found = _validate_numbers(spec, path)
    if spec.managed_by is not None:
        found += _validate_manager(spec.managed_by, path.child("managedBy"))
    found += _validate_completion_mode(spec, path)
    if spec.pod_failure_policy is not None:
        found += validate_failure_policy(spec, path.child("podFailurePolicy"))
    if spec.success_policy is not None:
        found += validate_success_policy(spec, path.child("successPolicy"))
    found += _validate_replacement(spec, path.child("podReplacementPolicy"))
    found += validate_scheduling(spec, path.child("scheduling"))
    found += validate_template(spec.template, path.child("template"))
    found += _validate_restarts(spec, path.child("template", "spec", "restartPolicy"))
    if spec.selector is None and not is_template:
        found.append(required(path.child("selector")))
    return found if is_template else found + validate_matching(spec.selector, spec.template, path)


def _validate_numbers(spec: JobSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    for name, number in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("maxFailedIndexes", spec.max_failed_indexes),
    ):
        found += not_negative(number, path.child(name))
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        place = path.child("backoffLimitPerIndex")
        found.append(required(place, "when maxFailedIndexes is specified"))
    return found


def _validate_manager(manager: str, path: Path) -> ErrorList:
    if not manager:
        return [required(path)]
    is_long = byte_length(manager) > MANAGER_MAX_BYTES
    found: ErrorList = [too_long(path, MANAGER_MAX_BYTES)] if is_long else []
    domain, _, rest = manager.partition("/")
    if not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [invalid(path, manager, detail), *found]
    found += each_invalid(path, domain, names.dns1123_subdomain(domain))
    if not _is_path(rest):
        detail = f"Invalid path (regex used for validation is '{_PATH}')"
        found.append(invalid(path, rest, detail))
    return found


def _validate_replacement(spec: JobSpec, path: Path) -> ErrorList:
    policy = spec.pod_replacement_policy
    has_failures = spec.pod_failure_policy is not None
    supported = ("Failed",) if has_failures else ("Failed", "TerminatingOrFailed")
    if policy is None or policy in supported:
        return []
    return [not_supported(path, policy, supported)]


def _validate_restarts(spec: JobSpec, path: Path) -> ErrorList:
    """Validate that the pods of the job can terminate."""
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.pod_failure_policy is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, policy, detail)]
    return []


# --- indexes ------------------------------------------------------------------------------


def _validate_completion_mode(spec: JobSpec, path: Path) -> ErrorList:
    match spec.completion_mode:
        case "Indexed":
            return _validate_indexed(spec, path)
        case None | "NonIndexed":
            return [
                invalid(path.child(name), number, _NEEDS_INDEXES)
                for name, number in (
                    ("backoffLimitPerIndex", spec.backoff_limit_per_index),
                    ("maxFailedIndexes", spec.max_failed_indexes),
                )
                if number is not None
            ]
        case mode:
            return [not_supported(path.child("completionMode"), mode, (NON_INDEXED, INDEXED))]


def _validate_indexed(spec: JobSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    completions, failed = spec.completions, spec.max_failed_indexes
    if completions is None:
        found.append(required(path.child("completions"), f"when completion mode is {INDEXED}"))
    if spec.parallelism is not None and spec.parallelism > PARALLELISM_MAX:
        detail = (
            f"must be less than or equal to {PARALLELISM_MAX} when completion mode is {INDEXED}"
        )
        found.append(invalid(path.child("parallelism"), spec.parallelism, detail))
    place = path.child("maxFailedIndexes")
    if completions is not None and failed is not None and failed > completions:
        found.append(invalid(place, failed, "must be less than or equal to completions"))
    if failed is not None and failed > FAILED_INDEXES_MAX:
        found.append(invalid(place, failed, f"must be less than or equal to {FAILED_INDEXES_MAX}"))
    has_many = completions is not None and completions > MANY_COMPLETIONS
    if has_many and spec.backoff_limit_per_index is not None:
        found += _validate_many(spec, path)
    return found


def _validate_many(spec: JobSpec, path: Path) -> ErrorList:
    """Validate the lower limits of a job with very many completions."""
    found: ErrorList = []
    if spec.max_failed_indexes is None:
        detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
        found.append(required(path.child("maxFailedIndexes"), detail))
    for name, number, number_max in (
        ("parallelism", spec.parallelism, PARALLELISM_OF_MANY_MAX),
        ("maxFailedIndexes", spec.max_failed_indexes, FAILED_INDEXES_OF_MANY_MAX),
    ):
        if number is not None and number > number_max:
            detail = (
                f"must be less than or equal to {number_max} when completions are above "
                f"{MANY_COMPLETIONS} and used with backoff limit per index"
            )
            found.append(invalid(path.child(name), number, detail))
    return found


# --- pod failure policy and success policy ------------------------------------------------

INDEXED = "Indexed"

RULES_MAX = 20
CODES_MAX = 255
PATTERNS_MAX = 20
INDEXES_MAX_BYTES = 64 * 1024

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")

Rule = dict[str, Any]


# --- failures -----------------------------------------------------------------------------


def validate_failure_policy(spec: JobSpec, path: Path) -> ErrorList:
    """Validate the pod failure policy."""
    rules, place = _rules(spec.pod_failure_policy), path.child("rules")
    found: ErrorList = []
    if len(rules) > RULES_MAX:
        found.append(too_many(place, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        found += _validate_failure_rule(spec, rule, place.index(position))
    return found


def _validate_failure_rule(spec: JobSpec, rule: Rule, path: Path) -> ErrorList:
    found = _validate_action(spec, rule.get("action") or "", path.child("action"))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if isinstance(codes, dict):
        found += _validate_codes(spec, codes, path.child("onExitCodes"))
    if isinstance(conditions, list):
        found += _validate_patterns(conditions, path.child("onPodConditions"))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(invalid_whole(path, detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(invalid_whole(path, detail))
    return found


def _validate_action(spec: JobSpec, action: str, path: Path) -> ErrorList:
    if not action:
        return [required(path, _valid_values(_ACTIONS))]
    if action not in _ACTIONS:
        return [not_supported(path, action, _ACTIONS)]
    if action == "FailIndex" and spec.backoff_limit_per_index is None:
        return [invalid(path, action, "requires the backoffLimitPerIndex to be set")]
    return []


def _validate_codes(spec: JobSpec, codes: Rule, path: Path) -> ErrorList:
    operator = codes.get("operator") or ""
    found = _validate_word(operator, _OPERATORS, path.child("operator"))
    name = codes.get("containerName")
    containers = (*spec.template.spec.containers, *spec.template.spec.init_containers)
    if name is not None and all(name != container.name for container in containers):
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(path.child("containerName"), name, detail))
    values, place = codes.get("values") or [], path.child("values")
    if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
        return [*found, invalid(place, values, "must be a list of integers")]
    return found + _validate_exit_codes(values, operator, place)


def _validate_exit_codes(values: list[int], operator: str, path: Path) -> ErrorList:
    if not values:
        return [invalid(path, None, "at least one value is required")]
    found: ErrorList = []
    if len(values) > CODES_MAX:
        found.append(too_many(path, len(values), CODES_MAX))
    seen: set[int] = set()
    for position, value in enumerate(values):
        place = path.index(position)
        if operator == "In" and value == 0:
            found.append(invalid(place, value, "must not be 0 for the In operator"))
        if value in seen:
            found.append(duplicate(place, value))
        seen.add(value)
    if values != sorted(values):
        found.append(invalid(path, values, "must be ordered"))
    return found


def _validate_patterns(patterns: list[Any], path: Path) -> ErrorList:
    found: ErrorList = []
    if len(patterns) > PATTERNS_MAX:
        found.append(too_many(path, len(patterns), PATTERNS_MAX))
    for position, pattern in enumerate(patterns):
        place = path.index(position)
        condition = pattern if isinstance(pattern, dict) else {}
        found += label_name(_text(condition.get("type")), place.child("type"))
        found += _validate_word(_text(condition.get("status")), _STATUSES, place.child("status"))
    return found


# --- successes ----------------------------------------------------------------------------


def validate_success_policy(spec: JobSpec, path: Path) -> ErrorList:
    """Validate the success policy."""
    if spec.completion_mode != INDEXED:
        return [
            invalid(path, internal_policy(spec.success_policy, "SuccessPolicy"), _NEEDS_INDEXES)
        ]
    rules, place = _rules(spec.success_policy), path.child("rules")
    found: ErrorList = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(place, detail))
    if len(rules) > RULES_MAX:
        found.append(too_many(place, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        found += _validate_success_rule(rule, spec.completions or 0, place.index(position))
    return found


def _validate_success_rule(rule: Rule, completions: int, path: Path) -> ErrorList:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    found: ErrorList = []
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        found.append(required(path, detail))
    named: int | None = None
    if isinstance(indexes, str):
        place = path.child("succeededIndexes")
        if byte_length(indexes) > INDEXES_MAX_BYTES:
            return [*found, too_long(place, INDEXES_MAX_BYTES)]
        try:
            named = _count_indexes(indexes, completions)
        except ValueError as error:
            named = 0
            detail = f"error parsing succeededIndexes: {error}"
            found.append(invalid(place, indexes, detail))
    if isinstance(count, int):
        found += _validate_success_count(count, completions, named, path.child("succeededCount"))
    return found


def _validate_success_count(
    count: int, completions: int, named: int | None, path: Path
) -> ErrorList:
    found = not_negative(count, path)
    if count > completions:
        detail = (
            f"must be less than or equal to {completions} (the number of specified completions)"
        )
        found.append(invalid(path, count, detail))
    if named is not None and count > named:
        detail = (
            f"must be less than or equal to {named} "
            "(the number of indexes in the specified succeededIndexes field)"
        )
        found.append(invalid(path, count, detail))
    return found


def _count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in a text such as `0,2-4`; raise ValueError if it is invalid."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        parts = interval.split("-")
        if len(parts) > 2:
            raise ValueError(
                f"the fragment {go_quote(interval)} violates the requirement that an index "
                "interval can have at most two parts separated by '-'"
            )
        ends = [_index(part, completions) for part in parts]
        if len(ends) == 2 and ends[0] >= ends[1]:
            raise ValueError(f"non-increasing order, previous: {ends[0]}, current: {ends[1]}")
        if last >= ends[0]:
            raise ValueError(f"non-increasing order, previous: {last}, current: {ends[0]}")
        total += ends[-1] - ends[0] + 1
        last = ends[-1]
    return total


def _index(text: str, completions: int) -> int:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise ValueError(f"cannot convert string to integer for index: {go_quote(text)}")
    if int(digits) >= completions:
        raise ValueError(f"too large index: {go_quote(text)}")
    return int(digits)


# --- messages -----------------------------------------------------------------------------


def _rules(policy: Any) -> list[Rule]:
    rules = policy.get("rules") if isinstance(policy, dict) else None
    if not isinstance(rules, list):
        return []
    return [rule if isinstance(rule, dict) else {} for rule in rules]


def _validate_word(word: str, supported: tuple[str, ...], path: Path) -> ErrorList:
    if not word:
        return [required(path, _valid_values(supported))]
    return [] if word in supported else [not_supported(path, word, supported)]


def _valid_values(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(go_quote, values))}]"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
