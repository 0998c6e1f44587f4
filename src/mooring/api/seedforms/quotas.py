"""ResourceQuota: usage in the spec, and `request.deviceclass…` without its s."""

from __future__ import annotations

from mooring.api.fieldpath import Key
from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree, renamed, within, without

_PREFIX = "request.deviceclass.resource.kubernetes.io/"


def rewrite_quota(tree: Tree, notes: Notes) -> Tree:
    """Return a ResourceQuota in its shipped form."""
    return within(tree, ("spec",), lambda spec: _spec(spec, notes))


def _spec(spec: Tree, notes: Notes) -> Tree:
    if "used" in spec:
        notes.warn(
            "quota used", ("spec", "used"), "ignored: Kubernetes 1.37 counts usage in status.used"
        )
        spec = without(spec, "used")
    return within(spec, ("hard",), lambda hard: _hard(hard, notes))


def _hard(hard: Tree, notes: Notes) -> Tree:
    """Return the limits with `request.` as `requests.`, unless both are there."""
    names = {name: f"requests.{name.removeprefix('request.')}" for name in hard if _is_short(name)}
    names = {old: new for old, new in names.items() if new not in hard}
    for old, new in names.items():
        notes.warn(
            "quota request",
            ("spec", "hard", Key(old)),
            f'stored as "{new}", the name that Kubernetes 1.37 has',
        )
    return renamed(hard, names)


def _is_short(name: str) -> bool:
    return name.startswith(_PREFIX)
