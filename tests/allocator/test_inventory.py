"""The inventory caches derived facts while they are valid, and recomputes them afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as given_
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.allocator import (
    ALL_FEATURES,
    Allocated,
    AllocationFailed,
    Inventory,
    Unsatisfied,
    allocate,
)
from moorage.allocator.inventory import HOPELESS_MAX, PLANS_MAX, PROBLEMS_MAX
from moorage.allocator.ledger import CHANGES_KEPT
from moorage.allocator.node_view import AllocatedState
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, ResourceClaim, ResourcePool, ResourceSlice
from moorage.cel.device import CelFeatures, DeviceCompiler
from tests.allocator.problems.parts import (
    NODE,
    allocated,
    amounts,
    attributes,
    claim,
    class_,
    held,
    node,
    request,
    selectors,
    share,
    slice_,
)
from tests.allocator.scenes import (
    DRIVER,
    HERE,
    asked,
    consuming,
    gpu,
    gpus,
    inventory,
    published,
    shareable,
    with_counters,
)

THERE = Node(metadata=ObjectMeta(name="node-2"))
FAR = published(*gpus(1), name="far", node_name="node-2", pool=ResourcePool("node-2", 1, 1))
WANTING = claim("claim", [gpu()])


def given(found: Inventory, *claims: ResourceClaim, at: Node = HERE) -> list[str]:
    """Return the devices that claims get."""
    answer = asked(found, *claims, at=at)
    assert isinstance(answer, Allocated), answer
    results = answer.results(lambda: "share")
    return [result.device for each in results for result in each.devices.results]


# --- plans ------------------------------------------------------------------------------------


def test_claims_of_one_content_have_one_plan() -> None:
    found = inventory()
    plan = found.plan([WANTING])
    assert found.plan([claim("another", [gpu()])]) is plan


@pytest.mark.parametrize(
    "other",
    [
        [claim("claim", [gpu(count=2)])],
        [claim("claim", [gpu("other")])],
        [claim("claim", [gpu(selectors=selectors("true"))])],
        [claim("claim", [gpu(capacity=amounts({"memory": "1"}))])],
        [WANTING, WANTING],
        [],
    ],
)
def test_claims_of_other_content_have_another_plan(other: list[ResourceClaim]) -> None:
    found = inventory()
    assert found.plan(other) is not found.plan([WANTING])


def test_an_amount_in_another_notation_is_another_content() -> None:
    found = inventory()
    asks = [claim("claim", [gpu(capacity=amounts({"m": text}))]) for text in ("1Ki", "1024")]
    assert found.plan([asks[0]]) is not found.plan([asks[1]])


@pytest.mark.parametrize("notations", [("1Ki", "1024"), ("1024", "1Ki")])
def test_what_is_consumed_is_written_as_it_was_asked_for(notations: tuple[str, str]) -> None:
    found = inventory(published(shareable("gpu-0", memory="4Ki")))
    for text in notations:
        answer = asked(found, claim("claim", [gpu(capacity=amounts({"memory": text}))]))
        assert isinstance(answer, Allocated)
        (result,) = answer.results(lambda: "share")[0].devices.results
        assert result.consumed_capacity is not None
        assert str(result.consumed_capacity["memory"]) == text


def test_a_class_renews_the_plans() -> None:
    found = inventory(published(*gpus(1)))
    plan = found.plan([WANTING])
    assert given(found, WANTING) == ["gpu-0"]
    found.put_class(class_("gpu", "false"))
    assert found.plan([WANTING]) is not plan
    assert isinstance(asked(found, WANTING), Unsatisfied)


def test_a_class_that_comes_later_is_found() -> None:
    found = inventory(published(*gpus(1)))
    wanting = claim("claim", [request("r", "new")])
    missing = asked(found, wanting)
    assert isinstance(missing, AllocationFailed)
    assert missing.message == (
        "claim default/claim, request r: could not retrieve device class new: "
        'deviceclass.resource.k8s.io "new" not found'
    )
    found.put_class(class_("new"))
    assert given(found, wanting) == ["gpu-0"]
    found.remove_class("new")
    assert isinstance(asked(found, wanting), AllocationFailed)


def test_a_fault_names_the_claim_that_has_it() -> None:
    found = inventory()
    for name in ("one", "two"):
        answer = asked(found, claim(name, [request("r", "none")]))
        assert isinstance(answer, AllocationFailed)
        assert answer.message.startswith(f"claim default/{name}, ")


def test_plans_are_not_kept_without_bound() -> None:
    found = inventory()
    for number in range(PLANS_MAX + 10):
        found.plan([claim("claim", [gpu(f"r{number}")])])
    plan = found.plan([WANTING])
    assert found.plan([WANTING]) is plan
    assert len(found._plans) <= PLANS_MAX


# --- views and problems -----------------------------------------------------------------------


def test_a_problem_is_kept_while_nothing_changes() -> None:
    found = inventory(published(*gpus(1)))
    plan = found.plan([WANTING])
    problem = found.problem(HERE, plan)
    given(found, WANTING)
    assert found.problem(HERE, plan) is problem
    same_node = node()
    assert found.problem(same_node, plan) is problem


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.put_slice(published(*gpus(2))),
        lambda found: found.put_slice(published(*gpus(1))),
        lambda found: found.put_slice(
            published(*gpus(1), name="more", pool=ResourcePool("more", 1, 1))
        ),
        lambda found: found.remove_slice("s"),
        lambda found: found.put_claim(allocated("owner", [held(DRIVER, "gpu-0")])),
        lambda found: found.drop_node(NODE),
    ],
    ids=["slice changed", "slice again", "slice more", "slice gone", "claim", "forgotten"],
)
def test_a_problem_is_renewed_when_something_of_its_node_changes(change: Any) -> None:
    found = inventory(published(*gpus(1)))
    plan = found.plan([WANTING])
    problem = found.problem(HERE, plan)
    change(found)
    assert found.problem(HERE, plan) is not problem


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.put_slice(FAR),
        lambda found: found.put_claim(allocated("far", [held(DRIVER, "gpu-0", "node-2")])),
        lambda found: found.put_claim(
            allocated("watcher", [held(DRIVER, "gpu-0", admin_access=True)])
        ),
        lambda found: found.remove_claim("default", "unknown"),
        lambda found: found.drop_node("node-2"),
    ],
    ids=["slice elsewhere", "claim elsewhere", "admin access", "unknown claim", "other node"],
)
def test_a_problem_is_kept_when_something_else_changes(change: Any) -> None:
    found = inventory(published(*gpus(1)))
    plan = found.plan([WANTING])
    problem = found.problem(HERE, plan)
    change(found)
    assert found.problem(HERE, plan) is problem


def test_a_claim_renews_the_problem_but_not_the_view() -> None:
    found = inventory(published(*gpus(2)))
    view = found.view(HERE)
    found.put_claim(allocated("owner", [held(DRIVER, "gpu-0")]))
    assert found.view(HERE) is view
    assert given(found, WANTING) == ["gpu-1"]
    found.remove_claim("default", "owner")
    assert given(found, WANTING) == ["gpu-0"]


def test_slots_are_made_once_where_they_do_not_depend_on_what_is_allocated() -> None:
    found = inventory(published(*gpus(3)))
    before = found.problem(HERE, found.plan([WANTING]))
    found.put_claim(allocated("owner", [held(DRIVER, "gpu-0")]))
    after = found.problem(HERE, found.plan([WANTING]))
    assert after.stages is before.stages
    assert (before.allocated.whole, after.allocated.whole) == (0, 1)  # each is of its time
    assert given(found, WANTING) == ["gpu-1"]


OWNED = [held(DRIVER, f"gpu-{n}", pool) for pool in (NODE, "counted", "gone") for n in range(3)]
SHARED = [
    held(DRIVER, f"gpu-{n}", share_id=share(n), consumed_capacity={"memory": Quantity.parse("1")})
    for n in (2, 3)
]
CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from([*OWNED, *SHARED]), max_size=3)),
    max_size=2 * CHANGES_KEPT,
)


@settings(max_examples=100)
@given_(rounds=st.lists(CHANGES, max_size=3))
def test_allocations_that_are_read_now_and_then_are_those_that_are_read_at_last(
    rounds: list[list[tuple[int, list[Any]]]],
) -> None:
    counted = ResourcePool("counted", 1, 2)
    slices = [
        published(*gpus(3), shareable("gpu-3", memory="8")),
        *[
            replace(each, spec=replace(each.spec, pool=counted))
            for each in with_counters(
                {"c": "2"}, [consuming(f"gpu-{n}", {"c": "1"}) for n in range(3)]
            )
        ],
    ]
    found = inventory(*slices)
    claims: dict[str, ResourceClaim] = {}
    for changes in rounds:
        for number, results in changes:
            name = f"claim-{number}"
            claims[name] = allocated(name, results)
            found.put_claim(claims[name])
        now = found.view(HERE).allocated
        fresh = inventory(*slices, allocated=claims.values()).view(HERE).allocated
        assert _plain(now) == _plain(fresh)


def _plain(state: AllocatedState) -> tuple[Any, ...]:
    """Return a state without amounts of zero."""
    capacity = {
        position: {name: amount for name, amount in amounts.items() if amount}
        for position, amounts in state.capacity.items()
    }
    return state._replace(capacity=capacity)


def test_a_node_with_other_labels_is_looked_at_anew() -> None:
    everywhere = published(*gpus(1), node_name=None, all_nodes=True)
    found = inventory(everywhere)
    view = found.view(HERE)
    assert found.view(node(labels={"zone": "a"})) is not view


def test_a_slice_for_many_nodes_renews_them_all() -> None:
    found = inventory(published(*gpus(1)), FAR)
    views = [found.view(each) for each in (HERE, THERE)]
    found.put_slice(slice_("net", "nic.example.com", gpus(1), node_name=None, all_nodes=True))
    renewed = [found.view(each) for each in (HERE, THERE)]
    assert all(now is not before for now, before in zip(renewed, views, strict=True))
    assert [len(view.published) for view in renewed] == [2, 2]


def test_problems_of_a_node_are_not_kept_without_bound() -> None:
    found = inventory(published(*gpus(1)))
    plan = found.plan([claim("claim", [gpu("first")])])
    first = found.open_problem(HERE, plan)
    assert found.open_problem(HERE, plan) is first
    for number in range(PROBLEMS_MAX):
        asked(found, claim("claim", [gpu(f"r{number}")]))
    assert found.open_problem(HERE, plan) is not first


def test_a_plan_without_a_solution_is_known_until_something_is_given_back() -> None:
    found = inventory(published(*gpus(3)), allocated=[allocated("owner", [held(DRIVER, "gpu-0")])])
    plan = found.plan([claim("claim", [gpu(count=3)])])
    assert not found.is_infeasible(HERE, plan)
    assert isinstance(asked(found, claim("claim", [gpu(count=3)])), Unsatisfied)
    assert found.is_infeasible(HERE, plan)
    found.remove_claim("default", "owner")
    assert not found.is_infeasible(HERE, plan)


def test_where_no_device_is_free_a_plan_that_needs_one_need_not_be_tried() -> None:
    taken = [allocated("owner", [held(DRIVER, "gpu-0")])]
    found = inventory(published(*gpus(1)), allocated=taken)
    assert found.is_full(HERE)
    assert found.plan([WANTING]).needs_free_device
    admin = request("r", "gpu", admin_access=True)
    assert not found.plan([claim("claim", [admin, gpu("s")])]).needs_free_device
    found.remove_claim("default", "owner")
    assert not found.is_full(HERE)


def test_plans_without_a_solution_are_not_kept_without_bound() -> None:
    found = inventory(published(*gpus(1)))
    for number in range(HOPELESS_MAX + 5):
        asked(found, claim("claim", [gpu(f"r{number}", count=2)]))
    assert len(found.view(HERE).hopeless) <= HOPELESS_MAX


@pytest.mark.parametrize(("amount", "may_gain"), [("1", False), ("-1", True)])
def test_a_device_that_takes_less_than_nothing_may_help_others(amount: str, may_gain: bool) -> None:
    found = inventory(*with_counters({"c": "4"}, [consuming("gpu-0", {"c": amount})]))
    assert found.may_gain_by_taking is may_gain
    found.remove_slice("devices")
    assert not found.may_gain_by_taking


def test_a_forgotten_node_gets_the_same_answer_again() -> None:
    found = inventory(published(*gpus(2)), allocated=[allocated("o", [held(DRIVER, "gpu-0")])])
    before = given(found, WANTING)
    found.drop_node(NODE)
    found.drop_node("unknown")
    assert given(found, WANTING) == before == ["gpu-1"]


# --- slices that come and go ------------------------------------------------------------------


def test_a_slice_that_is_put_again_may_be_of_another_pool_and_node() -> None:
    found = inventory(published(*gpus(1)))
    found.put_slice(published(*gpus(1), node_name="node-2"))
    assert found.view(HERE).published == ()
    assert given(found, WANTING, at=THERE) == ["gpu-0"]
    found.put_slice(published(*gpus(3), pool=ResourcePool("other", 1, 1)))
    assert found.view(THERE).published == ()
    assert len(found.view(HERE).published) == 3


def test_slices_of_one_name_can_be_told_apart_by_a_key() -> None:
    found = inventory()
    found.put_slice(published(*gpus(1), pool=ResourcePool("a", 1, 1)), key="one")
    found.put_slice(published(*gpus(1), pool=ResourcePool("b", 1, 1)), key="two")
    assert len(found.view(HERE).published) == 2
    found.remove_slice("one")
    assert [pool.id.name for pool in found.view(HERE).seen] == ["b"]


def test_when_all_slices_are_gone_nothing_is_seen() -> None:
    slices: list[ResourceSlice] = [
        published(*gpus(1)),
        slice_("net", "nic.example.com", gpus(1), node_name=None, all_nodes=True),
    ]
    found = inventory(*slices)
    assert len(found.view(HERE).published) == 2
    for each in slices:
        found.remove_slice(each.metadata.name)
    assert found.view(HERE).seen == ()


def test_what_is_taken_of_a_slice_that_comes_later_is_taken() -> None:
    found = inventory(allocated=[allocated("owner", [held(DRIVER, "gpu-0")])])
    found.put_slice(published(*gpus(2)))
    assert given(found, WANTING) == ["gpu-1"]


# --- what is not there ------------------------------------------------------------------------


def test_removing_an_unknown_slice_or_class_names_it() -> None:
    found = inventory(published(*gpus(1)))
    with pytest.raises(KeyError, match="'none'"):
        found.remove_slice("none")
    with pytest.raises(KeyError, match="'none'"):
        found.remove_class("none")
    assert given(found, WANTING) == ["gpu-0"]


def test_a_class_can_be_looked_up() -> None:
    found = Inventory(ALL_FEATURES)
    assert found.device_class("gpu") is None
    gpu_class = class_("gpu")
    found.put_class(gpu_class)
    assert found.device_class("gpu") is gpu_class


def test_a_node_without_any_slice_has_no_devices() -> None:
    assert isinstance(asked(inventory(), WANTING), Unsatisfied)
    assert isinstance(asked(inventory(published(Device())), WANTING, at=THERE), Unsatisfied)


def test_pools_whose_devices_have_the_same_values_share_the_table_of_an_attribute() -> None:
    def of_node(name: str, *values: object) -> ResourceSlice:
        devices = [
            Device(name=f"{name}-{n}", attributes=attributes({"x": value, "uuid": f"{name}-{n}"}))
            for n, value in enumerate(values)
        ]
        pool = ResourcePool(name, 1, 1)
        return slice_(name, DRIVER, devices, pool=pool, node_name=name)

    contents = {"a": (1, "u"), "b": (1, "u"), "c": (True, "u"), "d": ((1,), "u"), "e": ("u", 1)}
    found = inventory(*[of_node(name, *values) for name, values in contents.items()])
    tables = {
        name: found.view(Node(metadata=ObjectMeta(name=name))).table(f"{DRIVER}/x", None)
        for name in contents
    }
    assert tables["a"] is tables["b"]
    assert len({id(table) for table in tables.values()}) == 4
    # A list of one value matches the value, a bool no int.
    assert tables["d"].elements == tables["a"].elements
    assert tables["c"].elements != tables["a"].elements


def test_pools_whose_devices_consume_the_same_share_their_counters() -> None:
    def of_node(name: str, consumed: str) -> list[ResourceSlice]:
        pool = ResourcePool(name, 1, 2)
        devices = [consuming(f"{name}-{n}", {"c": consumed}) for n in range(2)]
        return [
            replace(
                each,
                metadata=ObjectMeta(name=f"{name}-{each.metadata.name}"),
                spec=replace(each.spec, pool=pool, node_name=name),
            )
            for each in with_counters({"c": "4"}, devices)
        ]

    contents = {"a": "1", "b": "1", "c": "2"}
    found = inventory(*[each for name, one in contents.items() for each in of_node(name, one)])
    views = {name: found.view(Node(metadata=ObjectMeta(name=name))) for name in contents}
    counters = {name: view.pools[0].counters for name, view in views.items()}
    assert counters["a"] is counters["b"]
    assert counters["c"] is not counters["a"]
    assert counters["c"] is not None
    assert counters["c"].totals == {("set", "c"): 4 * 10**9}


def test_a_selector_by_driver_is_evaluated_once_for_each_driver() -> None:
    compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
    found = Inventory(compiler=compiler)
    for driver in (DRIVER, "nic.example.com"):
        for number in range(3):
            pool = ResourcePool(f"p{number}", 1, 1)
            found.put_slice(slice_(f"{driver}-{number}", driver, gpus(50), pool=pool))
    found.put_class(class_("gpu", f'device.driver == "{DRIVER}"'))
    answer = allocate(found, HERE, [claim("c", [gpu(count=3)])])
    assert isinstance(answer, Allocated)
    assert compiler.meter.evaluations == 2
