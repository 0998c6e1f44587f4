"""Random damage to valid objects and to their bytes: nothing but declared errors may come of it.

A case takes an example, or the least object of some kind, changes it at random and has it read
and judged. The laws:

1. reading raises DocumentError or nothing, judging raises nothing;
2. every finding has a place;
3. an object that is accepted is, written out and read back, accepted again and stored the same.

# base: a text that is valid, or nearly so, before it is damaged
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from mooring.api.catalogue import KINDS
from mooring.api.codec import encode_json
from mooring.api.documents import CORE, KUBERNETES, expand_lists, read
from mooring.api.errors import DocumentError
from mooring.api.gates import Gates, Preset
from mooring.api.timestamp import Timestamp
from mooring.validation.context import Context
from mooring.validation.verdicts import Judge, Verdict
from soak import Outcome, Plan, Tally

EXAMPLES = Path(__file__).parents[1] / "examples"
NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))
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


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("reading", make_case)
    tally.run(plan)
    figures = {
        "cases": f"{tally.cases:,}",
        "objects accepted": f"{tally.counts['accepted']:,}",
        "objects refused": f"{tally.counts['refused']:,}",
        "unreadable": f"{tally.counts['unreadable']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


# --- one case -----------------------------------------------------------------------------


class Case(NamedTuple):
    """A damaged text, and how it is read."""

    data: bytes
    preset: Preset
    strict: bool

    def outcomes(self) -> Counter[str]:
        """Return what became of the objects of the text, or raise what must not be raised."""
        context = Context(
            gates=Gates.parse(preset=self.preset), now=NOW, extensions=not self.strict
        )
        judge = Judge(context, strict=self.strict)
        counts: Counter[str] = Counter()
        try:
            for verdict in self._verdicts(judge, self.data):
                _check_places(verdict)
                counts["accepted" if verdict.is_accepted else "refused"] += 1
                if verdict.is_accepted and verdict.stored is not None:
                    self._check_again(judge, verdict)
        except DocumentError:
            counts["unreadable"] += 1
        return counts

    def _verdicts(self, judge: Judge, data: bytes) -> Iterator[Verdict]:
        schema = KUBERNETES if self.strict else CORE
        for document in read(data, source="case", schema=schema):
            yield from map(judge.judge, expand_lists(document))

    def _check_again(self, judge: Judge, verdict: Verdict) -> None:
        written = encode_json(verdict.stored)
        try:
            (again,) = self._verdicts(judge, written)
        except DocumentError as error:
            raise AssertionError(f"stored but not read again: {error}: {written!r}") from error
        found = [finding.message for finding in again.findings]
        assert again.is_accepted, f"stored but refused when read again: {found}: {written!r}"
        if again.stored is not None:
            stored = encode_json(again.stored)
            assert stored == written, f"stored otherwise when read again: {stored!r}: {written!r}"

    def __str__(self) -> str:
        return f"preset {self.preset}, {'strict' if self.strict else 'not strict'}: {self.data!r}"


def _check_places(verdict: Verdict) -> None:
    for finding in verdict.findings:
        assert finding.line >= 1, finding
        assert finding.column >= 1, finding
        assert finding.message, finding


def make_case(seed: int, number: int) -> Case:
    """Return a case of a seed."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
    preset = random.choice(list(Preset))
    strict = random.random() < 0.3
    base = random.choice(_bases())
    if base.trees and random.random() < 0.6:
        data = _written(_damaged_tree(random, random.choice(base.trees)), random)
        if random.random() < 0.9:
            return Case(data, preset, strict)
    else:
        data = base.data
    return Case(_damaged_bytes(random, data), preset, strict)


class Base(NamedTuple):
    """The bytes of a text and the trees of its objects, as JSON texts."""

    data: bytes
    trees: tuple[str, ...]


@cache
def _bases() -> tuple[Base, ...]:
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


def _damaged_tree(random: Random, text: str) -> Any:
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


def _written(tree: Any, random: Random) -> bytes:
    """Return the text of a tree: JSON on one line or several, or YAML."""
    match random.randrange(3):
        case 0:
            return json.dumps(tree).encode()
        case 1:
            return json.dumps(tree, indent=2, ensure_ascii=False).encode(errors="replace")
        case _:
            return yaml.safe_dump(tree, sort_keys=False).encode(errors="replace")


# --- damage to bytes ----------------------------------------------------------------------


def _damaged_bytes(random: Random, data: bytes) -> bytes:
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
    other = random.choice(_bases()).data
    start, end = _span(random, other)
    at = random.randint(0, len(data))
    return data[:at] + other[start:end] + data[at:]


_BYTE_DAMAGES = (_cut, _truncate, _insert, _insert, _flip, _flip, _double, _splice)


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 4, 16, 64, 256)))
