"""The messages of Kubernetes' API objects, as the table `fields.txt` has them.

The table is facts only, one message a line; its head tells how to read it, and
`python -m mooring.api.protobuf.maketable` makes it. A line is parsed when it is first asked for.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

# Kinds that are served although Kubernetes has them in another version only.
_ELSEWHERE = {
    "resource/v1beta2.ResourcePoolStatusRequest": "resource/v1alpha3",
    "resource/v1beta2.ResourcePoolStatusRequestList": "resource/v1alpha3",
}

# Kinds of meta/v1 that are kinds of every version of every group.
_EVERYWHERE = frozenset(
    {
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "UpdateOptions",
        "WatchEvent",
    }
)
# Kinds of meta/v1 that are written with the version v1 of the core.
_UNVERSIONED = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"})

_META = "meta/v1"

# The table's names of API groups.
_GROUPS = {
    "": "core",
    "apps": "apps",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "coordination.k8s.io": "coordination",
    "events.k8s.io": "events",
    "meta.k8s.io": "meta",
    "node.k8s.io": "node",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
}


class Field(NamedTuple):
    """One field of a message.

    type        a name of `values.VALUES`, or a message with its group version
    is_pointer  it can be absent; other fields are always on the wire, as zero if need be
    is_shown    JSON has it even if it is zero
    is_inline   JSON has the message's fields among those of the outer one
    """

    name: str
    number: int
    type: str
    is_pointer: bool = False
    is_shown: bool = False
    is_inline: bool = False
    is_list: bool = False
    is_map: bool = False


class Declaration(NamedTuple):
    """A message: its full name, such as core/v1.Pod, and its fields by number."""

    name: str
    is_kind: bool
    fields: tuple[Field, ...]


def kind_named(api_version: str, kind: str) -> str | None:
    """Return the full name of the message of a kind, if it has one."""
    version = group_version(api_version)
    if version is None:
        return None
    if kind in _EVERYWHERE or (kind in _UNVERSIONED and version == "core/v1"):
        version = _META
    name = f"{version}.{kind}"
    name = f"{_ELSEWHERE.get(name, version)}.{kind}"
    return name if (line := _lines().get(name)) is not None and _is_kind(line) else None


def group_version(api_version: str) -> str | None:
    """Return the table's name of a version: resource/v1 for resource.k8s.io/v1, core/v1 for v1."""
    group, slash, version = api_version.rpartition("/")
    if group not in _GROUPS or (slash and not group):
        return None
    name = f"{_GROUPS[group]}/{version}"
    return name if name in _versions() else None


def kinds() -> tuple[str, ...]:
    """Return the full names of all kinds in the table."""
    return tuple(name for name, line in _lines().items() if _is_kind(line))


@lru_cache(maxsize=1024)
def declaration(name: str) -> Declaration:
    """Return a message by its full name."""
    line = _lines()[name]
    version = name.rpartition(".")[0]
    fields = (_field(word, version) for word in line.split()[1:])
    return Declaration(name, _is_kind(line), tuple(fields))


@lru_cache(maxsize=1)
def _lines() -> dict[str, str]:
    """Return the line of each message by its full name."""
    text = files("mooring.api.protobuf").joinpath("fields.txt").read_text(encoding="utf-8")
    lines: dict[str, str] = {}
    version = ""
    for line in text.splitlines():
        if line.startswith("= "):
            version = line[2:]
        elif not line.startswith("#"):
            lines[f"{version}.{line.partition(' ')[0].rstrip('!')}"] = line
    return lines


@lru_cache(maxsize=1)
def _versions() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in _lines())


def _is_kind(line: str) -> bool:
    return line.partition(" ")[0].endswith("!")


def _field(word: str, version: str) -> Field:
    """field: name ":" number ":" ["*" | "+" | "~" | "[]" | "{}"] type."""
    name, number, marked = word.split(":")
    type_name = marked.lstrip("*+~[]{}")
    mark = marked.removesuffix(type_name)
    is_message = type_name[:1].isupper()
    return Field(
        name,
        int(number),
        f"{version}.{type_name}" if is_message else type_name,
        is_pointer=mark == "*",
        is_shown=mark == "+",
        is_inline=mark == "~",
        is_list=mark == "[]",
        is_map=mark == "{}",
    )
