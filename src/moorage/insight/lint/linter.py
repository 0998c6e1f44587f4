"""Puts every rule to every object.

objects ─ LintContext: devices, classes, results of expressions, and the other objects
   └──── Case ─ every rule ─ Findings, in the order of the files
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from moorage.api.field_path import Place, render
from moorage.insight.lint import (
    claim_rules,
    constraint_rules,
    pod_rules,
    pool_rules,
    selector_rules,
    slice_rules,
)
from moorage.insight.lint.context import LintContext
from moorage.insight.lint.rule import (
    ANYTHING,
    NEEDED_KINDS,
    SURROUNDING_KINDS,
    Case,
    Kinds,
    Needs,
    Oddity,
    Rule,
    Severity,
)
from moorage.insight.lint.subjects import LintObject
from moorage.insight.snapshot.unread import UnreadKind

KINDS: Kinds = ANYTHING | SURROUNDING_KINDS

RULES: tuple[Rule, ...] = (
    *claim_rules.RULES,
    *selector_rules.RULES,
    *constraint_rules.RULES,
    *slice_rules.RULES,
    *pool_rules.RULES,
    *pod_rules.RULES,
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


def rules_that_run(context: LintContext, *, disabled: Collection[str] = ()) -> tuple[Rule, ...]:
    """Return the rules whose needs are met."""
    has = _present(context)
    return tuple(rule for rule in RULES if has[rule.needs] and rule.id not in disabled)


def lacking(subjects: Iterable[LintObject], context: LintContext) -> tuple[Rule, ...]:
    """Return the rules about these objects whose needs are not met."""
    given = tuple(subjects)
    kinds = {subject.kind.name for subject in given}
    unread = tuple(rule for rule, _ in hindered(given, context))
    has = _present(context)
    # If no object refers to any, nothing is lost.
    unwanted = {
        Needs.NAMESPACES: not context.objects.has_admin_access,
        Needs.CLAIMS: not context.objects.users,
        Needs.TEMPLATES: not context.objects.has_template_users,
        Needs.GROUPS: not context.objects.members,
    }
    return tuple(
        rule
        for rule in RULES
        if rule in unread
        or (not has[rule.needs] and rule.about & kinds and not unwanted.get(rule.needs, False))
    )


def hindered(
    subjects: Iterable[LintObject], context: LintContext
) -> Iterator[tuple[Rule, UnreadKind]]:
    """Yield the rules that some objects go without, and what could not be read for them."""
    spaces = {(each.kind.name, each.value.metadata.namespace) for each in subjects}
    for rule in RULES if context.unread else ():
        found = (
            hidden
            for kind, space in spaces
            if kind in rule.about
            for hidden in _hidden(rule, space, context)
        )
        yield from ((rule, hidden) for hidden in islice(found, 1))


def _hidden(rule: Rule, namespace: str, context: LintContext) -> tuple[UnreadKind, ...]:
    """Return what a rule needs about an object in a namespace and could not be read."""
    kind = NEEDED_KINDS.get(rule.needs)
    return () if kind is None else context.unread.hidden((kind,), namespace)


def _present(context: LintContext) -> dict[Needs, bool]:
    objects = context.objects
    return {
        Needs.NOTHING: True,
        Needs.CLASSES: bool(context.classes),
        Needs.DEVICES: bool(context.devices.devices),
        Needs.NODES: bool(objects.nodes),
        Needs.NAMESPACES: bool(objects.namespaces),
        Needs.CLAIMS: bool(objects.claims),
        Needs.TEMPLATES: bool(objects.templates),
        Needs.GROUPS: bool(objects.groups),
    }


def lint(
    subjects: Iterable[LintObject], context: LintContext, *, disabled: Collection[str] = ()
) -> list[Finding]:
    """Return the findings about the objects, in the order of their texts."""
    rules = rules_that_run(context, disabled=disabled)
    by_kind = {kind: tuple(rule for rule in rules if kind in rule.about) for kind in KINDS}
    return [
        finding
        for subject in subjects
        for finding in _lint_one(subject, context, by_kind.get(subject.kind.name, ()))
    ]


def _lint_one(subject: LintObject, context: LintContext, rules: tuple[Rule, ...]) -> list[Finding]:
    if not rules:
        return []
    case = Case(subject, context)
    found = list(_findings(case, rules))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _findings(case: Case, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    namespace = case.subject.value.metadata.namespace
    for rule in rules:
        if case.context.unread and _hidden(rule, namespace, case.context):
            continue
        for oddity in dict.fromkeys(_oddities(case, rule)):
            yield _finding(rule, case.subject, oddity)


def _oddities(case: Case, rule: Rule) -> tuple[Oddity, ...]:
    """Return what a rule finds; claims that ask alike, and most do, share the answer."""
    if not rule.is_shared or case.asked is None:
        return case.once(rule.check)
    known = case.context.shared_findings
    key = (rule.id, case.asked)
    if key not in known:
        known[key] = case.once(rule.check)
    return known[key]


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
