"""Claims and templates that an API server refuses for their constraints or derived attributes.

    requests: [gpu, nics]                 ─► the request that was meant
    matchAttribute: numaNode              ─► an attribute that devices have, with its domain
    matchAttributes: …                    ─► the field that was meant
    a derived attribute nobody compares   ─► the name that a constraint compares
    an expression of a wrong type         ─► the expression in a type that can be compared

The object is not in the cluster, so a repair is the whole object, written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from moorage.api.gates import Gate
from moorage.cel.device import COST_LIMIT
from moorage.insight.answer.changes.edits import (
    Edit,
    EditPath,
    ObjectChange,
    edited_tree,
    value_at,
)
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.expressions.evaluation import (
    ExpressionEvaluator,
    evaluator_of,
)
from moorage.insight.expressions.published_devices import qualified
from moorage.insight.messages import listed, nearest
from moorage.insight.snapshot.written_objects import RefusedObject

_STEP: Final = re.compile(r"([A-Za-z]+)|\[(\d+)\]")
_TYPE: Final = re.compile(r"must evaluate to .*, not (.*)$", re.DOTALL)
_COMPILATION: Final = re.compile(r"compilation failed: (?:ERROR: <input>:[0-9:]+ )?([^\n]*)")
_CONVERTED: Final = (
    *("{}.orValue([])", "{}.orValue(-1)", '{}.orValue("unknown")', "{}.asInteger()"),
    *("int({})", "string({})", "[{}]"),
)
FIELDS: Final = ("matchAttribute", "distinctAttribute")
NAMES_TRIED_MAX: Final = 2
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
        for find in (
            _unknown_request,
            _no_attribute,
            _no_field,
            _unreferenced,
            _wrong_type,
            _uncompiled,
        ):
            finding = find(case, noun, refused, refusal)
            if finding is not None:
                return finding
    return None


def _path(place: str) -> EditPath:
    return tuple(name or int(number) for name, number in _STEP.findall(place))


def _repaired(refused: RefusedObject, *edits: Edit) -> tuple[ObjectChange, ...]:
    try:
        tree = edited_tree(refused.tree, edits)
    except (LookupError, TypeError):
        return ()
    return (ObjectChange(refused.kind, refused.namespace, refused.name, new=tree),)


def _requests(refused: RefusedObject, path: EditPath) -> list[Any]:
    """Return the requests of the claim in which a path is."""
    devices = (
        value_at(refused.tree, path[: path.index("devices") + 1]) if "devices" in path else None
    )
    found = devices.get("requests") if isinstance(devices, dict) else None
    return [each for each in found or () if isinstance(each, dict)]


def _unknown_request(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    name = value_at(refused.tree, refusal.path)
    if NO_REQUEST not in refusal.message or not isinstance(name, str):
        return None
    known = [str(each.get("name")) for each in _requests(refused, refusal.path)]
    known += [
        f"{each.get('name')}/{one.get('name')}"
        for each in _requests(refused, refusal.path)
        for one in each.get("firstAvailable") or ()
        if isinstance(one, dict)
    ]
    named = value_at(refused.tree, refusal.path[:-1])
    left = [each for each in known if each not in named and "/" not in each]
    meant = nearest(name, known) or (left[0] if len(left) == 1 else None)
    cause = f"a constraint of {noun} {refused.name} names request {name}, which does not exist"
    if meant is None:
        text = f"name a request that exists: {listed(known)}"
        return Finding(f"{cause}: there is {listed(known)}", (Proposal(text, FixRank.REPAIR),))
    changes = _repaired(refused, Edit(refusal.path, meant))
    text = f"use request {meant} instead of {name} in the constraint"
    return Finding(f"{cause}: did you mean {meant}?", (Proposal(text, FixRank.REPAIR, changes),))


def _no_attribute(
    case: Case, noun: str, refused: RefusedObject, refusal: _Refusal
) -> Finding | None:
    name = value_at(refused.tree, refusal.path)
    field = refusal.path[-1] if refusal.path else ""
    if field not in FIELDS or "Invalid value" not in refusal.message or not isinstance(name, str):
        return None
    known = similar_names(name, case)
    cause = f"{field} {name} of {noun} {refused.name} is no name of an attribute"
    if not known:
        text = f"name an attribute as DOMAIN/NAME in {noun} {refused.name}"
        return Finding(f"{cause}: it has to be DOMAIN/NAME", (Proposal(text, FixRank.REPAIR),))
    proposals = tuple(
        Proposal(
            f"use {each} instead of {name} in the constraint",
            FixRank.REPAIR,
            _repaired(refused, Edit(refusal.path, each)),
        )
        for each in known[:NAMES_TRIED_MAX]
    )
    return Finding(f"{cause}: did you mean {known[0]}?", proposals)


def similar_names(name: str, case: Case) -> list[str]:
    """Return the published attributes that a name may mean, those of most devices first."""
    plain = _plain(name.rpartition("/")[2])
    counts = {
        qualified(read) or "": count
        for read, count in case.fleet.carriers.items()
        if read.field == "attributes" and read.name and _plain(read.name) == plain
    }
    return sorted(counts, key=lambda each: (-counts[each], each))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _no_field(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    path = refusal.path
    if path and path[-1] in FIELDS:
        path = path[:-1]
    constraint = value_at(refused.tree, path)
    is_about = "constraints" in path and "Required value" in refusal.message
    if not is_about or not isinstance(constraint, dict):
        return None
    if "distinctAttribute" in constraint:
        gate = Gate.DRA_CONSUMABLE_CAPACITY
        text = f"turn on feature gate {gate} (an administrator's change)"
        return Finding(
            f"distinctAttribute of {noun} {refused.name} needs feature gate {gate}, which is off",
            (Proposal(text, FixRank.ADVICE),),
        )
    for field, value in constraint.items():
        meant = nearest(str(field), FIELDS)
        if meant is not None and meant not in constraint:
            edits = (Edit((*path, meant), value), Edit((*path, field)))
            text = f"use {meant} instead of {field} in the constraint"
            return Finding(
                f"a constraint of {noun} {refused.name} has no field {field}: did you mean "
                f"{meant}?",
                (Proposal(text, FixRank.REPAIR, _repaired(refused, *edits)),),
            )
    return None


def _unreferenced(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    name = value_at(refused.tree, refusal.path)
    if UNREFERENCED not in refusal.message or not isinstance(name, str):
        return None
    prefix = refusal.path[: refusal.path.index("devices") + 1]
    constraints = (value_at(refused.tree, prefix) or {}).get("constraints") or ()
    compared = [
        each[field]
        for each in constraints
        if isinstance(each, dict)
        for field in FIELDS
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
    expression = value_at(refused.tree, refusal.path)
    if found is None or "derivedAttributes" not in refusal.path or not isinstance(expression, str):
        return None
    name = value_at(refused.tree, (*refusal.path[:-1], "name"))
    cause = (
        f"derived attribute {name} of {noun} {refused.name} gives {_type_text(found[1])}; only "
        "string, int, bool, version and lists of these can be compared"
    )
    proposals = tuple(
        Proposal(f"write {new}", FixRank.REPAIR, _repaired(refused, Edit(refusal.path, new)))
        for new in _in_other_types(case, expression)
    )
    advice = "write an expression of one of these types: moor cel --derived tries it"
    return Finding(cause, (*proposals, Proposal(advice, FixRank.ADVICE)))


def _type_text(name: str) -> str:
    if name.startswith("optional_type"):
        return "an optional value"
    short = name.partition("(")[0].rpartition(".")[2].lower()
    return f"a {short}"


def _uncompiled(
    case: Case,  # noqa: ARG001
    noun: str,
    refused: RefusedObject,
    refusal: _Refusal,
) -> Finding | None:
    found = _COMPILATION.search(refusal.message)
    if found is None or "derivedAttributes" not in refusal.path:
        return None
    name = value_at(refused.tree, (*refusal.path[:-1], "name"))
    what = f"derived attribute {name} of {noun} {refused.name}"
    text = f"correct the expression of {name}: moor cel --derived tries it on devices"
    return Finding(f"{what} does not compile: {found[1]}", (Proposal(text, FixRank.REPAIR),))


def _in_other_types(case: Case, expression: str) -> Iterator[str]:
    compiler = case.around.compiler
    inner = re.fullmatch(r"\s*(?:double|uint|dyn)\((.*)\)\s*", expression, re.DOTALL)
    bases = ([inner[1]] if inner else []) + [t.format(expression) for t in _CONVERTED]
    for base in bases:
        if base.endswith("[])") and not compiler.features.list_attributes:
            continue
        evaluator = evaluator_of(base, compiler, derived=True)
        if isinstance(evaluator, ExpressionEvaluator) and evaluator.compiled.cost_max <= COST_LIMIT:
            yield base
