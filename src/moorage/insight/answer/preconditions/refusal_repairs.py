"""Repairs of objects that an API server refuses: what was probably meant.

To add one: write a function from a case, the refused object and its error to a Repair or None, and
list it in `_REPAIRS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from moorage.api.gates import Gate
from moorage.insight.answer.changes.edits import REMOVED, Edit, EditPath
from moorage.insight.answer.finding import Case, FixRank
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.respelling import respelt
from moorage.insight.messages import listed, nearest
from moorage.insight.snapshot.written_objects import RefusedObject

_AMOUNT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGTPEkmgtpe])([iI]?)[bB]?\s*")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_QUOTED: Final = re.compile(r'"([^"]*)"')
_ENTRY_KEYS: Final = ("name", "resourceClaimName", "resourceClaimTemplateName")


class Refusal(NamedTuple):
    """An error of validation."""

    field: str
    type: str
    value: str  # as it was written; a whole object is JSON
    detail: str

    @property
    def path(self) -> EditPath:
        """The place of the error in the object."""
        steps = _STEP.findall(self.field)
        return tuple(name or (int(index) if index.isdigit() else index) for name, index in steps)


class Repair(NamedTuple):
    """Edits of a refused object, and the mistake in plain words."""

    text: str
    edits: tuple[Edit, ...]
    cause: str = ""
    rank: FixRank = FixRank.REPAIR


RepairOf = Callable[[Case, RefusedObject, Refusal], Repair | None]


def repair_of(case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return the repair of an error, if what was meant can be told."""
    for repair in _REPAIRS:
        try:
            found = repair(case, refused, error)
        except (LookupError, TypeError, AttributeError, ValueError):
            continue  # The object is not built as the repair expects.
        if found is not None:
            return found
    return None


def _at(tree: Any, path: Iterable[Any]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _meant(value: str, known: Iterable[str]) -> str | None:
    """Return what was meant: a similar name, or the only one."""
    names = sorted(set(known))
    return nearest(value, names) or (names[0] if len(names) == 1 else None)


def _hint(meant: str | None, known: Iterable[str]) -> str:
    return f"did you mean {meant}?" if meant else f"there is {listed(sorted(known)) or 'none'}"


# --- names and values -----------------------------------------------------------------------


def _unsupported(_case: Case, _refused: RefusedObject, error: Refusal) -> Repair | None:
    if error.type != "Unsupported value":
        return None
    known = _QUOTED.findall(error.detail)
    meant = nearest(error.value, known)
    if meant is None:
        return None
    last = error.path[-1]
    return Repair(
        f"use {meant} instead of {error.value} for {last}",
        (Edit(error.path, meant),),
        f"{last} {error.value} does not exist: did you mean {meant}?",
    )


def _claim_of_container(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    if error.type != "Not found" or "resourceClaims" not in error.detail:
        return None
    known = [name.strip() for name in error.detail.rpartition(": ")[2].split(",")]
    meant = _meant(error.value, known)
    container = _at(refused.tree, error.path[:-3]).get("name", "")
    cause = f"container {container} uses claim {error.value}, which the pod does not list: "
    if meant is None:
        return None
    return Repair(
        f"use claim {meant} instead of {error.value} in container {container}",
        (Edit((*error.path, "name"), meant),),
        cause + _hint(meant, known),
    )


def _request_of_constraint(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    if "must be the name of a request" not in error.detail:
        return None
    end = error.path.index("devices") + 1
    requests = _at(refused.tree, error.path[:end])["requests"]
    known = [each["name"] for each in requests]
    known += [f"{e['name']}/{s['name']}" for e in requests for s in e.get("firstAvailable", ())]
    meant = _meant(error.value, known)
    field = ".".join(str(step) for step in error.path[end : end + 1])
    if meant is None:
        return None
    return Repair(
        f"name request {meant} instead of {error.value} in {field}",
        (Edit(error.path, meant),),
        f"{field} name request {error.value}, which does not exist: {_hint(meant, known)}",
    )


def _domain_of_attribute(case: Case, _refused: RefusedObject, error: Refusal) -> Repair | None:
    if "fully qualified" not in error.detail:
        return None
    known = sorted(
        f"{domain}/{name}"
        for device in case.fleet.devices[:1000]
        if device.variables is not None
        for domain, entries in device.variables["device"]["attributes"].items()
        for name in entries
    )
    named = [each for each in dict.fromkeys(known) if each.rpartition("/")[2] == error.value]
    meant = named[0] if named else nearest(error.value, known)
    if meant is None:
        return None
    return Repair(
        f"compare {meant} instead of {error.value}",
        (Edit(error.path, meant),),
        f"{error.path[-1]} {error.value} lacks its domain: did you mean {meant}?",
    )


# --- fields ---------------------------------------------------------------------------------


def _gate_of_alternatives(case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return what became of firstAvailable where its gate is off; nothing repairs that here."""
    request = _at(refused.tree, error.path)
    if "`exactly` or `firstAvailable`" not in error.detail or "firstAvailable" not in request:
        return None
    if case.context.enabled(Gate.DRA_PRIORITIZED_LIST):
        return None
    first = request["firstAvailable"][0]
    exactly = {key: value for key, value in first.items() if key != "name"}
    name = request.get("name", "")
    return Repair(
        f"ask for the first alternative of request {name} in exactly, or have an administrator "
        "switch feature gate DRAPrioritizedList on",
        (Edit(error.path, {"name": name, "exactly": exactly}),),
        f"firstAvailable of request {name} is dropped: feature gate DRAPrioritizedList is off",
        FixRank.LESS,
    )


def _without_exactly(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return a request in the form of v1: earlier versions had no `exactly`."""
    if "`exactly` or `firstAvailable`" not in error.detail:
        return None
    request = _at(refused.tree, error.path)
    name = request.get("name", "")
    if "deviceClassName" not in request:
        return None
    exactly = {key: value for key, value in request.items() if key != "name"}
    return Repair(
        f"write what request {name} wants below exactly, as v1 does",
        (Edit(error.path, {"name": name, "exactly": exactly}),),
        f"request {name} has deviceClassName outside exactly, as only v1beta1 does",
    )


def _misspelt_field(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return the field that is required, where a similar one is written."""
    if error.type != "Required value":
        return None
    *way, last = error.path
    parent = _at(refused.tree, way)
    written = nearest(str(last), [key for key in parent if key != last])
    if written is None or not isinstance(parent[written], str | int | list):
        return None
    path = (*way, last)
    return Repair(
        f"write {last} instead of {written}",
        (Edit(path, parent[written]), Edit((*way, written), REMOVED)),
        f"field {written} does not exist: did you mean {last}?",
    )


def _claim_entry(case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return an entry of a pod with exactly one of claim and template."""
    if "resourceClaimTemplateName" not in error.detail:
        return None
    entry = _at(refused.tree, error.path)
    name = entry.get("name", "")
    if "at most one" in error.detail:
        key = ("ResourceClaimTemplate", refused.namespace, entry["resourceClaimTemplateName"])
        is_template = case.sources.find(*key) is not None
        kept, gone = _ENTRY_KEYS[2 - (not is_template)], _ENTRY_KEYS[1 + (not is_template)]
        return Repair(
            f"keep {kept} and remove {gone} in entry {name}",
            (Edit((*error.path, gone), REMOVED),),
            f"entry {name} has both resourceClaimName and resourceClaimTemplateName: take one",
        )
    source = entry.get("source")
    if isinstance(source, dict):
        return Repair(
            f"write what is below source in entry {name} itself, as Kubernetes does since 1.31",
            (Edit(error.path, {"name": name, **source}),),
            f"entry {name} of resourceClaims has field source, which is gone since Kubernetes 1.31",
        )
    for key, value in entry.items():
        meant = nearest(key, _ENTRY_KEYS[1:]) if key not in _ENTRY_KEYS else None
        if meant is not None:
            return Repair(
                f"write {meant} instead of {key} in entry {name}",
                (Edit((*error.path, meant), value), Edit((*error.path, key), REMOVED)),
                f"field {key} of entry {name} does not exist: did you mean {meant}?",
            )
    return None


def _count_of_all(_case: Case, _refused: RefusedObject, error: Refusal) -> Repair | None:
    if "when allocationMode is 'All'" not in error.detail:
        return None
    return Repair(
        f"remove count {error.value}, or use allocationMode ExactCount",
        (Edit(error.path, REMOVED),),
        f"count {error.value} is given beside allocationMode All, which takes all devices",
    )


# --- amounts --------------------------------------------------------------------------------


def _unit(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return an amount with a unit of Kubernetes: 4GB is 4G, 4 gi is 4Gi."""
    if "quantities must match" not in error.detail and "quantity" not in error.detail.lower():
        return None
    written = str(_at(refused.tree, error.path))
    found = _AMOUNT.fullmatch(written)
    if found is None:
        return None
    prefix, binary = found[2].upper(), "i" if found[3] else ""
    if prefix == "K" and not binary:
        prefix = "k"
    meant = f"{found[1]}{prefix}{binary}"
    return Repair(
        f"write {meant} instead of {written} for {error.path[-1]}",
        (Edit(error.path, meant),),
        f"{error.path[-1]} {written} is no amount: did you mean {meant}?",
    )


def _limit_below_request(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    found = re.search(r"must be (less than or )?equal to (\S+) limit", error.detail)
    if found is None:
        return None
    name, resources = found[2], error.path[:-1]
    container = _at(refused.tree, resources[:-1]).get("name", "")
    requested = _at(refused.tree, resources)["requests"][name]
    limit = _at(refused.tree, resources)["limits"][name]
    if found[1] is None:
        return Repair(
            f"request {limit} of {name} in container {container}, like its limit",
            (Edit((*resources, "requests", name), limit),),
            f"container {container} requests {requested} of {name} but has limit {limit}: they "
            "must be equal",
        )
    return Repair(
        f"raise the limit of {name} in container {container} to {requested}",
        (Edit((*resources, "limits", name), requested),),
        f"container {container} requests {requested} of {name}, more than its limit {limit}",
    )


def _limit_missing(_case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    if "Limit must be set" not in error.detail:
        return None
    resources = error.path[:-1]
    container = _at(refused.tree, resources[:-1]).get("name", "")
    tree = _at(refused.tree, resources)
    limits = tree.get("limits", {})
    missing = {
        name: amount
        for name, amount in tree["requests"].items()
        if "/" in name and name not in limits
    }
    names = listed(list(missing))
    if not missing:
        return None
    return Repair(
        f"set the limit of {names} in container {container}, equal to its request",
        tuple(Edit((*resources, "limits", n), amount) for n, amount in missing.items()),
        f"container {container} requests {names} without a limit, which extended resources need",
    )


# --- expressions ------------------------------------------------------------------------------


def _expression(case: Case, refused: RefusedObject, error: Refusal) -> Repair | None:
    """Return an expression with the operator or name that was meant."""
    if error.path[-1] != "expression" or error.type != "Invalid value":
        return None
    written = str(_at(refused.tree, error.path))
    lists = Gate.DRA_LIST_TYPE_ATTRIBUTES
    if ".includes(" in written and not case.context.enabled(lists):
        return Repair(
            f"have an administrator switch feature gate {lists} on",
            (),
            f"includes() in a selector needs feature gate {lists}, which is off in this cluster",
            FixRank.ADMINISTRATOR,
        )
    compiler, is_derived = case.around.compiler, "derivedAttributes" in error.path
    devices = Devices(case.fleet.devices, case.fleet, is_class_known=False)
    option = respelt(written, error.detail, compiler, devices, derived=is_derived)
    if option is None:
        return None
    return Repair(option.text, (Edit(error.path, option.whole),), option.cause)


_REPAIRS: Final[tuple[RepairOf, ...]] = (
    _unsupported,
    _claim_of_container,
    _request_of_constraint,
    _domain_of_attribute,
    _gate_of_alternatives,
    _without_exactly,
    _claim_entry,
    _count_of_all,
    _unit,
    _limit_below_request,
    _limit_missing,
    _misspelt_field,
    _expression,
)
