"""The list of all built-in kinds of Kubernetes, with what Moorage does with their objects."""

from __future__ import annotations

from moorage.api.built_in_kinds import BUILT_IN_KINDS, Role
from moorage.api.catalogue import CATALOGUE
from reference.markdown import table_of

_INTRODUCTION = """\
## Every built-in kind of Kubernetes 1.37

- **acts**: something in Moorage reads the objects and does what they ask for.
- **data only**: Moorage validates, stores and serves the objects, but does not act on them;
  Kubernetes' components or your own may. Where that could mislead you, the server warns when you
  create an object.
- **refused**: the server does not have the kind.
"""
_SHOWN = {Role.ACTS: "acts", Role.DATA: "data only", Role.REFUSED: "refused"}


def built_in_section() -> str:
    """Return the section of the page of kinds."""
    rows = []
    for kind in BUILT_IN_KINDS:
        served = [version for version in kind.api_versions if (version, kind.name) in CATALOGUE]
        role = _SHOWN[kind.role if served else Role.REFUSED]
        rows.append((f"`{kind.name}`", ", ".join(kind.api_versions), role, kind.words))
    return f"{_INTRODUCTION}\n{table_of(('kind', 'versions', 'role', 'what happens'), rows)}"
