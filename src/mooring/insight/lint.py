"""What is odd about claims, templates, classes and taint rules.

    objects ─ world: devices, classes, what expressions give
       └──── case ─ every rule ─ Findings, in the order of the files

The rules are a table of small functions; each yields what it finds in one case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum, StrEnum
from typing import NamedTuple

from mooring.api.codec import Place
from mooring.api.fieldpath import render
from mooring.insight import constraint_rules, device_rules, expression_rules, object_rules
from mooring.insight.cases import Case, Oddity
from mooring.insight.objects import Object
from mooring.insight.world import World


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # Kubernetes refuses it, or scheduling aborts
    WARNING = "warning"  # it does not do what its author meant
    NOTE = "note"  # worth knowing


class Needs(Enum):
    """What must be among the objects for a rule to say anything."""

    NOTHING = ""
    CLASSES = "classes"
    DEVICES = "slices"


class Rule(NamedTuple):
    """A rule: its name, how bad what it finds is, and what it looks for."""

    id: str
    severity: Severity
    needs: Needs
    summary: str
    check: Callable[[Case], Iterable[Oddity]]


class Finding(NamedTuple):
    """One odd thing, where it is, and what to do about it."""

    rule: str
    severity: Severity
    source: str
    line: int
    column: int
    kind: str
    name: str
    field: str
    message: str
    remedy: str


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: tuple[Rule, ...] = (
    Rule(
        "does-not-compile",
        E,
        Needs.NOTHING,
        "an expression that Kubernetes refuses",
        expression_rules.does_not_compile,
    ),
    Rule(
        "too-expensive",
        E,
        Needs.NOTHING,
        "an expression, or all derived attributes of a claim, over the cost limit",
        expression_rules.too_expensive,
    ),
    Rule(
        "expensive",
        W,
        Needs.NOTHING,
        "an expression that may use half of the cost limit or more",
        expression_rules.expensive,
    ),
    Rule(
        "deprecated-form",
        W,
        Needs.NOTHING,
        "a form that Kubernetes 1.37 does not have, such as include() or device.name",
        object_rules.deprecated_form,
    ),
    Rule(
        "unknown-field",
        W,
        Needs.NOTHING,
        "a field that the kind does not have, or that is set twice",
        object_rules.unknown_field,
    ),
    Rule(
        "match-and-distinct",
        W,
        Needs.NOTHING,
        "a constraint with both matchAttribute and distinctAttribute",
        object_rules.match_and_distinct,
    ),
    Rule(
        "long-class-name",
        N,
        Needs.NOTHING,
        "a class whose name is too long for an implicit extended resource",
        object_rules.long_class_name,
    ),
    Rule(
        "unknown-class",
        W,
        Needs.CLASSES,
        "a request for a class that is not among the classes given",
        object_rules.unknown_class,
    ),
    Rule(
        "unknown-domain",
        W,
        Needs.DEVICES,
        "a domain in which no device has attributes or capacity",
        device_rules.unknown_domain,
    ),
    Rule(
        "unknown-attribute",
        W,
        Needs.DEVICES,
        "an attribute or capacity that no device has",
        device_rules.unknown_attribute,
    ),
    Rule(
        "missing-guard",
        E,
        Needs.DEVICES,
        "an attribute that only some devices have, read without has() or .?",
        device_rules.missing_guard,
    ),
    Rule(
        "run-time-error",
        E,
        Needs.DEVICES,
        "an expression that has no value for some device",
        device_rules.run_time_error,
    ),
    Rule(
        "never-true",
        W,
        Needs.DEVICES,
        "a comparison that is true for no device",
        device_rules.never_true,
    ),
    Rule(
        "matches-nothing",
        W,
        Needs.DEVICES,
        "selectors that no device passes, for no reason that another rule finds",
        device_rules.matches_nothing,
    ),
    Rule(
        "unknown-constraint-attribute",
        W,
        Needs.DEVICES,
        "a constraint on an attribute that no device of a request has",
        constraint_rules.unknown_constraint_attribute,
    ),
)

RULE_IDS: tuple[str, ...] = tuple(rule.id for rule in RULES)


def rules_that_run(world: World, *, disabled: Collection[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that have what they need."""
    has = {
        Needs.NOTHING: True,
        Needs.CLASSES: bool(world.classes),
        Needs.DEVICES: bool(world.fleet.devices),
    }
    return tuple(rule for rule in RULES if has[rule.needs] and rule.id not in disabled)


def lint(
    subjects: Iterable[Object], world: World, *, disabled: Collection[str] = ()
) -> list[Finding]:
    """Return what is odd about the objects, in the order of their texts."""
    rules = rules_that_run(world, disabled=disabled)
    return [finding for subject in subjects for finding in _lint_one(subject, world, rules)]


def _lint_one(subject: Object, world: World, rules: tuple[Rule, ...]) -> list[Finding]:
    case = Case(subject, world)
    found = list(_findings(case, rules))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _findings(case: Case, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    for rule in rules:
        for oddity in dict.fromkeys(case.once(rule.check)):
            yield _finding(rule, case.subject, oddity)


def _finding(rule: Rule, subject: Object, oddity: Oddity) -> Finding:
    place: Place = oddity.place
    line, column = subject.locate(place)
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        source=subject.document.source,
        line=line,
        column=column,
        kind=subject.kind.name,
        name=subject.full_name,
        field=render(place),
        message=oddity.message,
        remedy=oddity.remedy,
    )
