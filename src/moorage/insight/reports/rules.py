"""The rules of reports, with the help text that code scanning shows beside a finding.

`moor validate` has a rule for each type of error in Kubernetes' answers, `moor plan` rules for pods
and objects; the rules of `moor lint` are its own.
"""

from __future__ import annotations

from typing import Final

from moorage.insight.lint.rule import Rule
from moorage.insight.reports.findings import UNREADABLE_RULE, FindingLevel, ReportRule
from moorage.validation.errors import ErrorType

_ERRORS: Final = "https://pkg.go.dev/k8s.io/apimachinery/pkg/util/validation/field#ErrorType"
_OBJECTS: Final = "https://kubernetes.io/docs/concepts/overview/working-with-objects/"
_WARNINGS: Final = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"
_DRA: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"

NOT_DECODED: Final = "NotDecoded"
API_WARNING: Final = "Warning"
NO_NODE: Final = "NoNode"
INVALID: Final = "Invalid"

_TYPES: Final = {
    ErrorType.REQUIRED: ("a required field is missing", "Set the field."),
    ErrorType.INVALID: ("a value is not valid", "The message says what the field may have."),
    ErrorType.DUPLICATE: ("a value is there twice", "Values of this list must be unique."),
    ErrorType.NOT_SUPPORTED: (
        "a value is not one of those that are allowed",
        "The message lists the allowed values.",
    ),
    ErrorType.FORBIDDEN: ("a field may not be set", "Remove the field; the message says why."),
    ErrorType.TOO_LONG: ("a value is too long", "The message has the limit."),
    ErrorType.TOO_MANY: ("a list or map has too many entries", "The message has the limit."),
    ErrorType.NOT_FOUND: (
        "a value refers to something that does not exist",
        "Correct the reference, or add what it refers to.",
    ),
    ErrorType.TYPE_INVALID: ("a value has the wrong type", "The message names the type."),
    ErrorType.INTERNAL: ("the API server could not decide", "The message says what failed."),
}

_INTRODUCTION: Final = "An API server of Kubernetes 1.37 would refuse the object."

VALIDATION_RULES: Final[tuple[ReportRule, ...]] = (
    *(
        ReportRule(str(type_), FindingLevel.ERROR, summary, f"{_INTRODUCTION} {text}", _ERRORS)
        for type_, (summary, text) in _TYPES.items()
    ),
    ReportRule(
        NOT_DECODED,
        FindingLevel.ERROR,
        "an object cannot be decoded as its kind",
        f"{_INTRODUCTION} A field is unknown, there twice, or has a value of the wrong type; or "
        "the kind or its version does not exist.",
        _OBJECTS,
    ),
    ReportRule(
        API_WARNING,
        FindingLevel.WARNING,
        "an API server answers with a warning",
        "The object is accepted, but part of it is deprecated, unknown or without effect.",
        _WARNINGS,
    ),
    UNREADABLE_RULE,
)

PLAN_RULES: Final[tuple[ReportRule, ...]] = (
    ReportRule(
        NO_NODE,
        FindingLevel.ERROR,
        "a pod gets no node",
        "In the given cluster, no node has what the pod needs. The message has the cause and the "
        "best fix; `moor explain` has the evidence and the other fixes.",
        _DRA,
    ),
    ReportRule(
        INVALID,
        FindingLevel.ERROR,
        "an API server would refuse the object",
        "The object is not part of the plan. `moor validate` names the line of every field.",
        _OBJECTS,
    ),
    UNREADABLE_RULE,
)


def validation_rule(error_type: str, *, is_error: bool) -> str:
    """Return the rule of a finding of `moor validate`, which may have no type."""
    return error_type or (NOT_DECODED if is_error else API_WARNING)


def lint_rules(rules: tuple[Rule, ...]) -> tuple[ReportRule, ...]:
    """Return the rules of `moor lint` as those of a report."""
    return (*map(_lint_rule, rules), UNREADABLE_RULE)


def _lint_rule(rule: Rule) -> ReportRule:
    needs = f" Applied if {rule.needs.value} are given." if rule.needs.value else ""
    kinds = ", ".join(sorted(rule.about))
    text = f"Finds {rule.summary}. Looks at {kinds}.{needs} `--disable {rule.id}` turns it off."
    level = FindingLevel(rule.severity.value)
    return ReportRule(rule.id, level, rule.summary, text, _DRA)
