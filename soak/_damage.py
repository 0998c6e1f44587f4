"""Objects and texts that are valid, or nearly so, and random damage to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from moorage.api.catalogue import KINDS
from moorage.api.documents import read

EXAMPLES = Path(__file__).parents[1] / "examples"
DAMAGES_MAX = 5

# Values that are wrong nearly everywhere, and some that are right in odd places.
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 1.5, 1e300, "", " ", "x", "0",
    "-1", "10Gi", "1e3", "0.5", "on", "null", "a/b", "a.b/c", "A_b", "a-b", "Ünïcode", "\u0000",
    "\ud800", "x" * 64, "x" * 254, "x" * 11_000, "2026-01-01T00:00:00Z", "1.2.3", "All", "Exists",
    {}, [], {"": None}, {"a": 1}, [[]], [None], ["x", "x"], {"value": "1"}, {"string": "x"},
)  # fmt: skip
ODD_BYTES = (
    b"---\n", b"...\n", b"&a ", b"*a", b"<<: ", b"!!binary ", b"!!int ", b"? ", b"- ", b": ", b"#",
    b"{", b"}", b"[", b"]", b"'", b'"', b"\\u", b"|\n", b">\n", b"\t", b"\r", b"\0", b"\xff",
    b"\xef\xbb\xbf", b"\xc3", b"0o17", b"1e999", b"yes", b"~", b"\n", b"  ",
)  # fmt: skip


class Base(NamedTuple):
    """The bytes of a text and the trees of its objects, as JSON texts."""

    data: bytes
    trees: tuple[str, ...]


@cache
def bases() -> tuple[Base, ...]:
    """Return the examples, and the least object of every kind."""
    files = sorted(path for path in EXAMPLES.rglob("*") if path.suffix in (".yaml", ".json"))
    examples = tuple(_base(path.read_bytes()) for path in files)
    least = (
        {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}
        for kind in KINDS
    )
    return examples + tuple(_base(json.dumps(tree).encode()) for tree in least)


def _base(data: bytes) -> Base:
    return Base(data, tuple(json.dumps(document.tree) for document in read(data, source="base")))


# --- damage to objects --------------------------------------------------------------------


class _Spot(NamedTuple):
    """A place in a tree: `holder[key]`."""

    holder: Any
    key: Any


def damaged_tree(random: Random, text: str) -> Any:
    """Return a tree, given as JSON, with damage."""
    tree = json.loads(text)
    for _ in range(random.randint(1, DAMAGES_MAX)):
        spots = _spots(tree)
        if spots:
            random.choice(_TREE_DAMAGES)(random, random.choice(spots), spots)
    return tree


def _spots(tree: Any) -> list[_Spot]:
    found: list[_Spot] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        found += [_Spot(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


def _remove(_: Random, spot: _Spot, __: list[_Spot]) -> None:
    del spot.holder[spot.key]


def _set_odd(random: Random, spot: _Spot, _: list[_Spot]) -> None:
    spot.holder[spot.key] = _copied(random.choice(ODD_VALUES))


def _copy_other(random: Random, spot: _Spot, spots: list[_Spot]) -> None:
    other = random.choice(spots)
    spot.holder[spot.key] = _copied(other.holder[other.key])


def _repeat(random: Random, spot: _Spot, _: list[_Spot]) -> None:
    if isinstance(spot.holder, list):
        copies = random.choice((1, 2, 40))
        item = spot.holder[spot.key]
        spot.holder.extend(_copied(item) for _ in range(copies))
    else:
        spot.holder[f"{spot.key}-2"] = _copied(spot.holder[spot.key])


def _rename(random: Random, spot: _Spot, spots: list[_Spot]) -> None:
    if isinstance(spot.holder, dict):
        name = random.choice(spots).key
        spot.holder[str(name)] = spot.holder.pop(spot.key)


def _be_another_kind(random: Random, _: _Spot, spots: list[_Spot]) -> None:
    root = spots[0].holder
    if isinstance(root, dict):
        kind = random.choice(KINDS)
        root.update(apiVersion=kind.api_version, kind=kind.name)


_TREE_DAMAGES: tuple[Callable[[Random, _Spot, list[_Spot]], None], ...] = (
    _remove, _set_odd, _set_odd, _set_odd, _copy_other, _repeat, _rename, _be_another_kind,
)  # fmt: skip


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def written(tree: Any, random: Random) -> bytes:
    """Return the text of a tree: JSON on one line or several, or YAML."""
    match random.randrange(3):
        case 0:
            return json.dumps(tree).encode()
        case 1:
            return json.dumps(tree, indent=2, ensure_ascii=False).encode(errors="replace")
        case _:
            return yaml.safe_dump(tree, sort_keys=False).encode(errors="replace")


# --- damage to bytes ----------------------------------------------------------------------


def damaged_bytes(random: Random, data: bytes) -> bytes:
    """Return bytes with damage."""
    for _ in range(random.randint(1, DAMAGES_MAX)):
        data = random.choice(_BYTE_DAMAGES)(random, data)
    return data


def _cut(random: Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _truncate(random: Random, data: bytes) -> bytes:
    return data[: random.randint(0, len(data))]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(ODD_BYTES) + data[at:]


def _flip(random: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _double(random: Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:end] + data[start:end] + data[end:]


def _splice(random: Random, data: bytes) -> bytes:
    other = random.choice(bases()).data
    start, end = _span(random, other)
    at = random.randint(0, len(data))
    return data[:at] + other[start:end] + data[at:]


_BYTE_DAMAGES = (_cut, _truncate, _insert, _insert, _flip, _flip, _double, _splice)


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 4, 16, 64, 256)))
