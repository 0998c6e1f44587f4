"""Odd and hostile input: always an answer, never an exception, and never without bound."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.allocator import Allocated, AllocationFailed, AllocationOutcome, Inventory, Unsatisfied
from moorage.allocator.allocation import Budget
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
)
from tests.allocator.problems.parts import (
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

STEPS_MAX = 300


def devices_of(answer: AllocationOutcome) -> list[str]:
    assert isinstance(answer, Allocated), answer
    results = answer.results(lambda: share(0))
    return [result.device for each in results for result in each.devices.results]


def failure(answer: AllocationOutcome) -> str:
    assert isinstance(answer, AllocationFailed), answer
    return answer.message


# --- large ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd() -> Inventory:
    """Return an inventory of ten thousand devices on one node, ten of them special."""
    slices = []
    for number in range(100):
        devices = [
            Device(
                name=f"gpu-{number}-{n}",
                attributes=attributes(
                    {"index": 100 * number + n, "special": n == number % 10 == 7}
                ),
            )
            for n in range(100)
        ]
        slices.append(published(*devices, name=f"s{number:03}", pool=ResourcePool("crowd", 1, 100)))
    return inventory(*slices)


def test_the_last_of_ten_thousand_devices_is_found_in_few_steps(crowd: Inventory) -> None:
    last = selectors(f'device.attributes["{DRIVER}"].index == 9999')
    answer = asked(crowd, claim("claim", [gpu(selectors=last)]))
    assert devices_of(answer) == ["gpu-99-99"]
    assert isinstance(answer, Allocated)
    assert answer.steps <= STEPS_MAX


def test_too_few_of_ten_thousand_devices_are_seen_in_few_steps(crowd: Inventory) -> None:
    special = selectors(f'device.attributes["{DRIVER}"].special')
    requests = [gpu(f"r{number}", selectors=special) for number in range(11)]
    answer = asked(crowd, claim("claim", requests))
    assert isinstance(answer, Unsatisfied)
    assert answer.steps <= STEPS_MAX


def test_ten_thousand_devices_can_be_told_apart_by_a_constraint(crowd: Inventory) -> None:
    apart = (DeviceConstraint(distinct_attribute=f"{DRIVER}/index"),)
    answer = asked(crowd, claim("claim", [gpu(count=32)], constraints=apart))
    assert len(set(devices_of(answer))) == 32
    alike = (DeviceConstraint(match_attribute=f"{DRIVER}/index"),)
    refused = asked(crowd, claim("claim", [gpu(count=2)], constraints=alike))
    assert isinstance(refused, Unsatisfied)
    assert refused.steps <= 2 * STEPS_MAX


def test_all_of_ten_thousand_devices_are_too_many_for_a_claim(crowd: Inventory) -> None:
    answer = asked(crowd, claim("claim", [gpu(allocation_mode="All")]))
    assert failure(answer) == (
        "claim default/claim: number of requested devices 10000 exceeds the claim limit of 32"
    )


@pytest.mark.parametrize(("wanted", "is_enough"), [(128, True), (129, False)])
def test_a_pod_may_have_very_many_claims(wanted: int, is_enough: bool) -> None:
    found = inventory(published(*gpus(128)))
    answer = asked(found, *(claim(f"c{number}", [gpu()]) for number in range(wanted)))
    assert isinstance(answer, Allocated if is_enough else Unsatisfied)
    assert answer.steps <= STEPS_MAX + wanted


def test_more_partitions_can_be_wanted_than_feasibility_checks_can_examine() -> None:
    parts = [consuming(f"gpu-{n}", {"memory": "1"}) for n in range(540)]
    found = inventory(*with_counters({"memory": "527"}, parts))
    claims = [claim(f"c{n}", [gpu(f"r{m}") for m in range(31)]) for n in range(17)]
    assert len(devices_of(asked(found, *claims))) == 527


def test_constraints_for_unknown_requests_have_no_effect() -> None:
    found = inventory(published(*gpus(2)))
    nowhere = tuple(
        DeviceConstraint((f"unknown-{number}",), match_attribute=f"example.com/a{number}")
        for number in range(2000)
    )
    answer = asked(found, claim("claim", [gpu(count=2)], constraints=nowhere))
    assert devices_of(answer) == ["gpu-0", "gpu-1"]


def test_thousands_of_selectors_are_only_many() -> None:
    found = inventory(published(*gpus(1)))
    answer = asked(found, claim("claim", [gpu(selectors=selectors(*["true"] * 2000))]))
    assert devices_of(answer) == ["gpu-0"]


# --- little or nothing ------------------------------------------------------------------------


def test_no_claims_get_nothing() -> None:
    answer = asked(inventory())
    assert isinstance(answer, Allocated)
    assert answer.results(lambda: "") == ()


@pytest.mark.parametrize("requests", [None, ()])
def test_a_claim_without_requests_gets_no_devices(requests: tuple[()] | None) -> None:
    found = inventory(published(*gpus(1)))
    empty = ResourceClaim(spec=ResourceClaimSpec(DeviceClaim(requests=requests)))
    answer = asked(found, empty, claim("claim", [gpu()]))
    assert isinstance(answer, Allocated)
    results = answer.results(lambda: "")
    assert [len(each.devices.results) for each in results] == [0, 1]


def test_an_empty_object_for_each_kind_is_no_reason_to_fail() -> None:
    assert devices_of(asked(inventory(published(Device())), ResourceClaim())) == []
    named = asked(inventory(published(Device())), claim("", [gpu("")]))
    assert devices_of(named) == [""]


def test_a_request_that_asks_for_nothing_known_is_a_fault() -> None:
    answer = asked(inventory(published(*gpus(1))), claim("claim", [DeviceRequest("odd")]))
    assert failure(answer) == (
        "claim default/claim, request odd: missing device class name (unsupported request type?)"
    )


@pytest.mark.parametrize("count", [0, -1, -(2**63)])
def test_a_count_below_one_wants_no_devices(count: int) -> None:
    found = inventory(published(*gpus(1)))
    assert devices_of(asked(found, claim("claim", [gpu("none", count), gpu("one")]))) == ["gpu-0"]


def test_a_huge_count_is_more_than_a_claim_can_have() -> None:
    answer = asked(inventory(published(*gpus(1))), claim("claim", [gpu(count=2**63 - 1)]))
    assert failure(answer) == (
        f"claim default/claim: number of requested devices {2**63 - 1} exceeds the claim limit "
        "of 32"
    )


def test_all_of_no_devices_is_none() -> None:
    answer = asked(inventory(), claim("claim", [gpu(allocation_mode="All")]))
    assert isinstance(answer, Unsatisfied)


# --- contradictions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanting", "message"),
    [
        (
            claim("claim", [request("r", "none")]),
            (
                "claim default/claim, request r: could not retrieve device class none: "
                'deviceclass.resource.k8s.io "none" not found'
            ),
        ),
        (
            claim("claim", [gpu(allocation_mode="Some")]),
            "claim default/claim, request r: unsupported count mode Some",
        ),
        (
            claim("claim", [gpu(selectors=(DeviceSelector(),))]),
            (
                "claim default/claim, request r, selector #0: CEL expression empty "
                "(unsupported selector type?)"
            ),
        ),
        (
            claim("claim", [gpu()], constraints=(DeviceConstraint(),)),
            "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)",
        ),
        (
            claim("claim", [DeviceRequest("r", first_available=(DeviceSubRequest("s"),))]),
            "claim default/claim, request s: missing device class name (unsupported request type?)",
        ),
    ],
)
def test_what_cannot_be_understood_is_a_fault(wanting: ResourceClaim, message: str) -> None:
    assert failure(asked(inventory(published(*gpus(1))), wanting)) == message


def test_dangling_counters_make_the_node_fail_but_not_the_pod() -> None:
    found = inventory(published(consuming("gpu-0", {"memory": "1"})))
    answer = asked(found, claim("claim", [gpu()]))
    assert failure(answer) == "invalid resource pools were encountered"
    assert isinstance(answer, AllocationFailed)
    assert answer.node_only


def test_a_name_that_is_allocated_but_was_never_published_takes_nothing() -> None:
    ghosts = [
        allocated("one", [held(DRIVER, "ghost"), held("unknown.example.com", "gpu-0")]),
        allocated("two", [held(DRIVER, "gpu-0", "another-pool")]),
    ]
    found = inventory(published(*gpus(1)), allocated=ghosts)
    assert devices_of(asked(found, claim("claim", [gpu()]))) == ["gpu-0"]


def test_the_same_claim_may_be_asked_for_twice() -> None:
    found = inventory(published(*gpus(2)))
    wanting = claim("claim", [gpu()])
    assert devices_of(asked(found, wanting, wanting)) == ["gpu-0", "gpu-1"]


def test_requests_of_one_name_are_served_each() -> None:
    found = inventory(published(*gpus(2)))
    assert devices_of(asked(found, claim("claim", [gpu(), gpu()]))) == ["gpu-0", "gpu-1"]


# --- amounts ----------------------------------------------------------------------------------

HUGE = "1" + 30 * "0"


@pytest.mark.parametrize("total", ["0", "1n", HUGE])
@pytest.mark.parametrize("taken", ["-1", "0", "1n", HUGE, f"-{HUGE}"])
def test_counters_of_any_amount_are_added_up(total: str, taken: str) -> None:
    slices = with_counters(
        {"memory": total, "cores": "2"},
        [consuming(f"gpu-{n}", {"memory": taken, "cores": "1"}) for n in (0, 1)],
    )
    for budget in (Budget(), Budget(light_steps=0)):
        answer = asked(inventory(*slices), claim("claim", [gpu(count=2)]), budget=budget)
        whole, part = Quantity.parse(total).nano, Quantity.parse(taken).nano
        is_enough = part <= whole and 2 * part <= whole
        assert isinstance(answer, Allocated if is_enough else Unsatisfied)


@pytest.mark.parametrize("total", ["-1", f"-{HUGE}"])
def test_of_less_than_nothing_not_even_nothing_is_taken(total: str) -> None:
    slices = with_counters({"memory": total}, [consuming("gpu-0", {"memory": "0"})])
    assert isinstance(asked(inventory(*slices), claim("claim", [gpu()])), Unsatisfied)


def test_a_device_that_gives_to_a_counter_makes_room_for_another() -> None:
    slices = with_counters(
        {"memory": "1"},
        [consuming("gpu-0", {"memory": "2"}), consuming("gpu-1", {"memory": "-1"})],
    )
    for budget in (Budget(), Budget(light_steps=0)):
        answer = asked(inventory(*slices), claim("claim", [gpu("a"), gpu("b")]), budget=budget)
        assert devices_of(answer) == ["gpu-1", "gpu-0"]


@pytest.mark.parametrize("value", ["-1", "0", "1n", HUGE, f"-{HUGE}"])
@pytest.mark.parametrize("wanted", [None, "-1", "0", "1n", HUGE])
def test_capacities_of_any_amount_have_an_answer(value: str, wanted: str | None) -> None:
    found = inventory(published(shareable("gpu-0", memory=value)))
    asks = [gpu(f"r{n}", capacity=amounts({"memory": wanted} if wanted else {})) for n in (0, 1)]
    for budget in (Budget(), Budget(light_steps=0)):
        answer = asked(found, claim("claim", asks), budget=budget)
        whole = Quantity.parse(value).nano
        part = whole if wanted is None else Quantity.parse(wanted).nano
        if part < 0:
            assert failure(answer).endswith('capacity "memory": capacity value is negative')
        else:
            assert isinstance(answer, Allocated if 2 * part <= whole else Unsatisfied)


def test_more_may_be_consumed_already_than_there_is() -> None:
    sharer = held(
        DRIVER, "gpu-0", share_id=share(1), consumed_capacity=quantities({"memory": HUGE})
    )
    found = inventory(
        published(shareable("gpu-0", memory="1")), allocated=[allocated("sharer", [sharer])]
    )
    nothing = claim("claim", [gpu(capacity=amounts({"memory": "0"}))])
    assert isinstance(asked(found, nothing), Unsatisfied)


def test_less_than_nothing_may_be_consumed_already() -> None:
    sharer = held(
        DRIVER, "gpu-0", share_id=share(1), consumed_capacity=quantities({"memory": f"-{HUGE}"})
    )
    found = inventory(
        published(shareable("gpu-0", memory="1", cores="1")),
        allocated=[allocated("sharer", [sharer])],
    )
    wanting = [gpu(f"r{n}", capacity=amounts({"memory": "1", "cores": "1"})) for n in (0, 1)]
    assert devices_of(asked(found, claim("claim", wanting[:1]))) == ["gpu-0"]
    assert isinstance(asked(found, claim("claim", wanting)), Unsatisfied)


def test_a_step_of_nothing_is_a_fault() -> None:
    still = CapacityRequestPolicyRange(min=Quantity.ZERO, step=Quantity.ZERO)
    policy = CapacityRequestPolicy(valid_range=still)
    device = Device(name="gpu-0", capacity={"memory": DeviceCapacity(Quantity.parse("1"), policy)})
    answer = asked(
        inventory(published(device)), claim("claim", [gpu(capacity=amounts({"memory": "1"}))])
    )
    assert "cannot be represented in the device's range arithmetic" in failure(answer)


# --- expressions ------------------------------------------------------------------------------

MODEL = f'device.attributes["{DRIVER}"].model'
NO_MODEL = (
    "no such key: model. consider using CEL optional chaining (.? followed by orValue()) or "
    "guarding the check with has() for optional fields"
)
ON_DEVICE = f"selector #0 on device {DRIVER}/node-1/gpu-0"


@pytest.mark.parametrize(
    ("class_selector", "selector", "message"),
    [
        (f'{MODEL} == "a"', "true", f"class odd: {ON_DEVICE}: CEL runtime error: {NO_MODEL}"),
        (
            "true",
            f'{MODEL} == "a"',
            f"claim default/claim: {ON_DEVICE}: CEL runtime error: {NO_MODEL}",
        ),
        ("true", "(", "claim default/claim: selector #0: CEL compile error: compilation failed: "),
        ("(", "true", "class odd: selector #0: CEL compile error: compilation failed: "),
        (
            "true",
            "1",
            (
                "claim default/claim: selector #0: CEL compile error: must evaluate to bool or the "
                "unknown type, not int"
            ),
        ),
        ("true", "(" * 5000, "claim default/claim: selector #0: CEL compile error: "),
    ],
)
def test_an_expression_that_fails_is_told_with_its_place(
    class_selector: str, selector: str, message: str
) -> None:
    found = inventory(published(*gpus(1)), classes=[class_("odd", class_selector)])
    for mode in ("ExactCount", "All"):
        asks = [request("r", "odd", selectors=selectors(selector), allocation_mode=mode)]
        assert failure(asked(found, claim("claim", asks))).startswith(message)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(", "compile derived attribute example.com/a failed: compilation failed: "),
        (
            MODEL,
            (
                f"evaluate derived attribute example.com/a on device {DRIVER}/node-1/gpu-0 failed: "
                "no such key: model"
            ),
        ),
    ],
)
def test_a_derived_attribute_that_fails_is_a_fault_if_a_constraint_wants_it(
    expression: str, message: str
) -> None:
    derived = (DeviceDerivedAttribute("example.com/a", expression),)
    found = inventory(published(*gpus(2)))
    alone = claim("claim", [gpu(count=2, derived_attributes=derived)])
    assert devices_of(asked(found, alone)) == ["gpu-0", "gpu-1"]
    wanted = (DeviceConstraint(match_attribute="example.com/a"),)
    bound = claim("claim", [gpu(derived_attributes=derived)], constraints=wanted)
    assert failure(asked(found, bound)).startswith(message)


def test_a_version_that_is_none_is_a_fault_of_every_selector() -> None:
    odd = Device(name="gpu-0", attributes={"version": DeviceAttribute(version_value="one")})
    found = inventory(published(odd))
    assert devices_of(asked(found, claim("claim", [gpu()]))) == ["gpu-0"]
    answer = asked(found, claim("claim", [gpu(selectors=selectors("true"))]))
    assert failure(answer) == (
        f"claim default/claim: {ON_DEVICE}: CEL runtime error: attribute version: "
        "parse semantic version: No Major.Minor.Patch elements found"
    )


@pytest.mark.parametrize(
    "attribute", [DeviceAttribute(), DeviceAttribute(int_values=()), DeviceAttribute(int_value=1)]
)
def test_an_attribute_of_any_kind_can_be_compared(attribute: DeviceAttribute) -> None:
    devices = [
        Device(name="gpu-0", attributes={"a": attribute}),
        Device(name="gpu-1", attributes={"a": DeviceAttribute(string_value="1")}),
    ]
    found = inventory(published(*devices))
    for constraint in (
        DeviceConstraint(match_attribute=f"{DRIVER}/a"),
        DeviceConstraint(distinct_attribute=f"{DRIVER}/a"),
    ):
        answer = asked(found, claim("claim", [gpu(count=2)], constraints=(constraint,)))
        assert not isinstance(answer, AllocationFailed)


# --- budgets ----------------------------------------------------------------------------------


def far_too_many() -> tuple[Inventory, ResourceClaim]:
    """Return a problem that no search can end in a few steps, and no counting sees through."""
    parts = [consuming(f"gpu-{n}", {"a": str(n % 5 + 3), "b": str(n % 3 + 4)}) for n in range(24)]
    found = inventory(*with_counters({"a": "40", "b": "41"}, parts))
    return found, claim("claim", [gpu(f"r{n}") for n in range(10)])


def test_a_cause_to_stop_ends_the_search() -> None:
    found, wanting = far_too_many()
    answer = asked(found, wanting, budget=Budget(interrupt=lambda: "out of time"))
    assert failure(answer) == "filter operation aborted: out of time"
    assert isinstance(answer, AllocationFailed)
    assert not answer.node_only


def test_a_search_that_is_not_told_to_stop_goes_on() -> None:
    asked_about: list[int] = []

    def go_on() -> None:
        asked_about.append(1)

    found = inventory(published(*gpus(128)))
    claims = [claim(f"c{number}", [gpu()]) for number in range(128)]
    assert isinstance(asked(found, *claims, budget=Budget(interrupt=go_on)), Allocated)
    assert asked_about


def test_a_budget_of_steps_that_is_spent_is_told() -> None:
    found, wanting = far_too_many()
    answer = asked(found, wanting, budget=Budget(light_steps=0, steps=0))
    assert failure(answer) == ("filter operation aborted: no answer after 0 steps of the search")


def test_after_an_aborted_search_the_next_one_is_as_good_as_any() -> None:
    found, wanting = far_too_many()
    asked(found, wanting, budget=Budget(interrupt=lambda: "out of time"))
    enough = claim("claim", [gpu(f"r{n}") for n in range(3)])
    assert devices_of(asked(found, enough)) == ["gpu-0", "gpu-1", "gpu-2"]


# --- anything ---------------------------------------------------------------------------------

ODD_DEVICES: Sequence[Sequence[Device]] = [
    (),
    (Device(), Device()),
    (Device(name="/"), Device(name="a/b"), Device(name="\0")),
    (Device(name="x", node_name="node-2", all_nodes=True),),
    (Device(name="x", capacity=capacity(**{"a/b/c": "1", "": "2"})),),
    (Device(name="x", attributes={"": DeviceAttribute(), "/": DeviceAttribute(int_value=1)}),),
    (Device(name="x", binding_failure_conditions=("a",), binds_to_node=True),),
]


@pytest.mark.parametrize("devices", ODD_DEVICES)
@pytest.mark.parametrize("per_device", [None, False, True])
@pytest.mark.parametrize(
    "asks",
    [
        [gpu()],
        [gpu(count=2, selectors=selectors("device.attributes['/'].size() == 0"))],
        [gpu(allocation_mode="All")],
        [gpu(admin_access=True), gpu("other", admin_access=True)],
        [DeviceRequest("r", first_available=(DeviceSubRequest("s", "gpu", (), "ExactCount", 1),))],
    ],
)
def test_odd_objects_have_an_answer(
    devices: Sequence[Device], per_device: bool | None, asks: list[DeviceRequest]
) -> None:
    found = inventory(published(*devices, per_device_node_selection=per_device))
    answer = asked(found, claim("claim", asks))
    if isinstance(answer, Allocated):
        answer.results(lambda: share(0))
    if isinstance(answer, Unsatisfied):
        answer.trace()
