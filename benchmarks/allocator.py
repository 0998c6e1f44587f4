"""Allocation beside Kubernetes' allocator: warm and cold, cases that cannot be, and many nodes.

Warm: the inventory is kept, the claims are read again (not timed), and result objects are
built. Cold: the inventory is filled from parsed objects; selectors were compiled before, but no
device was seen before. First look: the same in an inventory that was filled before; Kubernetes'
allocator, too, got slices and allocations ready-made. Every time is the best of some rounds, in
time of the process.

# calibrated: as on the machine of the recorded times, on which the loop below took LOOP_S
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Any

import msgspec

from benchmarks._allocation_families import FAMILIES, GPU, device_class
from conformance._allocation import (
    Problem,
    essence,
    read_expected,
    read_problem,
    recorded_essence,
)
from conformance.allocator import COMPILER, SHARE_ID, answer_with, filled
from conformance.runner import read_cases
from moorage.allocator import Allocated, Features, Inventory, allocate, allocate_prepared, prepare
from moorage.api.codec import decode_json, decode_tree, encode_json
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceClass,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from tests.corpus import BESIDE

LOOP_S = 0.20
ROUNDS = 7
PASSES = 3
ROUND_S = 0.5  # a measure is not repeated once it took so long
FLEETS = (500, 5_000)
DEVICES_PER_NODE = 10


def main() -> None:
    """Print the figures."""
    path = BESIDE / "allocator" / "perf.jsonl"
    cases = [dict(case.fields) for case in read_cases(path)] if path.exists() else []
    loop_s = inf
    passes: list[list[Row]] = []
    for _ in range(PASSES):
        loop_s = min(loop_s, *(_timed(_loop) for _ in range(ROUNDS)))
        passes.append([_measure(fields) for fields in cases])
    factor = LOOP_S / loop_s
    print(f"calibration: times × {factor:.2f}")
    if cases:
        _print_rows([_best_row(rows) for rows in zip(*passes, strict=True)], factor)
    else:
        print(f"no recorded times of Kubernetes at {path.name}")
    _print_families(factor)
    for nodes in FLEETS:
        _print_fleet(nodes, factor)


def _loop(count: int = 2_000_000) -> int:
    found: dict[int, int] = {}
    total = 0
    for number in range(count):
        found[number & 1023] = total
        total += number ^ (total & 255)
    return total


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


# --- beside the recorded times ------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The times of one case, in microseconds."""

    name: str
    outcome: str
    is_right: bool
    recorded: float
    warm: float
    cold: float
    first: float
    steps: int


def _measure(fields: dict[str, Any]) -> Row:
    expected = read_expected(fields)
    problem = read_problem(fields)
    actual = answer_with(filled(problem), problem)
    return Row(
        name=fields["id"].removeprefix("perf/"),
        outcome=expected["outcome"],
        is_right=essence(actual) == recorded_essence(expected),
        recorded=fields["bench"]["allocateMedianMicros"],
        warm=_warm(problem),
        cold=_cold(problem),
        first=_first_look(problem),
        steps=actual.steps,
    )


def _best_row(rows: tuple[Row, ...]) -> Row:
    """Return the row of a case with its best times: other work comes and goes."""
    return replace(
        rows[0],
        warm=min(r.warm for r in rows),
        cold=min(r.cold for r in rows),
        first=min(r.first for r in rows),
    )


def _warm(problem: Problem) -> float:
    inventory = filled(problem)
    texts = [encode_json(claim) for claim in problem.claims]
    solve(inventory, problem)

    def once() -> float:
        claims = tuple(decode_json(text, ResourceClaim).value for text in texts)
        asked = replace(problem, claims=claims)
        return _timed(lambda: solve(inventory, asked))

    return _best(once, rounds=10 * ROUNDS)


def _cold(problem: Problem) -> float:
    numbers = iter(range(1_000_000))

    def once() -> float:
        unseen = marked(problem, next(numbers))
        return _timed(lambda: solve(filled(unseen), unseen))

    return _best(once, rounds=ROUNDS)


def _first_look(problem: Problem) -> float:
    numbers = iter(range(1_000_000, 2_000_000))

    def once() -> float:
        unseen = marked(problem, next(numbers))
        inventory = filled(unseen)
        return _timed(lambda: solve(inventory, unseen))

    return _best(once, rounds=ROUNDS)


def _best(once: Callable[[], float], *, rounds: int) -> float:
    """Return the least time of some rounds in microseconds; one round if it takes long."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < ROUND_S:
        times.append(once())
    return min(times) * 1e6


def solve(inventory: Inventory, problem: Problem) -> None:
    """Allocate, and build the results."""
    answer = allocate(inventory, problem.node, problem.claims)
    if isinstance(answer, Allocated):
        answer.results(lambda: SHARE_ID)


def marked(problem: Problem, number: int) -> Problem:
    """Return the problem with devices that were never seen before, so that nothing is cached."""
    mark = DeviceAttribute(int_value=number)

    def with_mark(slice_: ResourceSlice) -> ResourceSlice:
        devices = slice_.spec.devices
        if not devices:
            return slice_
        new = tuple(
            msgspec.structs.replace(device, attributes={**device.attributes, "mark": mark})
            for device in devices
        )
        spec = msgspec.structs.replace(slice_.spec, devices=new)
        return msgspec.structs.replace(slice_, spec=spec)

    return replace(problem, slices=tuple(map(with_mark, problem.slices)))


def _print_rows(rows: list[Row], factor: float) -> None:
    print(
        f"{'case':30} {'outcome':9} {'Go µs':>11} {'warm µs':>10} {'ratio':>7} {'calibr.':>7} "
        f"{'cold µs':>10} {'ratio':>7} {'calibr.':>7} {'steps':>9}"
    )
    for row in rows:
        warm, cold = row.warm / row.recorded, row.cold / row.recorded
        print(
            f"{row.name:30} {row.outcome:9} {row.recorded:11.0f} {row.warm:10.0f} {warm:7.2f} "
            f"{warm * factor:7.2f} {row.cold:10.0f} {cold:7.2f} {cold * factor:7.2f} "
            f"{row.steps:9}{'' if row.is_right else '  WRONG ANSWER'}"
        )
    solved = [row for row in rows if row.outcome == "allocated"]
    _print_summary("warm", [row.warm / row.recorded for row in solved], factor)
    _print_summary("cold", [row.cold / row.recorded for row in solved], factor)
    _print_summary("first look", [row.first / row.recorded for row in solved], factor)
    slowest = max((row for row in rows if row.outcome == "none"), key=lambda row: row.cold)
    print(f"slowest that cannot be, cold: {slowest.cold / 1e3:.1f} ms ({slowest.name})")


def _print_summary(name: str, ratios: list[float], factor: float) -> None:
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(
        f"allocated, {name}: {mean:.2f} times Go's (geometric mean), worst {max(ratios):.2f}; "
        f"calibrated {mean * factor:.2f}, worst {max(ratios) * factor:.2f}"
    )


# --- larger members of the families -------------------------------------------------------


def _print_families(factor: float) -> None:
    for name, make in FAMILIES.items():
        problem = make()
        answer = answer_with(filled(problem), problem)
        cold_ms = _cold(problem) / 1e3
        remark = "" if answer.outcome == "none" else f"  WRONG ANSWER: {answer.outcome}"
        remark += f" {answer.error}" if answer.error else ""
        print(
            f"{name:32} cold {cold_ms:9.2f} ms (calibrated {cold_ms * factor:.2f}), "
            f"{answer.steps} steps{remark}"
        )


# --- many nodes ---------------------------------------------------------------------------


def _print_fleet(count: int, factor: float) -> None:
    """Print how long one claim takes on each of many nodes."""
    inventory = Inventory(Features.named([]), compiler=COMPILER)
    tree = device_class("gpu", GPU)
    inventory.put_class(decode_tree(tree, DeviceClass).value)
    nodes = [Node(metadata=ObjectMeta(name=f"node-{number}")) for number in range(count)]
    for node in nodes:
        inventory.put_slice(_fleet_slice(node.metadata.name))
    text = encode_json(_fleet_claim())

    def try_all() -> None:
        wanted = prepare(inventory, (decode_json(text, ResourceClaim).value,))
        for node in nodes:
            assert isinstance(allocate_prepared(inventory, node, wanted), Allocated)

    first = _timed(try_all) / count * 1e6
    rounds = max(ROUNDS, ROUNDS * FLEETS[-1] // count)  # for some seconds, whatever the fleet
    again = min(_timed(try_all) for _ in range(rounds)) / count * 1e6
    print(
        f"{count:5} nodes × {DEVICES_PER_NODE} devices: {again:.1f} µs a node warm "
        f"(calibrated {again * factor:.1f}), {first:.0f} µs the first time"
    )


def _fleet_slice(node: str) -> ResourceSlice:
    devices = tuple(
        Device(
            f"gpu-{number}",
            {
                "index": DeviceAttribute(int_value=number),
                "model": DeviceAttribute(string_value="h100"),
                "uuid": DeviceAttribute(string_value=f"{node}-{number}"),
            },
        )
        for number in range(DEVICES_PER_NODE)
    )
    spec = ResourceSliceSpec(GPU, ResourcePool(node, 1, 1), node_name=node, devices=devices)
    return ResourceSlice(metadata=ObjectMeta(name=f"{node}-gpu"), spec=spec)


def _fleet_claim() -> ResourceClaim:
    expression = f'device.attributes["{GPU}"].model == "h100"'
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 2,
        "selectors": [{"cel": {"expression": expression}}],
    }
    tree = {
        "metadata": {"name": "c0", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    return decode_tree(tree, ResourceClaim).value
