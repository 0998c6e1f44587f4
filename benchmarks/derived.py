"""What deriving an attribute costs, beside a literal attribute with the same values.

A node has devices at PCIe roots, four at each. A claim asks for four at one root: by the attribute
that the driver publishes, or by one that is derived from it. Cold, the inventory is filled and no
device was seen before; warm, it is kept, and the claim is read again. Both take turns, and the best
of all rounds counts, in time of the process.

Goals: cold 1.2 times, warm 1.05 times the time of the literal attribute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks._allocation_families import GPU, PCIE, problem, request, slice_
from benchmarks.allocator import marked, solve
from conformance._allocation import Problem
from conformance.allocator import answer_with, filled
from moorage.api.codec import decode_json, encode_json
from moorage.api.resource.v1 import ResourceClaim

SIZES = (8, 32, 128)  # devices
AT_A_ROOT = 4
ROUNDS_COLD, ROUNDS_WARM = 60, 400
DERIVED = "derived.example.com/root"
EXPRESSION = 'device.attributes["resource.kubernetes.io"].pcieRoot'


def main() -> None:
    """Print the times of both, and their ratio."""
    for size in SIZES:
        literal, derived = _problem(size), _problem(size, derived=True)
        for each in (literal, derived):
            assert answer_with(filled(each), each).outcome == "allocated"
        cold = _in_turns(_cold(literal), _cold(derived), ROUNDS_COLD)
        warm = _in_turns(_warm(literal), _warm(derived), ROUNDS_WARM)
        for name, (one, other) in (("cold", cold), ("warm", warm)):
            print(
                f"{size:4} devices, {name}: literal {one * 1e6:7.1f} µs, "
                f"derived {other * 1e6:7.1f} µs, ratio {other / one:.2f}"
            )


def _problem(size: int, *, derived: bool = False) -> Problem:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {PCIE: {"string": f"pci{number // AT_A_ROOT:04x}:00"}},
        }
        for number in range(size)
    ]
    more = {"derivedAttributes": [{"name": DERIVED, "expression": EXPRESSION}]} if derived else {}
    constraint = {"matchAttribute": DERIVED if derived else PCIE}
    asked = request("gpu", "gpu", AT_A_ROOT, **more)
    return problem([slice_("g", GPU, devices)], [asked], [constraint])


def _in_turns(
    one: Callable[[int], float], other: Callable[[int], float], rounds: int
) -> tuple[float, float]:
    """Return the least seconds of both."""
    times = [(one(number), other(number)) for number in range(rounds)]
    return min(first for first, _ in times), min(second for _, second in times)


def _cold(asked: Problem) -> Callable[[int], float]:
    def once(number: int) -> float:
        unseen = marked(asked, number)
        started = time.process_time()
        solve(filled(unseen), unseen)
        return time.process_time() - started

    return once


def _warm(asked: Problem) -> Callable[[int], float]:
    inventory = filled(asked)
    texts = [encode_json(claim) for claim in asked.claims]

    def once(_: int) -> float:
        again = replace(
            asked, claims=tuple(decode_json(text, ResourceClaim).value for text in texts)
        )
        started = time.process_time()
        solve(inventory, again)
        return time.process_time() - started

    return once
