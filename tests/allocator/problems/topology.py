"""GPUs, NICs and CPUs at NUMA nodes and PCIe roots; claims want them together, or apart."""

from __future__ import annotations

from random import Random

from conformance._allocation import Problem
from moorage.api.resource.v1 import Device, DeviceConstraint, DeviceRequest, ResourceClaim
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    NUMA,
    PCIE,
    Size,
    allocated,
    attributes,
    claim,
    class_,
    held,
    is_lucky,
    node,
    request,
    slice_,
    some,
    split,
    wanted,
)

KINDS = ("gpu", "nic", "cpu")


def problem(random: Random, size: Size) -> Problem:
    """Return a problem of topology."""
    lists = is_lucky(random, 0.8)
    kinds = some(random, KINDS, 3)
    total = random.randint(size.devices_max // 2, size.devices_max)
    sockets = random.randint(1, 2 if size.is_small else 4)
    parts = zip(kinds, split(random, total, len(kinds)), strict=False)
    devices = {kind: _devices(random, kind, count, sockets, lists=lists) for kind, count in parts}
    return Problem(
        features=ALL_FEATURES if lists else ALL_FEATURES - {"ListTypeAttributes"},
        node=node(),
        classes=tuple(class_(kind, f'device.driver == "{kind}.example.com"') for kind in KINDS),
        slices=tuple(slice_(kind, f"{kind}.example.com", devices[kind]) for kind in devices),
        allocated=tuple(
            allocated(f"other-{kind}", [held(f"{kind}.example.com", devices[kind][0].name)])
            for kind in devices
            if is_lucky(random, 0.1)
        ),
        claims=_claims(random, size, {kind: len(found) for kind, found in devices.items()}),
    )


def _devices(random: Random, kind: str, count: int, sockets: int, *, lists: bool) -> list[Device]:
    names = [f"{kind}-{number}" for number in range(count)]
    return [
        Device(name, attributes(_place(random, number, sockets, lists=lists)))
        for number, name in enumerate(names)
    ]


def _place(random: Random, number: int, sockets: int, *, lists: bool) -> dict[str, object]:
    """Return where a device is: mostly on one socket, sometimes near two, or nobody knows."""
    socket = number % sockets if is_lucky(random, 0.7) else random.randrange(sockets)
    numa: object = socket
    if lists and is_lucky(random, 0.5):
        numa = tuple({socket, random.randrange(sockets)})
    if is_lucky(random, 0.05):
        numa = random.choice([None, str(socket)])
    roots: object = f"pci{random.randrange(3)}"
    if lists and is_lucky(random, 0.2):
        roots = (roots, f"pci{random.randrange(3)}")
    return {NUMA: numa, PCIE: None if is_lucky(random, 0.1) else roots, "index": number}


def _claims(random: Random, size: Size, counts: dict[str, int]) -> tuple[ResourceClaim, ...]:
    requests: list[DeviceRequest] = []
    for kind, count in counts.items():
        total = wanted(random, size, count)
        for part in split(random, total, random.randint(1, 3)):
            requests.append(request(f"r{len(requests)}", kind, part))
    random.shuffle(requests)
    while sum(r.exactly.count for r in requests if r.exactly) > size.slots_max:
        requests.pop()
    return (claim("wanted", requests, constraints=_constraints(random, requests)),)


def _constraints(random: Random, requests: list[DeviceRequest]) -> tuple[DeviceConstraint, ...]:
    constraints = []
    for _ in range(random.choice([0, 1, 1, 1, 1, 2])):
        names = [request.name for request in requests]
        covered = () if is_lucky(random, 0.2) else tuple(some(random, names, 3))
        attribute = random.choice([NUMA, PCIE])
        if is_lucky(random, 0.7):
            constraints.append(DeviceConstraint(covered, match_attribute=attribute))
        else:
            distinct = random.choice([attribute, "gpu.example.com/index"])
            constraints.append(DeviceConstraint(covered, distinct_attribute=distinct))
    return tuple(constraints)
