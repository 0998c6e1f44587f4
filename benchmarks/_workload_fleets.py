"""Nodes and slices of the workloads, as Kubernetes' scheduler benchmark has them, or mutated.

A mutated fleet has the same devices to give, and nothing else of the original: other names, other
values, more attributes, another order of nodes, slices and devices.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Tree = dict[str, Any]
Devices = Callable[["Words"], list[Tree]]

ZONE = "topology.kubernetes.io/zone"
PCI_ROOT = "resource.kubernetes.io/pciRoot"


class Words:
    """Where names and values come from: plain ones, or made up ones from a seed."""

    def __init__(self, seed: int | None) -> None:
        self._random = Random(seed)  # noqa: S311
        self.is_mutated = seed is not None
        self.driver = "test-driver.cdi.k8s.io"
        self.domain = "dra.example.com"
        if self.is_mutated:
            self.driver = f"{self.text('driver')}.example.org"
            self.domain = f"{self.text('domain')}.example.org"

    def text(self, plain: str) -> str:
        """Return a text, or one in its place that begins with anything."""
        if not self.is_mutated:
            return plain
        return f"{self._random.choice('bdkmpx')}{self._random.getrandbits(40):010x}"

    def between(self, plain: int, most: int) -> int:
        """Return a number, or one in its place that is larger."""
        return self._random.randint(plain, most) if self.is_mutated else plain

    def ordered(self, things: list[Any]) -> list[Any]:
        """Return things in their order, or shuffled."""
        return self._random.sample(things, len(things)) if self.is_mutated else things


def node(name: str, number: int, words: Words) -> Tree:
    """Return one node."""
    labels = {"node-with-dra": "true", ZONE: f"zone-{number % 4}"}
    if words.is_mutated:
        labels[words.text("label")] = words.text("value")
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": room, "allocatable": room},
    }


def slice_(name: str, pool: str, words: Words, slices: int = 1, **spec: Any) -> Tree:
    """Return one slice of a pool."""
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": words.driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices},
            **spec,
        },
    }


def device(name: str, words: Words, **fields: Any) -> Tree:
    """Return one device; a mutated one has some attributes more."""
    if words.is_mutated:
        more = {words.text(""): {"string": words.text("")} for _ in range(words.between(0, 3))}
        fields["attributes"] = {**more, **fields.get("attributes", {})}
    return {"name": words.text(name), **fields}


# --- devices of one node ------------------------------------------------------------------------


def basic(words: Words, count: int = 10, roots: int = 2) -> list[Tree]:
    """Return plain devices with 13 attributes and 2 capacities, on alternating PCIe roots."""
    root_names = [words.text(f"pci0000:0{root}") for root in range(roots)]
    return [
        device(
            f"basic-device-{number}",
            words,
            attributes={
                "driver": {"string": words.text("xe")},
                "driverVersion": {"version": f"{words.between(1, 9)}.2.3"},
                "resource.k8s.io/pciRoot": {"string": str(number % roots)},
                "family": {"string": words.text("Arc Pro B-Series")},
                "health": {"string": words.text("Healthy")},
                "model": {"string": words.text("B60")},
                "pciAddress": {"string": f"0000:0{number}:00.0"},
                "pciId": {"string": words.text("0xe211")},
                "pciRoot": {"string": f"0{number % roots}"},
                "resource.kubernetes.io/pciBusID": {"string": f"0000:0{number}:00.0"},
                PCI_ROOT: {"string": root_names[number % roots]},
                "sriov": {"bool": True},
                "type": {"string": words.text("gpu")},
            },
            capacity={
                "memory": {"value": f"{words.between(24480, 48960)}Mi"},
                "millicores": {"value": "1k"},
            },
        )
        for number in range(count)
    ]


def pair(words: Words) -> list[Tree]:
    """Return two plain devices."""
    return basic(words, count=2)


def shareable(words: Words) -> list[Tree]:
    """Return four network cards of 10G that can be shared."""
    policy = {"default": "1M", "validRange": {"min": "1M", "step": "8"}}
    return [
        device(
            f"shareable-device-{number}",
            words,
            allowMultipleAllocations=True,
            attributes={f"{words.domain}/index": {"int": number}},
            capacity={"bandwidth": {"value": "10G", "requestPolicy": policy}},
        )
        for number in range(4)
    ]


def halves(words: Words) -> list[Tree]:
    """Return two devices, each of which takes two of four counters."""
    return [
        device(
            f"device-{first // 2 + 1}",
            words,
            consumesCounters=[
                taking("counter-set", **{f"counter{first + n}": "1" for n in (1, 2)})
            ],
        )
        for first in (0, 2)
    ]


def partitions(words: Words) -> list[Tree]:
    """Return eight devices that take 90Gi together; all but the first take 70Gi."""
    return [
        device(
            f"device-{number}",
            words,
            consumesCounters=[
                taking("counter-set-for-cpu", **{f"cpu{number}": "1"}),
                taking("counter-set-for-mem", mem="20Gi" if number == 1 else "10Gi"),
            ],
        )
        for number in range(1, 9)
    ]


def listing(words: Words, count: int = 64, odd: int = 32, values: int = 47) -> list[Tree]:
    """Return devices with lists of values; the first ones have none in common with others."""
    shared = words.text("shared-value")
    devices = []
    for number in range(count):
        own = [words.text(f"device-{number}-value-{value}") for value in range(values)]
        listed = words.ordered([*([shared] if number >= odd else []), *own])
        attributes = {f"{words.domain}/match": {"strings": listed}}
        devices.append(device(f"device-{number}", words, attributes=attributes))
    return devices


def taking(counter_set: str, **counters: str) -> Tree:
    """Return how much a device consumes of a counter set."""
    amounts = {name: {"value": value} for name, value in counters.items()}
    return {"counterSet": counter_set, "counters": amounts}


def counter_set(name: str, **counters: str) -> Tree:
    """Return a counter set."""
    return {"name": name, "counters": {name: {"value": value} for name, value in counters.items()}}


FOUR_COUNTERS = [counter_set("counter-set", **{f"counter{number}": "1" for number in range(1, 5)})]
CPUS_AND_MEMORY = [
    counter_set("counter-set-for-cpu", **{f"cpu{number}": "1" for number in range(1, 9)}),
    counter_set("counter-set-for-mem", mem="70Gi"),
]
