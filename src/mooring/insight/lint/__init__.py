"""What is odd about claims, templates, classes, taint rules, slices and pods.

    objects ─ world: devices, classes, what expressions give, and the objects around
       └──── case ─ every rule ─ Findings, in the order of the files

The rules are tables of small functions, one table a module; each function yields what it finds in
one case.

    cases                                     what a rule is given, and what it gives back
    world, surroundings, pools, sightings     what is known besides the object at hand
    expression_rules, device_rules, constraint_rules     rules about what selects devices
    object_rules                              rules about objects as such
    slice_rules, pool_rules, attribute_rules  rules about what drivers publish
    pod_rules, pod_claim_rules, sharing_rules     rules about pods and the claims that they use
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mooring.api.codec import Place
from mooring.api.fieldpath import render
from mooring.insight.lint import (
    attribute_rules,
    constraint_rules,
    device_rules,
    expression_rules,
    object_rules,
    pod_claim_rules,
    pod_rules,
    pool_rules,
    sharing_rules,
    slice_rules,
)
from mooring.insight.lint.cases import (
    ANYTHING,
    SURROUNDING_KINDS,
    Case,
    Kinds,
    Needs,
    Oddity,
    Rule,
    Severity,
)
from mooring.insight.lint.context import LintContext, ObjectIndex
from mooring.insight.lint.subjects import LintObject

__all__ = [
    "KINDS",
    "RULES",
    "RULE_IDS",
    "Finding",
    "Needs",
    "Rule",
    "Severity",
    "ObjectIndex",
    "LintContext",
    "lacking",
    "lint",
    "rules_that_run",
]

KINDS: Kinds = ANYTHING | SURROUNDING_KINDS

RULES: tuple[Rule, ...] = (
    *expression_rules.RULES,
    *object_rules.RULES,
    *device_rules.RULES,
    *constraint_rules.RULES,
    *slice_rules.RULES,
    *pool_rules.RULES,
    *attribute_rules.RULES,
    *pod_rules.RULES,
    *pod_claim_rules.RULES,
    *sharing_rules.RULES,
)

RULE_IDS: tuple[str, ...] = tuple(rule.id for rule in RULES)


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


def rules_that_run(world: LintContext, *, disabled: Collection[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that have what they need."""
    has = _present(world)
    return tuple(rule for rule in RULES if has[rule.needs] and rule.id not in disabled)


def lacking(subjects: Iterable[LintObject], world: LintContext) -> tuple[Rule, ...]:
    """Return the rules that would look at these objects, had they what they need."""
    kinds = {subject.kind.name for subject in subjects}
    has = _present(world)
    # Where no object names any, it is no loss that none is given.
    unwanted = {
        Needs.NAMESPACES: not world.around.has_admin_access,
        Needs.CLAIMS: not world.around.users,
        Needs.TEMPLATES: not world.around.has_template_users,
        Needs.GROUPS: not world.around.members,
    }
    return tuple(
        rule
        for rule in RULES
        if not has[rule.needs] and rule.about & kinds and not unwanted.get(rule.needs, False)
    )


def _present(world: LintContext) -> dict[Needs, bool]:
    around = world.around
    return {
        Needs.NOTHING: True,
        Needs.CLASSES: bool(world.classes),
        Needs.DEVICES: bool(world.fleet.devices),
        Needs.NODES: bool(around.nodes),
        Needs.NAMESPACES: bool(around.namespaces),
        Needs.CLAIMS: bool(around.claims),
        Needs.TEMPLATES: bool(around.templates),
        Needs.GROUPS: bool(around.groups),
    }


def lint(
    subjects: Iterable[LintObject], world: LintContext, *, disabled: Collection[str] = ()
) -> list[Finding]:
    """Return what is odd about the objects, in the order of their texts."""
    rules = rules_that_run(world, disabled=disabled)
    by_kind = {kind: tuple(rule for rule in rules if kind in rule.about) for kind in KINDS}
    return [
        finding
        for subject in subjects
        for finding in _lint_one(subject, world, by_kind.get(subject.kind.name, ()))
    ]


def _lint_one(subject: LintObject, world: LintContext, rules: tuple[Rule, ...]) -> list[Finding]:
    if not rules:
        return []
    case = Case(subject, world)
    found = list(_findings(case, rules))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _findings(case: Case, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    for rule in rules:
        for oddity in dict.fromkeys(case.once(rule.check)):
            yield _finding(rule, case.subject, oddity)


def _finding(rule: Rule, subject: LintObject, oddity: Oddity) -> Finding:
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


# MOVED
Surroundings = ObjectIndex  # MOVED
World = LintContext  # MOVED
