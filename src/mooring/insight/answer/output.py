"""Answers as text and as trees, and manifests with a fix made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from mooring.api.codec import to_tree
from mooring.api.documents import Document
from mooring.claims.pod_claims import controller_of
from mooring.insight.answer.edits import ObjectChange, edited_tree
from mooring.insight.answer.finding import Answer, Fix
from mooring.insight.explain.pods import Explanation
from mooring.insight.explain.report import evidence_lines, explanation_tree, name_of
from mooring.insight.messages import counted, full_name
from mooring.insight.snapshot.snapshot import Snapshot, key_of
from mooring.scheduler.scheduling_cycle import Pending

_SERVER_FIELDS: Final = (
    *("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"),
)


def title(alike: Sequence[Pending]) -> str:
    """Return the pods that an answer is about: `pod a/b`, or `97 pods of Deployment a/train`."""
    first = alike[0]
    if len(alike) == 1:
        return name_of(first)
    owner = controller_of(first.pod.metadata)
    if owner is None:
        return f"{counted(len(alike), 'pod')} such as {full_name(first.pod)}"
    namespace = first.pod.metadata.namespace
    return f"{counted(len(alike), 'pod')} of {owner.kind} {namespace}/{owner.name}"


def answer_lines(
    alike: Sequence[Pending], explanation: Explanation, answer: Answer
) -> Iterator[str]:
    """Yield the cause, the fixes, and the evidence."""
    yield f"{title(alike)}: {answer.cause}"
    for number, fix in enumerate(answer.fixes, 1):
        yield f"  fix {number}: {fix.text}" + (f" → {fix.node}" if fix.node else "")
    lines = list(evidence_lines(explanation))
    if lines and lines[0]:
        yield ""
    yield from lines


def answer_tree(
    alike: Sequence[Pending], explanation: Explanation, answer: Answer
) -> dict[str, Any]:
    """Return an answer with its evidence, for JSON."""
    return {
        "cause": answer.cause,
        "fixes": [fix.tree() for fix in answer.fixes],
        "pods": [full_name(each.pod) for each in alike],
    } | explanation_tree(explanation)


# --- manifests ------------------------------------------------------------------------------


def fixed_manifests(
    fix: Fix, documents: Iterable[Document], snapshot: Snapshot, *, namespace: str
) -> list[Any]:
    """Return all documents with the fix made, then the other objects that it changes or adds."""
    changes = {change.key: change for change in fix.changes}
    existing = {key_of(each): each for each in snapshot.objects()}
    written: list[Any] = []
    for document in documents:
        key = _key(document.tree, namespace, existing, changes)
        change = changes.pop(key, None) if key is not None else None
        written.append(_changed(document.tree, change, existing))
    for key, change in changes.items():
        if change.new is not None:
            written.append(change.new)
        elif key in existing:
            written.append(edited_tree(_plain(existing[key]), change.edits))
    return written


def _key(
    tree: Any, namespace: str, existing: dict[Any, Any], changes: dict[Any, Any]
) -> tuple[str, str, str] | None:
    match tree:
        case {"kind": str(kind), "metadata": {"name": str(name)} as metadata}:
            space = metadata.get("namespace") or namespace
            for key in ((kind, space, name), (kind, "", name)):
                if key in existing or key in changes:
                    return key
    return None


def _changed(tree: Any, change: ObjectChange | None, existing: dict[Any, Any]) -> Any:
    if change is None:
        return tree
    if change.new is not None:
        return change.new
    value = existing.get(change.key)
    if value is not None and tree.get("apiVersion") == value.api_version:
        try:
            return edited_tree(tree, change.edits)
        except (LookupError, TypeError):
            pass  # It is written in another form.
    return edited_tree(_plain(value), change.edits)


def _plain(value: Any) -> Any:
    """Return an object as a tree, without what a server adds."""
    tree = to_tree(value)
    metadata = tree.get("metadata", {})
    for name in _SERVER_FIELDS:
        metadata.pop(name, None)
    tree.pop("status", None)
    return tree
