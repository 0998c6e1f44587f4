"""Objects that an API server refuses and a pod waits for: the error in plain words, and its repair.

    error of validation ─► field, type, value, detail ─ the first repair that knows it ─► edits

A repair is offered if it makes the whole object valid and gives the pod a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mooring.claims.pod_claims import controller_of
from mooring.insight.answer.edits import ObjectChange, edited_tree
from mooring.insight.answer.finding import CAUSE_LENGTH_MAX, Case, Finding, FixRank, Proposal
from mooring.insight.answer.refusal_repairs import Refusal, Repair, repair_of
from mooring.insight.snapshot.builder import RefusedObject

NOUNS: Final = {"ResourceClaimTemplate": "template", "ResourceClaim": "claim", "Pod": "pod"}
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
    repairs = [repair_of(case, refused, error) for error in errors]
    first = next((each for each in repairs if each is not None), None)
    cause = _cause(title, errors[0] if errors else None, refused.reasons[0], first)
    known = [each for each in repairs if each is not None]
    if first is not None and not first.edits:
        return Finding(cause, (Proposal(first.text, first.rank),))
    if first is None or len(known) < len(refused.reasons):
        place = f" at {errors[0].field}" if errors else ""
        said = f"correct {title}{place}: moor validate shows the line"
        return Finding(cause, (Proposal(said, FixRank.REPAIR),))
    edits = [edit for each in known for edit in each.edits]
    try:
        tree = edited_tree(refused.tree, edits)
    except (LookupError, TypeError):
        return Finding(cause, (Proposal(f"correct {title}: {first.text}", FixRank.REPAIR),))
    change = ObjectChange(refused.kind, refused.namespace, refused.name, new=tree)
    text = "; ".join(dict.fromkeys(each.text for each in known))
    return Finding(cause, (Proposal(text, first.rank, (change,)),))


def parsed(reason: str) -> Refusal | None:
    """Return the parts of an error as Kubernetes writes it; None if it is written otherwise."""
    found = _ERROR.fullmatch(reason)
    if found is None:
        return None
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
    tidy = [re.sub(r"\s+", " ", text).replace(" :", ":").rstrip(": ") for text in texts]
    return next((text for text in tidy if len(text) <= CAUSE_LENGTH_MAX), tidy[-1])
