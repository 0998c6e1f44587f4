"""The trace: why devices are refused, who has them, and which request gets stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from moorage.allocator import ALL_FEATURES, Features, Inventory, Unsatisfied
from moorage.allocator.pools import PoolId, PoolState
from moorage.allocator.trace import RejectionCause, Trace
from moorage.api.resource.v1 import (
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
)
from tests.allocator.problems.parts import (
    NODE,
    allocated,
    amounts,
    attributes,
    claim,
    class_,
    held,
    quantities,
    request,
    selectors,
    share,
    slice_,
)
from tests.allocator.scenes import (
    DRIVER,
    asked,
    capacity,
    consuming,
    gpu,
    gpus,
    inventory,
    published,
    shareable,
    with_counters,
)


def traced(found: Inventory, *claims: ResourceClaim) -> Trace:
    answer = asked(found, *claims)
    assert isinstance(answer, Unsatisfied), answer
    return answer.trace()


# --- causes -----------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A problem in which the device `gpu-0` is refused."""

    cause: RejectionCause
    detail: str
    slices: Sequence[ResourceSlice]
    request: DeviceRequest = gpu()
    classes: Sequence[DeviceClass] = ()
    allocated: Sequence[ResourceClaim] = ()
    constraints: Sequence[DeviceConstraint] = ()
    features: Features = ALL_FEATURES


GPU = Device(name="gpu-0")
TAINT = DeviceTaint(key="broken", value="fan", effect="NoSchedule")
SMALL = shareable("gpu-0", memory="4Gi")
NVIDIA = 'device.driver == "nvidia.com"'
FAILING = 'device.attributes["gpu.example.com"].model == "a100"'

CASES = [
    Refused(
        RejectionCause.IN_USE,
        "",
        [published(GPU)],
        allocated=[allocated("owner", [held(DRIVER, "gpu-0")])],
    ),
    Refused(
        RejectionCause.BINDING_CONDITIONS,
        "",
        [published(Device(name="gpu-0", binding_conditions=("ready",)))],
        features=ALL_FEATURES._replace(device_binding_and_status=False),
    ),
    Refused(
        RejectionCause.CLASS_SELECTOR,
        NVIDIA,
        [published(GPU)],
        request=request("r", "nvidia"),
        classes=[class_("nvidia", NVIDIA)],
    ),
    Refused(
        RejectionCause.SELECTOR, NVIDIA, [published(GPU)], gpu(selectors=selectors("true", NVIDIA))
    ),
    Refused(
        RejectionCause.NODE,
        "",
        [
            published(
                Device(name="gpu-0", node_name="node-2"),
                Device(name="gpu-1", node_name=NODE, taints=(TAINT,)),
                node_name=None,
                per_device_node_selection=True,
            )
        ],
    ),
    Refused(
        RejectionCause.CAPACITY,
        "memory=8Gi",
        [published(Device(name="gpu-0", capacity=capacity(memory="4Gi")))],
        gpu(capacity=amounts({"memory": "8Gi"})),
    ),
    Refused(
        RejectionCause.NODE_OPERATIONS, "", [published(GPU, skip_node_operations=("Prepare",))]
    ),
    Refused(
        RejectionCause.COUNTERS_OFF,
        "",
        [published(consuming("gpu-0", {"memory": "1"}))],
        features=ALL_FEATURES._replace(partitionable_devices=False),
    ),
    Refused(
        RejectionCause.TAINT,
        "broken=fan:NoSchedule",
        [published(Device(name="gpu-0", taints=(TAINT,)))],
    ),
    Refused(
        RejectionCause.COMPATIBILITY,
        "",
        with_counters(
            {"memory": "9"},
            [consuming("gpu-0", {"memory": "1"}, "a"), consuming("gpu-1", {"memory": "1"}, "b")],
        ),
        allocated=[allocated("owner", [held(DRIVER, "gpu-1")])],
    ),
    Refused(
        RejectionCause.LEFT,
        "",
        with_counters(
            {"memory": "1"},
            [consuming("gpu-0", {"memory": "1"}), consuming("gpu-1", {"memory": "1"})],
        ),
        allocated=[allocated("owner", [held(DRIVER, "gpu-1")])],
    ),
    Refused(
        RejectionCause.LEFT,
        "",
        [published(SMALL)],
        gpu(capacity=amounts({"memory": "3Gi"})),
        allocated=[
            allocated(
                "sharer",
                [
                    held(
                        DRIVER,
                        "gpu-0",
                        share_id=share(1),
                        consumed_capacity=quantities({"memory": "2Gi"}),
                    )
                ],
            )
        ],
    ),
    Refused(
        RejectionCause.ATTRIBUTE,
        "example.com/numa",
        [published(GPU)],
        constraints=[DeviceConstraint(match_attribute="example.com/numa")],
    ),
    Refused(
        RejectionCause.FAULT,
        "no such key: model. consider using CEL optional chaining (.? followed by orValue()) or "
        "guarding the check with has() for optional fields",
        [published(GPU)],
        gpu(selectors=selectors(FAILING)),
        # A fault counts only if it is the device's turn; one in use has none.
        allocated=[allocated("owner", [held(DRIVER, "gpu-0")])],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.cause.name)
def test_a_refused_device_has_a_cause(case: Refused) -> None:
    found = inventory(
        *case.slices, classes=case.classes, allocated=case.allocated, features=case.features
    )
    wanting = claim("claim", [case.request], constraints=tuple(case.constraints))
    (ask,) = traced(found, wanting).requests
    refusal = next(r for r in ask.rejections if r.device == f"{DRIVER}/{NODE}/gpu-0")
    assert (refusal.cause, refusal.detail) == (case.cause, case.detail)
    assert ask.possible == ()


def test_every_cause_has_its_case() -> None:
    assert {case.cause for case in CASES} == set(RejectionCause)


def test_a_derived_attribute_without_a_value_is_a_fault() -> None:
    derived = DeviceDerivedAttribute(
        name="example.com/model", expression='device.attributes["gpu.example.com"].model'
    )
    found = inventory(published(*gpus(1)))
    wanting = claim(
        "claim",
        [gpu("first", 2), gpu("second", derived_attributes=(derived,))],
        constraints=(DeviceConstraint(("second",), match_attribute="example.com/model"),),
    )
    trace = traced(found, wanting)
    (refusal,) = trace.requests[1].rejections
    assert refusal.cause is RejectionCause.FAULT
    assert refusal.detail.startswith("evaluate derived attribute example.com/model on device")


def test_that_a_device_is_not_meant_is_said_before_that_it_is_in_use() -> None:
    found = inventory(published(GPU), allocated=[allocated("owner", [held(DRIVER, "gpu-0")])])
    trace = traced(found, claim("claim", [gpu(selectors=selectors("false"))]))
    assert [refusal.cause for refusal in trace.requests[0].rejections] == [RejectionCause.SELECTOR]


# --- who and how many -------------------------------------------------------------------------


def test_devices_in_use_are_told_with_their_holders() -> None:
    owners = [
        allocated("one", [held(DRIVER, "gpu-0"), held(DRIVER, "gpu-1")]),
        allocated("two", [held(DRIVER, "gpu-1")]),
        allocated("watcher", [held(DRIVER, "gpu-2", admin_access=True)]),
    ]
    found = inventory(published(*gpus(3)), allocated=owners)
    (ask,) = traced(found, claim("claim", [gpu(count=2)])).requests
    assert [(refusal.position, refusal.holders) for refusal in ask.rejections] == [
        (0, (("default", "one"),)),
        (1, (("default", "one"), ("default", "two"))),
    ]
    assert (ask.wanted, ask.possible) == (2, (2,))


def test_pools_that_cannot_be_used_are_told_with_the_reason() -> None:
    found = inventory(
        published(GPU, name="a", pool=ResourcePool("half", 1, 2)),
        slice_("b", "nic.example.com", gpus(1), pool=ResourcePool("whole", 1, 1)),
    )
    trace = traced(found, claim("claim", [gpu(count=2)]))
    assert trace.unusable == ((PoolId(DRIVER, "half"), PoolState.INCOMPLETE, ""),)


def test_every_alternative_is_looked_at() -> None:
    found = inventory(published(GPU))
    alternatives = tuple(
        DeviceSubRequest(
            name=name, device_class_name="gpu", allocation_mode="ExactCount", count=count
        )
        for name, count in (("many", 8), ("few", 2))
    )
    trace = traced(found, claim("claim", [DeviceRequest("r", first_available=alternatives)]))
    assert [(ask.request.full_name, ask.wanted) for ask in trace.requests] == [
        ("r/many", 8),
        ("r/few", 2),
    ]
    assert trace.stuck_at == 0


# --- stuck ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "stuck_at"),
    [
        ([4], 0),
        ([1, 1, 1, 1], 3),
        ([2, 2, 1], 1),
        ([3, 1], 1),
        ([1, 4, 1], 1),
        ([0, 3, 0, 1, 1], 3),
    ],
)
def test_stuck_is_the_first_request_that_cannot_be_served_with_those_before(
    counts: list[int], stuck_at: int
) -> None:
    found = inventory(published(*gpus(3)))
    requests = [gpu(f"r{number}", count) for number, count in enumerate(counts)]
    assert traced(found, claim("claim", requests)).stuck_at == stuck_at


def test_requests_of_all_claims_are_counted_through() -> None:
    found = inventory(published(*gpus(2)))
    claims = [claim(f"c{number}", [gpu()]) for number in range(3)]
    assert traced(found, *claims).stuck_at == 2


def test_a_request_is_not_stuck_if_those_before_can_do_otherwise() -> None:
    devices = [Device(name=f"gpu-{n}", attributes=attributes({"numa": n // 2})) for n in range(4)]
    found = inventory(published(*devices), allocated=[allocated("owner", [held(DRIVER, "gpu-0")])])
    together = (DeviceConstraint(match_attribute=f"{DRIVER}/numa"),)
    wanting = claim("claim", [gpu("a"), gpu("b"), gpu("c")], constraints=together)
    # The first takes gpu-1 in order, which leaves none for the second; gpu-2 and gpu-3 would do.
    assert traced(found, wanting).stuck_at == 2


def test_a_fault_that_is_not_reached_does_not_hide_where_it_is_stuck() -> None:
    found = inventory(published(GPU), allocated=[allocated("owner", [held(DRIVER, "gpu-0")])])
    wanting = claim("claim", [gpu("a", selectors=selectors(FAILING)), gpu("b")])
    assert traced(found, wanting).stuck_at == 0


def test_asking_for_a_trace_changes_no_answer() -> None:
    found = inventory(published(*gpus(2)))
    too_many, enough = claim("claim", [gpu(count=3)]), claim("claim", [gpu(count=2)])
    first = asked(found, enough)
    assert traced(found, too_many) == traced(found, too_many)
    assert type(asked(found, enough)) is type(first)
