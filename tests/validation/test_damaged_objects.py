"""Objects with a wrong value anywhere are refused or taken; nothing raises."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.record_scenes import RECORDINGS
from moorage.api.catalogue import CATALOGUE
from moorage.api.errors import ApiError
from moorage.api.gates import Gates
from moorage.api.object_reader import read_tree
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context
from soak._hostile.objects import CONTENT, KINDS

WRONG: tuple[Any, ...] = (None, "", "a b", -1, 2**31, True, [], [{}], [None], {}, {"a": 1}, "-1Gi")
CONTEXT = Context(gates=Gates.parse(), now=Timestamp.parse("2026-01-01T00:00:00Z"), extensions=True)


def good_trees() -> Iterator[dict[str, Any]]:
    """Yield an object of each kind, and the bodies of the recorded scenes."""
    for kind in KINDS:
        head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}
        yield {**head, **copy.deepcopy(CONTENT[kind.name])}
    for path in sorted(RECORDINGS.glob("*.json")):
        for exchange in json.loads(path.read_text()):
            match exchange["requestBody"]:
                case {"apiVersion": str(version), "kind": str(name)} as tree:
                    if (version, name) in CATALOGUE:
                        yield tree


TREES = list(good_trees())


def places(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for step, value in steps:
        yield (*place, step)
        if isinstance(value, dict | list):
            yield from places(value, (*place, step))


def damaged(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    copied = inner = copy.deepcopy(tree)
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return copied


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(len(TREES)), ids=lambda n: f"{n}-{TREES[n]['kind']}")
def test_a_wrong_value_anywhere_is_refused_or_taken(number: int) -> None:
    tree, taken = TREES[number], 0
    for place in places(tree):
        for value in WRONG if place[0] not in ("apiVersion", "kind") else ():
            try:
                reading = read_tree(damaged(tree, place, value), gates=CONTEXT.gates)
            except ApiError:
                continue
            if not reading.problems:
                before_create(reading.value, reading.kind, CONTEXT, namespace="default")
                taken += 1
    assert taken
