"""Rules for what the end of single pods means for their job.

Both policies are read as plain JSON; what is not of the right shape counts as not given.
"""

from __future__ import annotations

from typing import Any

from mooring.api.batch import JobSpec
from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.checks import label_name, not_negative
from mooring.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_whole,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)

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


def check_failure_policy(spec: JobSpec, path: Path) -> Errors:
    """Check what pods that fail mean for the job."""
    rules, place = _rules(spec.pod_failure_policy), path.child("rules")
    found: Errors = []
    if len(rules) > RULES_MAX:
        found.append(too_many(place, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        found += _check_failure_rule(spec, rule, place.index(position))
    return found


def _check_failure_rule(spec: JobSpec, rule: Rule, path: Path) -> Errors:
    found = _check_action(spec, rule.get("action") or "", path.child("action"))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if isinstance(codes, dict):
        found += _check_codes(spec, codes, path.child("onExitCodes"))
    if isinstance(conditions, list):
        found += _check_patterns(conditions, path.child("onPodConditions"))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(invalid_whole(path, detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(invalid_whole(path, detail))
    return found


def _check_action(spec: JobSpec, action: str, path: Path) -> Errors:
    if not action:
        return [required(path, _valid_values(_ACTIONS))]
    if action not in _ACTIONS:
        return [not_supported(path, action, _ACTIONS)]
    if action == "FailIndex" and spec.backoff_limit_per_index is None:
        return [invalid(path, action, "requires the backoffLimitPerIndex to be set")]
    return []


def _check_codes(spec: JobSpec, codes: Rule, path: Path) -> Errors:
    operator = codes.get("operator") or ""
    found = _check_word(operator, _OPERATORS, path.child("operator"))
    name = codes.get("containerName")
    containers = (*spec.template.spec.containers, *spec.template.spec.init_containers)
    if name is not None and all(name != container.name for container in containers):
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(path.child("containerName"), name, detail))
    values, place = codes.get("values") or [], path.child("values")
    if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
        return [*found, invalid(place, values, "must be a list of integers")]
    return found + _check_values(values, operator, place)


def _check_values(values: list[int], operator: str, path: Path) -> Errors:
    if not values:
        return [invalid(path, None, "at least one value is required")]
    found: Errors = []
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


def _check_patterns(patterns: list[Any], path: Path) -> Errors:
    found: Errors = []
    if len(patterns) > PATTERNS_MAX:
        found.append(too_many(path, len(patterns), PATTERNS_MAX))
    for position, pattern in enumerate(patterns):
        place = path.index(position)
        told = pattern if isinstance(pattern, dict) else {}
        found += label_name(_text(told.get("type")), place.child("type"))
        found += _check_word(_text(told.get("status")), _STATUSES, place.child("status"))
    return found


# --- successes ----------------------------------------------------------------------------


def check_success_policy(spec: JobSpec, path: Path) -> Errors:
    """Check which pods must succeed for the job to be done."""
    if spec.completion_mode != INDEXED:
        return [invalid(path, spec.success_policy, "requires indexed completion mode")]
    rules, place = _rules(spec.success_policy), path.child("rules")
    found: Errors = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(place, detail))
    if len(rules) > RULES_MAX:
        found.append(too_many(place, len(rules), RULES_MAX))
    for position, rule in enumerate(rules):
        found += _check_success_rule(rule, spec.completions or 0, place.index(position))
    return found


def _check_success_rule(rule: Rule, completions: int, path: Path) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    found: Errors = []
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
        found += _check_success_count(count, completions, named, path.child("succeededCount"))
    return found


def _check_success_count(count: int, completions: int, named: int | None, path: Path) -> Errors:
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
    """Return how many indexes a text such as `0,2-4` names, or raise what is wrong with it."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        parts = interval.split("-")
        if len(parts) > 2:
            raise ValueError(
                f"the fragment {quoted(interval)} violates the requirement that an index "
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
        raise ValueError(f"cannot convert string to integer for index: {quoted(text)}")
    if int(digits) >= completions:
        raise ValueError(f"too large index: {quoted(text)}")
    return int(digits)


# --- words --------------------------------------------------------------------------------


def _rules(policy: Any) -> list[Rule]:
    rules = policy.get("rules") if isinstance(policy, dict) else None
    if not isinstance(rules, list):
        return []
    return [rule if isinstance(rule, dict) else {} for rule in rules]


def _check_word(word: str, supported: tuple[str, ...], path: Path) -> Errors:
    if not word:
        return [required(path, _valid_values(supported))]
    return [] if word in supported else [not_supported(path, word, supported)]


def _valid_values(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quoted, values))}]"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
