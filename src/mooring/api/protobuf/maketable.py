"""Make the table of fields.

    python -m mooring.api.protobuf.maketable FIELDS PRESENCE > fields.txt

FIELDS    JSON: group version → messages → field → [number, optional | repeated | map, types …]
PRESENCE  JSON: group version → message → {kind, fields: field → {number, json, pointer, omitempty,
          inline}}, as Go's types declare them: the protobuf file does not tell a pointer from a
          value, nor the names that JSON has

The program is run by hand when Kubernetes gets new fields; nothing imports it. What the table says
and how, `mooring.api.protobuf.table` tells.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

HEADER = """\
# What protobuf says of Kubernetes' API objects, as of Kubernetes 1.37; scheduling/v1alpha2 of 1.36.
# A line is a message: its name, ! if it is a kind, and its fields as name:number:type.
# Before a type: * may be absent, + JSON shows it even if zero, [] list, {} map, ~ fields of this
# message stand in JSON among those of the outer one.
"""

# What JSON writes in another way than as a map of the message's fields.
BUILT_IN = {
    "resource.Quantity": "quantity",
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "intstr.IntOrString": "int-or-string",
    "runtime.RawExtension": "json",
    "meta/v1.FieldsV1": "json",
    "meta/v1.Verbs": "strings",
    "authorization/v1.ExtraValue": "strings",
    "authentication/v1.ExtraValue": "strings",
    "authentication/v1.AttestationValue": "strings",
}
SCALARS = ("string", "bool", "int32", "int64", "bytes")


def table(fields: dict[str, Any], presence: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield from HEADER.splitlines()
    groups = {entry["package"]: group for group, entry in fields.items()}
    for group, entry in fields.items():
        known = presence.get(group, {})
        names = [name for name in entry["messages"] if name in known]
        lines = [
            _line(name, entry["messages"][name], known[name], group, groups)
            for name in names
            if f"{group}.{name}" not in BUILT_IN
        ]
        if lines:
            yield from (f"= {group}", *lines)


def _line(
    name: str, fields: dict[str, Any], presence: dict[str, Any], group: str, groups: dict[str, str]
) -> str:
    by_number = {fact["number"]: fact for fact in presence["fields"].values()}
    words = [f"{name}!" if presence.get("kind") else name]
    for number, label, *types in sorted(fields.values()):
        fact = by_number[number]
        type_name = _type(types[-1], group, groups)
        marks = _marks(fact, label, is_scalar=type_name in SCALARS)
        words.append(f"{'' if fact.get('inline') else fact['json']}:{number}:{marks}{type_name}")
    return " ".join(words)


def _type(text: str, group: str, groups: dict[str, str]) -> str:
    """Return a type by the name that the table has for it; its own group goes without saying."""
    package, _, name = text.lstrip(".").rpartition(".")
    if not package and name in SCALARS:
        return name
    full = f"{groups[package] if package else group}.{name}"
    return BUILT_IN.get(full) or full.removeprefix(f"{group}.")


def _marks(fact: dict[str, Any], label: str, *, is_scalar: bool) -> str:
    if label != "optional":
        return "[]" if label == "repeated" else "{}"
    if fact.get("inline"):
        return "~"
    if fact.get("pointer"):
        return "*"
    return "+" if is_scalar and not fact.get("omitempty") else ""


def main(arguments: list[str]) -> None:
    """Read the two files and print the table."""
    if len(arguments) != 2:
        sys.exit("usage: python -m mooring.api.protobuf.maketable FIELDS PRESENCE")
    fields, presence = map(_loaded, arguments)
    sys.stdout.write("\n".join(table(fields, presence)) + "\n")


def _loaded(name: str) -> Any:
    with open(name, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(sys.argv[1:])
