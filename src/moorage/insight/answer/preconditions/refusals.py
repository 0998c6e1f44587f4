"""Objects that an API server refuses and a pod waits for: the error in plain words, and its repair.

    error of validation ─► field, type, value, detail ─ the first repair that knows it ─► edits

A repair is offered if it makes the whole object valid and gives the pod a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.errors import DecodeError
from moorage.claims.pod_claims import controller_of
from moorage.insight.answer.changes.edits import ObjectChange, edited_tree
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.preconditions.refusal_repairs import Refusal, Repair, repair_of
from moorage.insight.messages import fitting
from moorage.insight.snapshot.written_objects import RefusedObject
from moorage.validation.registry import before_create

NOUNS: Final = {"ResourceClaimTemplate": "template", "ResourceClaim": "claim", "Pod": "pod"}
ROUNDS_MAX: Final = 4
_ERROR: Final = re.compile(
    r"(?P<field>[^\s:]+): (?P<type>[A-Z][a-z]+(?: [a-z]+)*)(?:: (?P<rest>.*))?", re.DOTALL
)
_JSON_VALUE: Final = re.compile(r'("(?:[^"\\]|\\.)*"|\{.*\}|\[.*\]|[^:]*): (.*)', re.DOTALL)


def refused_pod(case: Case) -> Iterator[Finding]:
    """Find why the pod, or the workload that makes it, is refused."""
    owner = controller_of(case.pod.metadata)
    keys = {("Pod", case.namespace, case.pod.metadata.name)}
    if owner is not None:
        keys.add((owner.kind, case.namespace, owner.name))
    for each in case.refused:
        if each[:3] in keys:
            yield refused_object(case, each)


def refused_object(case: Case, refused: RefusedObject) -> Finding:
    """Return why an API server does not take an object, and the repair."""
    title = f"{NOUNS.get(refused.kind, refused.kind)} {refused.name}"
    errors = [error for reason in refused.reasons if (error := parsed(reason)) is not None]
    tree, repairs, left = _repaired(case, refused)
    first = repairs[0] if repairs else None
    cause = _cause(title, errors[0] if errors else None, refused.reasons[0], first)
    if first is not None and not first.edits:
        return Finding(cause, (Proposal(first.text, first.rank),))
    if first is None or left:
        place = f" at {errors[0].field}" if errors else ""
        said = f"correct {title}{place}: moor validate shows the line"
        return Finding(cause, (Proposal(said, FixRank.REPAIR),))
    change = ObjectChange(refused.kind, refused.namespace, refused.name, new=tree)
    text = "; ".join(dict.fromkeys(each.text for each in repairs))
    return Finding(cause, (Proposal(text, first.rank, (change,)),))


def _repaired(case: Case, refused: RefusedObject) -> tuple[Any, list[Repair], tuple[str, ...]]:
    """Return the object with all known repairs, these, and the errors that are left.

    An error may hide others, which show only once it is repaired.
    """
    tree, reasons = refused.tree, refused.reasons
    found: list[Repair] = []
    for _ in range(ROUNDS_MAX):
        now = refused._replace(tree=tree, reasons=reasons)
        errors = [error for reason in reasons if (error := parsed(reason)) is not None]
        repairs = [each for error in errors if (each := repair_of(case, now, error)) is not None]
        edits = list({repr(edit): edit for each in repairs for edit in each.edits}.values())
        found += repairs
        if not edits:
            break
        try:
            tree = edited_tree(tree, edits)
        except (LookupError, TypeError):
            break
        reasons = tuple(_errors_of(case, tree, refused.namespace))
        if not reasons:
            break
    return tree, found, reasons


def _errors_of(case: Case, tree: Any, namespace: str) -> Iterator[str]:
    """Yield why an API server would not take an object."""
    try:
        kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
        value = decode_tree(tree, kind.struct).value
    except (DecodeError, LookupError) as error:
        yield str(error)
        return
    result = before_create(value, kind, case.context, namespace=namespace)
    yield from map(str, result.errors)
    if result.refused is not None:
        yield result.refused


def parsed(reason: str) -> Refusal | None:
    """Return the parts of an error as Kubernetes writes it; None if it is written otherwise."""
    found = _ERROR.fullmatch(reason)
    if found is None:
        field, colon, detail = reason.partition(": ")
        return Refusal(field, "", "", detail) if colon and " " not in field else None
    rest = found["rest"] or ""
    value, detail = "", rest
    if found["type"] in ("Invalid value", "Unsupported value", "Not found", "Duplicate value"):
        parts = _JSON_VALUE.fullmatch(rest)
        value, detail = (parts[1], parts[2]) if parts is not None else (rest, "")
    return Refusal(found["field"], found["type"], value.strip('"'), detail)


def _cause(title: str, error: Refusal | None, reason: str, repair: Repair | None) -> str:
    """Return the first error in plain words, as short as it must be."""
    if repair is not None and repair.cause:
        return f"{title} is refused: {repair.cause}"
    if error is None:
        return f"{title} is refused: {reason}"
    field = re.sub(r"^spec\.(template\.spec\.|spec\.)?", "", error.field)
    value = "" if error.value.startswith(("{", "[")) else error.value
    kind = error.type.lower()
    texts = [
        f"{title} is refused: {field}: {kind} {value}: {error.detail}",
        f"{title} is refused: {field}: {value or kind}: {error.detail}",
        f"{title} is refused: {field}: {error.detail or kind}",
        f"{title} is refused at {field}: {kind} {value}",
    ]
    tidy = [
        re.sub(r"\s+", " ", text).replace(" :", ":").replace("::", ":").rstrip(": ")
        for text in texts
    ]
    return fitting(*tidy)
