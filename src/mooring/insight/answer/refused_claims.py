"""Claims and templates that an API server refuses for their constraints or derived attributes.

    requests: [gpu, nics]                 ─► the request that was meant
    a derived attribute nobody compares   ─► the name that a constraint compares
    an expression of a wrong type         ─► the expression in a type that can be compared

The object is not in the cluster, so a repair is the whole object, written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mooring.cel.device import COST_LIMIT
from mooring.insight.answer.edits import Edit, EditPath, ObjectChange, edited_tree
from mooring.insight.answer.finding import Case, Finding, FixRank, Proposal
from mooring.insight.expressions.evaluation import (
    ExpressionEvaluator,
    compiler_for,
    evaluator_of,
)
from mooring.insight.messages import listed, nearest
from mooring.insight.snapshot.builder import RefusedObject

_STEP: Final = re.compile(r"([A-Za-z]+)|\[(\d+)\]")
_TYPE: Final = re.compile(r"must evaluate to .*, not (.*)$", re.DOTALL)
_CONVERTED: Final = ("int({})", "string({})", "[{}]")
UNREFERENCED: Final = "must be referenced by at least one matchAttribute or distinctAttribute"
NO_REQUEST: Final = "must be the name of a request in the claim"


class _Refusal(NamedTuple):
    """An error of a refused object: its place, and what it says."""

    path: EditPath
    message: str


def refused_claim(case: Case, noun: str, refused: RefusedObject) -> Finding | None:
    """Return the mistake in a refused claim, and its repair; None for other mistakes."""
    for reason in refused.reasons:
        place, _, message = reason.partition(": ")
        refusal = _Refusal(_path(place), message)
        for find in (_unknown_request, _unreferenced, _wrong_type):
            finding = find(case, noun, refused, refusal)
            if finding is not None:
                return finding
    return None


def _path(place: str) -> EditPath:
    return tuple(name or int(number) for name, number in _STEP.findall(place))


def _at(tree: Any, path: EditPath) -> Any:
    """Return what is at a path of a tree; None if nothing is."""
    for step in path:
        try:
            tree = tree[step]
        except (LookupError, TypeError):
            return None
    return tree


def _repaired(refused: RefusedObject, *edits: Edit) -> tuple[ObjectChange, ...]:
    try:
        tree = edited_tree(refused.tree, edits)
    except (LookupError, TypeError):
        return ()
    return (ObjectChange(refused.kind, refused.namespace, refused.name, new=tree),)


def _requests(refused: RefusedObject, path: EditPath) -> list[Any]:
    """Return the requests of the claim in which a path is."""
    devices = _at(refused.tree, path[: path.index("devices") + 1]) if "devices" in path else None
    found = devices.get("requests") if isinstance(devices, dict) else None
    return [each for each in found or () if isinstance(each, dict)]


def _unknown_request(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    name = _at(refused.tree, refusal.path)
    if NO_REQUEST not in refusal.message or not isinstance(name, str):
        return None
    known = [str(each.get("name")) for each in _requests(refused, refusal.path)]
    known += [
        f"{each.get('name')}/{one.get('name')}"
        for each in _requests(refused, refusal.path)
        for one in each.get("firstAvailable") or ()
        if isinstance(one, dict)
    ]
    meant = nearest(name, known)
    cause = f"a constraint of {noun} {refused.name} names request {name}, which does not exist"
    if meant is None:
        text = f"name a request that exists: {listed(known)}"
        return Finding(f"{cause}: there is {listed(known)}", (Proposal(text, FixRank.REPAIR),))
    changes = _repaired(refused, Edit(refusal.path, meant))
    text = f"use request {meant} instead of {name} in the constraint"
    return Finding(f"{cause}: did you mean {meant}?", (Proposal(text, FixRank.REPAIR, changes),))


def _unreferenced(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    name = _at(refused.tree, refusal.path)
    if UNREFERENCED not in refusal.message or not isinstance(name, str):
        return None
    prefix = refusal.path[: refusal.path.index("devices") + 1]
    constraints = (_at(refused.tree, prefix) or {}).get("constraints") or ()
    fields = ("matchAttribute", "distinctAttribute")
    compared = [
        each[field]
        for each in constraints
        if isinstance(each, dict)
        for field in fields
        if isinstance(each.get(field), str)
    ]
    cause = f"derived attribute {name} of {noun} {refused.name} is compared by no constraint"
    meant = nearest(name, compared) or (compared[0] if len(compared) == 1 else None)
    if meant is None:
        text = f"add a constraint on {name}, or remove the derived attribute"
        return Finding(cause, (Proposal(text, FixRank.REPAIR),))
    changes = _repaired(refused, Edit(refusal.path, meant))
    text = f"name the derived attribute {meant} instead of {name}, as the constraint does"
    return Finding(f"{cause}: did you mean {meant}?", (Proposal(text, FixRank.REPAIR, changes),))


def _wrong_type(case: Case, noun: str, refused: RefusedObject, refusal: _Refusal) -> Finding | None:
    found = _TYPE.search(refusal.message)
    expression = _at(refused.tree, refusal.path)
    if found is None or "derivedAttributes" not in refusal.path or not isinstance(expression, str):
        return None
    name = _at(refused.tree, (*refusal.path[:-1], "name"))
    cause = (
        f"derived attribute {name} of {noun} {refused.name} gives a {found[1]}; only string, int, "
        "bool, version and lists of these can be compared"
    )
    proposals = tuple(
        Proposal(f"write {new}", FixRank.REPAIR, _repaired(refused, Edit(refusal.path, new)))
        for new in _in_other_types(case, expression)
    )
    advice = "write an expression of one of these types: moor cel --derived tries it"
    return Finding(cause, (*proposals, Proposal(advice, FixRank.ADVICE)))


def _in_other_types(case: Case, expression: str) -> Iterator[str]:
    compiler = compiler_for(case.context.gates, extensions=case.context.extensions)
    inner = re.fullmatch(r"\s*(?:double|uint|dyn)\((.*)\)\s*", expression, re.DOTALL)
    bases = ([inner[1]] if inner else []) + [t.format(expression) for t in _CONVERTED]
    for base in bases:
        evaluator = evaluator_of(base, compiler, derived=True)
        if isinstance(evaluator, ExpressionEvaluator) and evaluator.compiled.cost_max <= COST_LIMIT:
            yield base
