"""GPUs cut into partitions that share counters, some of them in compatibility groups."""

from __future__ import annotations

from random import Random

from conformance._allocation import Problem
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
)
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    NODE,
    Size,
    allocated,
    attributes,
    claim,
    class_,
    held,
    is_lucky,
    node,
    quantities,
    request,
    selectors,
    slice_,
    some,
    split,
)

DRIVER = "mig.example.com"
# How many of a GPU's slices a profile takes, and how many places it fits.
PROFILES = {"whole": (8, 1), "half": (4, 2), "quarter": (2, 4), "eighth": (1, 8)}
SMALL_PROFILES = {"whole": (4, 1), "half": (2, 2), "quarter": (1, 2)}


def problem(random: Random, size: Size) -> Problem:
    """Return a problem of partitions."""
    gpus = 1 if size.is_small else random.randint(1, 2)
    profiles = SMALL_PROFILES if size.is_small else PROFILES
    with_groups = is_lucky(random, 0.4)
    devices = [
        device
        for gpu in range(gpus)
        for device in _partitions(random, gpu, profiles, with_groups=with_groups)
    ][: size.devices_max]
    others = _allocated(random, devices)
    return Problem(
        features=ALL_FEATURES,
        node=node(),
        classes=(class_("mig", f'device.driver == "{DRIVER}"'),),
        slices=_slices(random, devices, gpus, max(taken for taken, _ in profiles.values())),
        allocated=others,
        claims=_claims(random, size, gpus, profiles, len(others)),
    )


def _partitions(
    random: Random, gpu: int, profiles: dict[str, tuple[int, int]], *, with_groups: bool
) -> list[Device]:
    devices = []
    for profile, (taken, places) in profiles.items():
        for place in range(places):
            counters = {"memory": f"{taken * 10}Gi", "slices": str(taken)}
            if is_lucky(random, 0.5):
                # Memory that is there once, so that places matter and not only sums.
                first = place * taken
                counters |= {f"slice-{n}": "1" for n in range(first, first + taken)}
            values = {"profile": profile, "gpu": gpu, "place": place}
            consumption = DeviceCounterConsumption(
                f"gpu-{gpu}",
                {name: Counter(amount) for name, amount in quantities(counters).items()},
                tuple(some(random, ["a", "b", "c"], 2))
                if with_groups and is_lucky(random, 0.8)
                else (),
            )
            name = f"gpu-{gpu}-{profile}-{place}"
            devices.append(Device(name, attributes(values), consumes_counters=(consumption,)))
    return devices


def _slices(
    random: Random, devices: list[Device], gpus: int, slices_per_gpu: int
) -> tuple[ResourceSlice, ...]:
    # Sometimes a GPU has a little less than its partitions together.
    lost = random.choice([0, 0, 0, 1])
    amounts = {"memory": f"{(slices_per_gpu - lost) * 10}Gi", "slices": str(slices_per_gpu)}
    amounts |= {f"slice-{number}": "1" for number in range(slices_per_gpu)}
    counters = {name: Counter(amount) for name, amount in quantities(amounts).items()}
    sets = tuple(CounterSet(f"gpu-{gpu}", counters) for gpu in range(gpus))
    middle = len(devices) // 2
    pool = ResourcePool(NODE, 1, 3)
    return (
        slice_("counters", DRIVER, None, pool=pool, shared_counters=sets),
        slice_("first", DRIVER, devices[:middle], pool=pool),
        slice_("second", DRIVER, devices[middle:], pool=pool),
    )


def _allocated(random: Random, devices: list[Device]) -> tuple[ResourceClaim, ...]:
    taken = [d for d in devices if not d.name.endswith("whole-0") and is_lucky(random, 0.03)]
    return tuple(
        allocated(f"other-{number}", [held(DRIVER, device.name)])
        for number, device in enumerate(taken)
    )


def _claims(
    random: Random, size: Size, gpus: int, profiles: dict[str, tuple[int, int]], others: int
) -> tuple[ResourceClaim, ...]:
    """Return claims for about all slices of the GPUs."""
    left = gpus * profiles["whole"][0] - others + random.choice([-3, -2, -1, 0, 0, 1])
    requests: list[DeviceRequest] = []
    while left > 0 and len(requests) < size.slots_max:
        profile = random.choice([name for name, (taken, _) in profiles.items() if taken <= left])
        taken = profiles[profile][0]
        count = random.randint(1, min(2, left // taken))
        left -= taken * count
        requests.append(_request(random, f"r{len(requests)}", profile, count))
    constraints: tuple[DeviceConstraint, ...] = ()
    if gpus == 1 or is_lucky(random, 0.1):
        constraints = (DeviceConstraint((), match_attribute=f"{DRIVER}/gpu"),)
    parts = split(random, len(requests), random.choice([1, 1, 2]))
    return tuple(
        claim(
            f"wanted-{number}",
            requests[sum(parts[:number]) : sum(parts[: number + 1])],
            constraints=constraints,
        )
        for number in range(len(parts))
    )


def _request(random: Random, name: str, profile: str, count: int) -> DeviceRequest:
    only = selectors(f'device.attributes["{DRIVER}"].profile == "{profile}"')
    if is_lucky(random, 0.8):
        return request(name, "mig", count, selectors=only)
    alternatives = (
        DeviceSubRequest("wish", "mig", only, "ExactCount", count),
        DeviceSubRequest("any", "mig", (), "ExactCount", 1),
    )
    return DeviceRequest(name, first_available=alternatives)
