"""Variants of the same problem, and comparison of their results."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import msgspec

from conformance import _plain as plain
from conformance._allocation import Answer, Problem, essence

T = TypeVar("T")

VALID_STEPS_MAX = 10_000


def described(answer: Answer) -> dict[str, Any]:
    """Return all of an answer that two allocators must agree on."""
    return {**essence(answer), "error": answer.error, "node_only": answer.node_only}


def is_valid(problem: Problem, answer: Answer) -> bool:
    """Return whether the devices of an answer may be given so, be they the first or not."""
    given = [
        (result.request, plain.DeviceId(result.driver, result.pool, result.device))
        for allocation in answer.results
        for result in allocation.devices.results
    ]
    try:
        replayed = plain.allocate(problem, only=given, steps_max=VALID_STEPS_MAX)
    except plain.TooManyStepsError:
        return False
    return essence(replayed) == essence(answer)


def shuffled(problem: Problem, random: Random) -> Problem:
    """Return the problem with its objects, and the keys of their maps, in another order."""

    def in_any_order(objects: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(with_shuffled_keys(o, random) for o in random.sample(objects, len(objects)))

    return replace(
        problem,
        classes=in_any_order(problem.classes),
        slices=in_any_order(problem.slices),
        allocated=in_any_order(problem.allocated),
        claims=tuple(with_shuffled_keys(claim, random) for claim in problem.claims),
    )


def with_shuffled_keys(value: Any, random: Random) -> Any:
    """Return an equal value whose maps have their keys in another order."""
    match value:
        case msgspec.Struct():
            fields = value.__struct_fields__
            found = {name: with_shuffled_keys(getattr(value, name), random) for name in fields}
            return msgspec.structs.replace(value, **found)
        case tuple():
            return tuple(with_shuffled_keys(item, random) for item in value)
        case dict():
            keys = random.sample(list(value), len(value))
            return {key: with_shuffled_keys(value[key], random) for key in keys}
        case _:
            return value
