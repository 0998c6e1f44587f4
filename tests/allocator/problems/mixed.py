"""Everything at once: all features, on and off, and clusters in all states."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Raw

from conformance._allocation import Problem
from moorage.api.resource.v1 import (
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceSlice,
)
from tests.allocator.problems.mixed_slices import DRIVERS, GROUP, slices
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    NUMA,
    Size,
    allocated,
    amounts,
    claim,
    class_,
    exactly,
    held,
    is_lucky,
    node,
    quantities,
    selectors,
    share,
    some,
)

GPU = DRIVERS[0]
SELECTORS = (
    f'device.driver == "{GPU}"',
    f'has(device.attributes["{GPU}"].model) && device.attributes["{GPU}"].model == "a"',
    f'device.attributes["{GPU}"].?healthy.orValue(true)',
    f'!has(device.attributes["{GPU}"].index) || device.attributes["{GPU}"].index < 4',
    f'device.driver != "{GPU}" || device.capacity["{GPU}"].?memory.hasValue()',
    "!device.allowMultipleAllocations",
)
# These raise for some devices, or for all.
FAULTY_SELECTORS = (
    f'device.attributes["{GPU}"].model == "a"',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("4Gi")) >= 0',
    f'device.attributes["{GPU}"].model',
    'device.attributes["resource.kubernetes.io"].numaNode.exists(n, n == 0)',
    "device.nothing == 1",
)
DERIVED = (
    f'device.attributes["{GPU}"].index / 2',
    f'device.attributes["{GPU}"].?index.orValue(0) % 2 == 0',
    f'[device.attributes["{GPU}"].?index.orValue(0), 7]',
    f'12 / (device.attributes["{GPU}"].?index.orValue(0) - 2)',
    "device.driver",
)
COUNTS = (1, 1, 2, 2, 3)
CLASSES = (
    class_("any"),
    class_("gpu", f'device.driver == "{GPU}"'),
    class_("nic", f'device.driver == "{DRIVERS[1]}"'),
    class_("faulty", FAULTY_SELECTORS[0]),
)


def problem(random: Random, size: Size) -> Problem:
    """Return a problem of everything."""
    features = set(ALL_FEATURES)
    if is_lucky(random, 0.2):
        features -= set(some(random, sorted(ALL_FEATURES), 2))
    found = slices(random, size)
    configured = class_(
        "configured",
        f'device.driver == "{GPU}"',
        config=(DeviceClassConfiguration(_opaque("class")),),
    )
    declared = ["DRAOptionalNodeOperations"] if is_lucky(random, 0.6) else []
    slots = size.slots_max if size.is_small else random.randint(8, 20)
    return Problem(
        features=frozenset(features),
        node=node(labels={"zone": "z1", "age": "7"}, declared=declared),
        classes=(*CLASSES, configured),
        slices=found,
        allocated=_allocated(random, found),
        claims=_claims(random, slots),
    )


def _opaque(owner: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(GPU, Raw(b'{"of":"%s"}' % owner.encode()))


def _allocated(random: Random, found: tuple[ResourceSlice, ...]) -> tuple[ResourceClaim, ...]:
    results: list[DeviceRequestAllocationResult] = []
    for slice_ in found:
        for device in slice_.spec.devices or ():
            fields: dict[str, Any] = {}
            if is_lucky(random, 0.2):
                fields["admin_access"] = True
            elif device.allow_multiple_allocations and is_lucky(random, 0.9):
                fields["share_id"] = share(len(results))
                fields["consumed_capacity"] = quantities({"memory": "1Gi"})
            if is_lucky(random, 0.1):
                pool = slice_.spec.pool.name
                results.append(held(slice_.spec.driver, device.name, pool, **fields))
    return tuple(allocated(f"other-{n}", [result]) for n, result in enumerate(results))


# --- claims -------------------------------------------------------------------------------


def _claims(random: Random, slots: int) -> tuple[ResourceClaim, ...]:
    claims = []
    for number in range(random.choice([1, 1, 1, 2])):
        requests: list[DeviceRequest] = []
        for _ in range(random.randint(1, 3)):
            count = min(slots, random.choice(COUNTS))
            if count:
                requests.append(_request(random, f"r{len(requests)}", count))
            slots -= count
        config = [_config(random, requests) for _ in range(random.choice([0, 0, 1, 2]))]
        constraints = _constraints(random, requests)
        claims.append(
            claim(f"wanted-{number}", requests, constraints=constraints, config=tuple(config))
        )
    return tuple(claims)


def _request(random: Random, name: str, count: int) -> DeviceRequest:
    if is_lucky(random, 0.75):
        fields = _fields(random, count)
        if is_lucky(random, 0.1):
            fields["admin_access"] = is_lucky(random, 0.8)
        return DeviceRequest(name, exactly(_class_name(random), **fields))
    alternatives = [
        DeviceSubRequest(
            f"s{number}", _class_name(random), **_fields(random, max(1, count - number))
        )
        for number in range(random.randint(1, 3))
    ]
    return DeviceRequest(name, first_available=tuple(alternatives))


def _class_name(random: Random) -> str:
    names = ["any", "any", "any", "gpu", "nic", "configured"]
    if is_lucky(random, 0.01):
        names = ["faulty", "missing"]
    return random.choice(names)


def _fields(random: Random, count: int) -> dict[str, Any]:
    """Return what requests and alternatives have alike."""
    fields: dict[str, Any] = {"allocation_mode": "ExactCount", "count": count}
    if is_lucky(random, 0.08):
        fields = {"allocation_mode": "All"}
    if is_lucky(random, 0.3):
        texts = some(random, SELECTORS, 1)
        if is_lucky(random, 0.1):
            texts.append(random.choice(FAULTY_SELECTORS))
        fields["selectors"] = selectors(*texts)
    if is_lucky(random, 0.4):
        fields["tolerations"] = (_toleration(random),)
    if is_lucky(random, 0.15):
        memory = random.choice(["1Gi", "1Gi", "2Gi", "3Gi", "1500Mi", "20Gi"])
        fields["capacity"] = amounts({"memory": memory})
    if is_lucky(random, 0.15):
        derived = DeviceDerivedAttribute(random.choice([GROUP, NUMA]), random.choice(DERIVED))
        fields["derived_attributes"] = (derived,)
    return fields


def _toleration(random: Random) -> DeviceToleration:
    return DeviceToleration(
        key=random.choice(["", "bad", "old"]),
        operator=random.choice(["Exists", "Exists", "Equal", ""]),
        value=random.choice(["", "", "yes"]),
        effect=random.choice(["", "", "NoSchedule"]),
    )


def _names(requests: list[DeviceRequest]) -> list[str]:
    """Return the names by which requests and alternatives can be meant."""
    alternatives = [f"{r.name}/{s.name}" for r in requests for s in r.first_available]
    return [*(request.name for request in requests), *alternatives]


def _constraints(random: Random, requests: list[DeviceRequest]) -> tuple[DeviceConstraint, ...]:
    constraints = []
    for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
        covered: tuple[str, ...] = ()
        if requests and is_lucky(random, 0.5):
            covered = tuple(some(random, _names(requests), 2))
        name = random.choice([NUMA, NUMA, GROUP, f"{GPU}/model", f"{GPU}/index"])
        if is_lucky(random, 0.6):
            constraints.append(DeviceConstraint(covered, match_attribute=name))
        else:
            constraints.append(DeviceConstraint(covered, distinct_attribute=name))
    return tuple(constraints)


def _config(random: Random, requests: list[DeviceRequest]) -> DeviceClaimConfiguration:
    covered: tuple[str, ...] = ()
    if requests and is_lucky(random, 0.7):
        covered = tuple(some(random, _names(requests), 3))
    return DeviceClaimConfiguration(covered, _opaque("claim"))
