"""What speaks against an apply: fields that others own and that it would change."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.apiserver.patching import elements
from mooring.apiserver.patching.errors import FIELD_MANAGER_CONFLICT, Cause, PatchError
from mooring.apiserver.patching.fieldset import FieldSet, Path
from mooring.apiserver.patching.owning.ledger import Owner


class Conflicted(Exception):  # noqa: N818  # it is one
    """The fields in question, by owner."""

    def __init__(self, fields: Mapping[Owner, FieldSet]) -> None:
        super().__init__("conflict")
        self.fields = dict(sorted(fields.items(), key=lambda item: item[0].identifier))

    def without(self, allowed: FieldSet) -> Conflicted | None:
        """Return what is left when some fields may be taken, or None."""
        left = {}
        for owner, fields in self.fields.items():
            paths = [path for path in fields.paths() if path not in allowed]
            if paths:
                left[owner] = FieldSet.of(*paths)
        return Conflicted(left) if left else None

    def to_error(self) -> PatchError:
        """Return the answer of the server."""
        found = [(owner, path) for owner, set_ in self.fields.items() for path in set_.paths()]
        causes = tuple(
            Cause(FIELD_MANAGER_CONFLICT, f"conflict with {owner}", _shown(path))
            for owner, path in found
        )
        return PatchError(409, "Conflict", _message(found), causes)


def _message(found: list[tuple[Owner, Path]]) -> str:
    if len(found) == 1:
        ((owner, path),) = found
        return f"Apply failed with 1 conflict: conflict with {owner}: {_shown(path)}"
    lines = []
    for owner in dict.fromkeys(owner for owner, _ in found):
        lines.append(f"conflicts with {owner}:")
        lines.extend(f"- {_shown(path)}" for other, path in found if other == owner)
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _shown(path: Path) -> str:
    return "".join(map(elements.shown, path))
