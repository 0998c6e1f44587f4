"""The schema of the API: every fact about a field of a type is written here, once.

Each API group has a table, `GROUP.schema.txt`, beside its structs. The protobuf codec, typed JSON,
patches, OpenAPI and the Go layouts of error messages all derive from it.

    table:    comment* section*
    section:  "= " GROUP "/" VERSION ["like" version+] ["without" kind+]    then its types
    type:     NAME ["kind" ["unmanaged"] | "structType=atomic"] ["-- " words]    then its fields
    field:    "  " name number type marker* ["-- " words]                   in the order of Go
    name:     as in JSON; "~" embeds a type, whose fields JSON shows among those of the outer one
    number:   in protobuf; "-" for an extension of Moorage, which protobuf does not carry
    type:     ["*" | "+" | "[]" | "{}"] (scalar | NAME | GROUP/VERSION.NAME)
              * a pointer, which may be absent; + JSON shows zero; [] a list; {} a map by string
    scalar:   string bool int32 int64 bytes quantity time microtime int-or-string json strings
              json-schema (`json_schema` reads it)

Sections and the types in them are separated by blank lines. A section that is `like` others has
all their types, but for those it declares itself and the kinds (with their lists) it is `without`;
names of types are looked up in the requested version. Type `*` of meta/v1 has descriptions for
fields of any type that has none. The server keeps no managed fields of a kind that is `unmanaged`.

The markers are those of Kubernetes' Go types:

    required              OpenAPI requires the field
    enum=A,B              the values that are allowed
    default=VALUE         what a missing field means where it is the key of a list
    listType=set|map      of a list; without it a list is atomic
    listMapKey=A,B        the keys of a list that is a map
    mapType=atomic|granular  of a map; granular also of a struct whose type is atomic
    patchStrategy=A,B     of a strategic merge patch, with patchMergeKey=A
    featureGate=A,B       the gates that must be on, or the field is dropped
    go=Name               the field in Go, where it is not the JSON name with a capital letter
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pkgutil import get_data
from typing import NamedTuple

# The names that the tables have for API groups.
_GROUPS = {
    "": "core",
    "apiregistration.k8s.io": "apiregistration",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apps": "apps",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "meta.k8s.io": "meta",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
    "storagemigration.k8s.io": "storagemigration",
}

META = "meta/v1"
KIND_LENGTH_MAX = 256  # of a version and a kind; none in the schema is nearly as long
# Kinds of meta/v1 that are kinds of every version of every group.
_EVERYWHERE = frozenset(
    (
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "UpdateOptions",
        "WatchEvent",
    )
)
# Kinds of meta/v1 that are written with the version v1 of the core.
_UNVERSIONED = frozenset(("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"))

_MARKS = ("*", "+", "[]", "{}")
_SHARED = "*"


class Markers(NamedTuple):
    """The markers of a field, and its description."""

    required: bool = False
    enum: tuple[str, ...] = ()
    default: str | None = None
    list_type: str = "atomic"
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch_strategy: tuple[str, ...] = ()
    patch_merge_key: str = ""
    feature_gates: tuple[str, ...] = ()
    go_name: str = ""
    words: str = ""


class Field(NamedTuple):
    """One field of a type.

    type        a scalar, or the full name of a type
    is_pointer  it can be absent; protobuf always carries other fields, as zero if need be
    is_shown    JSON has it even if it is zero
    is_inline   JSON has the fields of its type among those of the outer one
    """

    name: str
    number: int
    type: str
    is_pointer: bool = False
    is_shown: bool = False
    is_inline: bool = False
    is_list: bool = False
    is_map: bool = False
    notes: str = ""  # the markers and the description, not parsed

    @property
    def markers(self) -> Markers:
        """The markers of the field."""
        return _markers(self.notes)

    @property
    def is_struct(self) -> bool:
        """Whether the values of the field have fields of their own."""
        return "." in self.type


class ApiType(NamedTuple):
    """A type by its full name, such as core/v1.Pod, and its fields in the order of Go."""

    name: str
    is_kind: bool
    fields: tuple[Field, ...]
    is_atomic: bool = False
    is_managed: bool = True  # fields of its objects have managers
    words: str = ""

    @property
    def short_name(self) -> str:
        """The name without its group and version."""
        return self.name.rpartition(".")[2]

    def json_fields(self) -> Iterator[Field]:
        """Yield the fields that JSON has, those of embedded types among them."""
        for field in self.fields:
            if field.is_inline:
                yield from api_type(field.type).json_fields()
            else:
                yield field


@lru_cache(maxsize=1024)
def api_type(name: str) -> ApiType:
    """Return a type by its full name, or raise KeyError."""
    version, _, short_name = name.rpartition(".")
    head, *lines = _types(version)[short_name].split("\n")
    declared, _, words = head.partition(" -- ")
    return ApiType(
        name,
        _is_kind(head),
        tuple(_field(line, version) for line in lines),
        is_atomic=declared.endswith(" structType=atomic"),
        is_managed=not declared.endswith(" unmanaged"),
        words=words,
    )


def find_kind(api_version: str, kind: str) -> str | None:
    """Return the full name of the type of a kind, if the schema has it."""
    if len(api_version) + len(kind) > KIND_LENGTH_MAX:
        return None
    return _find_kind(api_version, kind)


@lru_cache(maxsize=1024)
def _find_kind(api_version: str, kind: str) -> str | None:
    version = group_version(api_version)
    if version is None:
        return None
    if kind in _EVERYWHERE or (kind in _UNVERSIONED and version == "core/v1"):
        version = META
    head = _types(version).get(kind)
    return f"{version}.{kind}" if head is not None and _is_kind(head) else None


def group_version(api_version: str) -> str | None:
    """Return the schema's name of a version: resource/v1 for resource.k8s.io/v1, core/v1 for v1."""
    group, slash, version = api_version.rpartition("/")
    if group not in _GROUPS or (slash and not group):
        return None
    name = f"{_GROUPS[group]}/{version}"
    return name if name in _table(_GROUPS[group]) else None


def type_names(*, kinds_only: bool = False) -> tuple[str, ...]:
    """Return the full names of all types, or of the kinds among them."""
    return tuple(
        f"{version}.{name}"
        for group in _GROUPS.values()
        for version, types in _table(group).items()
        for name, block in types.items()
        if name != _SHARED and (_is_kind(block) or not kinds_only)
    )


def shared_words() -> dict[str, str]:
    """Return the fallback descriptions of fields, by name."""
    return {field.name: field.markers.words for field in api_type(f"{META}.{_SHARED}").fields}


def feature_gates(name: str) -> dict[str, tuple[str, ...]]:
    """Return the gates that must be on for fields of a type, by the JSON names of the fields."""
    fields = api_type(name).json_fields()
    return {field.name: gates for field in fields if (gates := field.markers.feature_gates)}


def _types(version: str) -> dict[str, str]:
    return _table(version.partition("/")[0])[version]


@lru_cache(maxsize=32)
def _table(group: str) -> dict[str, dict[str, str]]:
    """Return the text of each type of a group by version and name; it is parsed when needed."""
    text = get_data("moorage.api", f"{group}.schema.txt")  # importlib.resources takes 20 ms
    assert text is not None
    versions: dict[str, dict[str, str]] = {}
    types: dict[str, str] = {}
    for block in text.decode().rstrip("\n").split("\n\n"):
        if block.startswith("= "):
            version, types = _section(block, versions)
            versions[version] = types
        elif not block.startswith("#"):
            types[block[: _end_of_name(block)]] = block
    return versions


def _section(line: str, versions: dict[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
    declared, _, without = line[2:].partition(" without ")
    version, _, like = declared.partition(" like ")
    types: dict[str, str] = {}
    for other in reversed(like.split()):
        types.update(versions[other])
    for kind in without.split():
        del types[kind], types[f"{kind}List"]
    return version, types


def _end_of_name(block: str) -> int:
    line_end = block.find("\n")
    if line_end < 0:
        line_end = len(block)
    space = block.find(" ", 0, line_end)
    return line_end if space < 0 else space


def _is_kind(block: str) -> bool:
    return block.startswith(" kind", _end_of_name(block))


def _field(line: str, version: str) -> Field:
    name, number, marked, *rest = line.split(None, 3)
    mark = next((mark for mark in _MARKS if marked.startswith(mark)), "")
    type_name = marked[len(mark) :]
    return Field(
        "" if name == "~" else name,
        0 if number == "-" else int(number),
        f"{version}.{type_name}" if type_name[0].isupper() else type_name,
        is_pointer=mark == "*",
        is_shown=mark == "+",
        is_inline=name == "~",
        is_list=mark == "[]",
        is_map=mark == "{}",
        notes=rest[0] if rest else "",
    )


@lru_cache(maxsize=4096)
def _markers(notes: str) -> Markers:
    text, _, words = f" {notes}".partition(" -- ")
    found: dict[str, str] = {}
    for marker in text.split():
        key, _, found[key] = marker.partition("=")
    return Markers(
        required="required" in found,
        enum=_list(found, "enum"),
        default=found.get("default"),
        list_type=found.get("listType", "atomic"),
        list_map_keys=_list(found, "listMapKey"),
        map_type=found.get("mapType", ""),
        patch_strategy=_list(found, "patchStrategy"),
        patch_merge_key=found.get("patchMergeKey", ""),
        feature_gates=_list(found, "featureGate"),
        go_name=found.get("go", ""),
        words=words,
    )


def _list(markers: dict[str, str], key: str) -> tuple[str, ...]:
    return tuple(markers[key].split(",")) if key in markers else ()
