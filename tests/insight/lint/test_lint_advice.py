"""What lint advises to write holds: made, it compiles, is valid, and fails on no device."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage.api.errors import DecodeError
from moorage.api.field_path import Place
from moorage.insight.answer.changes.edits import APPEND, Edit, EditPath, edited_tree
from moorage.insight.lint.linter import rules_that_run
from moorage.insight.lint.rule import Case
from moorage.insight.lint.subjects import LintObject, selections_of
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context
from tests.insight.linting import context_of, objects_of, world_of

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path
    for folder in ("tests/insight/situations", "examples/seeds", "examples/stories")
    for path in (ROOT / folder).rglob("*.yaml")
)
GATES = {
    "everything": context_of(),
    "no lists": context_of("DRAListTypeAttributes=false"),
    "kubernetes": context_of(preset="kubernetes-1.37"),
}
BROKEN = {"missing-guard", "run-time-error", "does-not-compile", "unknown-constraint-attribute"}
ABOUT_TYPES = {"different-types", "empty-list"}
WRITE = re.compile(r"^write `(.*)`$", re.DOTALL)
DERIVE = re.compile(r"in request (\S+) as `(.*?)`(?=,|$)", re.DOTALL)


class Advised(NamedTuple):
    """Advice, and the edits that follow it."""

    rule: str
    place: Place
    edits: tuple[Edit, ...]


def around(path: Path) -> list[Path]:
    """Return the files that belong to a claim: those of its story."""
    return sorted(path.parent.glob("*.yaml")) if "stories" in path.parts else [path]


def linted(objects: list[LintObject], context: Context) -> Iterator[tuple[LintObject, str, Any]]:
    world = world_of(objects, context)
    for subject in objects:
        case = Case(subject, world)
        for rule in rules_that_run(world):
            if subject.kind.name in rule.about:
                for oddity in rule.check(case):
                    yield subject, rule.id, oddity


def steps(place: Place) -> EditPath:
    """Return a place as the path of an edit."""
    return tuple(step if isinstance(step, int) else str(step) for step in place)


def advised(subject: LintObject, rule: str, oddity: Any) -> Advised | None:
    """Return the advice of a finding that is about an expression to write."""
    found = WRITE.match(oddity.remedy)
    if found is not None:
        return Advised(rule, oddity.place, (Edit(steps(oddity.place), found[1]),))
    if not oddity.remedy.startswith("derive "):
        return None
    name = oddity.remedy.split(" ")[1]
    edits = []
    for request, expression in DERIVE.findall(oddity.remedy):
        (selection,) = (s for s in selections_of(subject) if s.reference == request)
        own = [e.place for derived, e in selection.derived if derived == name]
        where = (*selection.place, "derivedAttributes", APPEND)
        value = {"name": name, "expression": expression}
        edits.append(Edit(steps(own[0]), expression) if own else Edit(steps(where), value))
    return Advised(rule, oddity.place, tuple(edits)) if edits else None


def followed(
    objects: list[LintObject], subject: LintObject, advice: Advised, context: Context
) -> tuple[LintObject, list[LintObject]]:
    """Return the object with the advice followed, and all objects."""
    tree = edited_tree(subject.document.tree, advice.edits)
    (changed,) = objects_of(json.dumps(tree), context)
    return changed, [changed if each is subject else each for each in objects]


def errors(subject: LintObject, context: Context) -> set[str]:
    """Return why an API server would refuse an object; other mistakes in it may stay."""
    result = before_create(subject.value, subject.kind, context, namespace="team")
    return {str(error.field) for error in result.errors}


def broken(subject: LintObject, objects: list[LintObject], context: Context) -> dict[Place, str]:
    """Return the places of an object at which something is broken."""
    return {
        oddity.place: f"{rule}: {oddity.message}"
        for each, rule, oddity in linted(objects, context)
        if each is subject and rule in BROKEN | ABOUT_TYPES
    }


def check(path: Path, gates: str) -> int:
    """Follow all advice for a file, and return how much there was."""
    context = GATES[gates]
    try:
        objects = [o for file in around(path) for o in objects_of(file.read_text("utf-8"), context)]
    except DecodeError:
        return 0  # a situation in which an object is refused
    count = 0
    for subject, rule, oddity in list(linted(objects, context)):
        advice = advised(subject, rule, oddity)
        if advice is None or rule not in BROKEN | ABOUT_TYPES:
            continue
        count += 1
        changed, everything = followed(objects, subject, advice, context)
        assert errors(changed, context) <= errors(subject, context), advice
        left = broken(changed, everything, context)
        for edit in advice.edits:
            place = edit.path if edit.path[-1] != APPEND else advice.place
            assert place not in left, (advice, left)
        assert advice.place not in left, (advice, left)
    return count


@pytest.mark.parametrize("gates", GATES)
def test_advice_that_is_followed_leaves_nothing_broken(gates: str) -> None:
    counts = {path.name: check(path, gates) for path in FILES}
    assert sum(counts.values()) > 3
