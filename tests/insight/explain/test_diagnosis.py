"""Why claims get no devices: funnels, conflicts and fixes of small clusters."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from moorage.allocator import ALL_FEATURES, Allocated, Inventory, allocate
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
)
from moorage.insight.answer.document import shown_diagnosis
from moorage.insight.explain.conflict import HOLDERS_MAX
from moorage.insight.explain.diagnosis import Diagnosis, diagnose, diagnose_claims
from moorage.insight.explain.phrases import change_text, member_text, rejection_text
from moorage.insight.explain.report import diagnosis_lines
from moorage.insight.explain.situation import (
    DropConstraint,
    DropRequest,
    DropSelector,
    LowerCount,
    RequestPath,
    Situation,
    SituationChange,
)
from moorage.insight.explain.trials import Effort, applied
from tests.allocator.problems.parts import (
    NUMA,
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
    HERE,
    consuming,
    gpu,
    gpus,
    inventory,
    published,
    shareable,
    with_counters,
)

TAINT = DeviceTaint(key="broken", value="fan", effect="NoSchedule")
NVIDIA = 'device.attributes["gpu.example.com"].?model.orValue("") == "a100"'
MATCH_NUMA = DeviceConstraint(match_attribute=NUMA)


def explained(found: Inventory, *claims: ResourceClaim) -> Diagnosis:
    diagnosis = diagnose_claims(found, HERE, claims)
    assert diagnosis is not None
    return diagnosis


def wanting(*requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    return claim("wanted", requests, **fields)


def fixes(diagnosis: Diagnosis) -> list[str]:
    return [
        " and ".join(change_text(change, diagnosis.situation) for change in fix.changes)
        for fix in diagnosis.fixes
    ]


def members(diagnosis: Diagnosis) -> list[str]:
    return [
        member_text(member, diagnosis.situation, diagnosis.obstacles)
        for member in diagnosis.conflict.members
    ]


def refused(diagnosis: Diagnosis) -> str:
    (funnel,) = diagnosis.funnels
    assert funnel.nearest is not None
    return f"{funnel.nearest.device.rpartition('/')[2]} {rejection_text(funnel.nearest.refusal)}"


def on_numa(name: str, node: int) -> Device:
    return Device(name=name, attributes=attributes({NUMA: node}))


# --- conflicts and fixes ----------------------------------------------------------------------


def test_claims_that_fit_have_no_diagnosis() -> None:
    found = inventory(published(*gpus(2)))
    assert diagnose_claims(found, HERE, [wanting(gpu(count=2))]) is None


def test_too_many_devices_are_lowered_to_the_largest_count_that_works() -> None:
    diagnosis = explained(inventory(published(*gpus(6))), wanting(gpu("gpus", 8)))
    assert members(diagnosis) == ["request gpus: 8 of class gpu"]
    assert fixes(diagnosis) == ["count of request gpus 8 → 6", "drop request gpus, the only one"]


def test_a_device_in_use_names_the_claim_that_holds_it() -> None:
    holder = allocated("training", [held(DRIVER, "gpu-1")])
    other = allocated("elsewhere", [held(DRIVER, "gpu-0", "other-pool")])
    found = inventory(published(*gpus(2)), allocated=[holder, other])
    diagnosis = explained(found, wanting(gpu(count=2)))
    assert members(diagnosis) == [
        "request r: 2 of class gpu",
        "claim default/training, which has gpu.example.com/node-1/gpu-1",
    ]
    assert "free claim default/training" in fixes(diagnosis)
    assert refused(diagnosis) == "gpu-1 is in use by claim default/training"


def test_a_constraint_shows_the_values_that_clash() -> None:
    found = inventory(published(on_numa("gpu-0", 0), on_numa("gpu-1", 1)))
    diagnosis = explained(found, wanting(gpu(count=2), constraints=(MATCH_NUMA,)))
    assert members(diagnosis) == ["request r: 2 of class gpu", f"constraint matchAttribute {NUMA}"]
    assert fixes(diagnosis) == [
        f"remove constraint on {NUMA}",
        "count of request r 2 → 1",
        f"use ints list for {NUMA} on driver {DRIVER}: [0, 1]",
        "drop request r, the only one",
    ]
    assert refused(diagnosis) == f"gpu-0 {NUMA} 0 does not match with others (gpu-1 for r has 1)"
    assert any("r: 0 on gpu-0, 1 on gpu-1" in line for line in diagnosis_lines(diagnosis))


def test_a_list_is_not_offered_while_lists_are_off() -> None:
    features = ALL_FEATURES._replace(list_type_attributes=False)
    found = inventory(published(on_numa("gpu-0", 0), on_numa("gpu-1", 1)), features=features)
    diagnosis = explained(found, wanting(gpu(count=2), constraints=(MATCH_NUMA,)))
    assert not any("list" in text for text in fixes(diagnosis))


def test_a_taint_can_be_tolerated() -> None:
    found = inventory(published(Device(name="gpu-0", taints=(TAINT,))))
    diagnosis = explained(found, wanting(gpu()))
    assert fixes(diagnosis)[0] == "tolerate taint broken=fan:NoSchedule in request r"
    assert "taint broken=fan:NoSchedule of devices on the node" in members(diagnosis)
    assert refused(diagnosis) == "gpu-0 has the taint broken=fan:NoSchedule"


def test_a_selector_shows_the_part_that_said_no_and_its_value() -> None:
    device = Device(name="gpu-0", attributes=attributes({"model": "t4"}))
    found = inventory(published(device))
    diagnosis = explained(found, wanting(gpu(selectors=selectors(NVIDIA))))
    assert fixes(diagnosis)[0] == f"remove selector `{NVIDIA}` of request r"
    assert '"t4"' in refused(diagnosis)


def test_a_class_that_matches_nothing_is_refused_by_its_selector() -> None:
    found = inventory(published(*gpus(1)), classes=[class_("a100", NVIDIA)])
    diagnosis = explained(found, wanting(request("r", "a100")))
    assert "does not match class a100" in refused(diagnosis)
    assert f"remove selector `{NVIDIA}` of class a100" in fixes(diagnosis)


def test_counters_say_how_much_there_is_is_left_and_is_wanted() -> None:
    devices = [consuming("big", {"memory": "30Gi"}), consuming("small", {"memory": "20Gi"})]
    holder = allocated("user", [held(DRIVER, "small")])
    found = inventory(*with_counters({"memory": "40Gi"}, devices), allocated=[holder])
    diagnosis = explained(found, wanting(gpu()))
    assert refused(diagnosis) == "big of set/memory 30Gi is wanted, 20Gi is left of 40Gi"
    assert "free claim default/user" in fixes(diagnosis)


def test_capacity_is_lowered_to_what_a_device_has() -> None:
    found = inventory(published(shareable("gpu-0", memory="4Gi")))
    diagnosis = explained(found, wanting(gpu(capacity=amounts({"memory": "6Gi"}))))
    assert refused(diagnosis) == "gpu-0 of memory 6Gi is wanted, 4Gi is left of 4Gi"
    assert fixes(diagnosis)[0] == "capacity memory 6Gi → 4Gi of request r"


def test_amounts_are_told_as_they_are_written() -> None:
    user = held(DRIVER, "nic", share_id=share(1), consumed_capacity=quantities({"rate": "70G"}))
    found = inventory(
        published(shareable("nic", rate="100G")), allocated=[allocated("user", [user])]
    )
    diagnosis = explained(found, wanting(gpu(capacity=amounts({"rate": "60G"}))))
    assert refused(diagnosis) == "nic of rate 60G is wanted, 30G is left of 100G"
    assert fixes(diagnosis)[0] == "capacity rate 60G → 30G of request r"


def test_a_policy_is_told_and_kept() -> None:
    valid = CapacityRequestPolicyRange(
        min=Quantity.parse("10G"), max=Quantity.parse("50G"), step=Quantity.parse("10G")
    )
    policy = CapacityRequestPolicy(default=Quantity.parse("10G"), valid_range=valid)
    rate = DeviceCapacity(Quantity.parse("100G"), policy)
    nic = Device(name="nic", allow_multiple_allocations=True, capacity={"rate": rate})
    wanted = wanting(gpu(capacity=amounts({"rate": "60G"})))
    diagnosis = explained(inventory(published(nic)), wanted)
    told = "nic gives out rate from 10G to 50G in steps of 10G; 60G is wanted"
    assert refused(diagnosis) == told
    assert fixes(diagnosis)[0] == "capacity rate 60G → 50G of request r"


def test_an_alternative_that_cannot_be_judged_can_be_dropped() -> None:
    alternatives = (
        DeviceSubRequest("first", "missing", allocation_mode="ExactCount", count=1),
        DeviceSubRequest("second", "gpu", allocation_mode="ExactCount", count=1),
    )
    found = inventory(published(*gpus(1)))
    diagnosis = explained(found, wanting(DeviceRequest("r", first_available=alternatives)))
    assert "could not retrieve device class missing" in diagnosis.message
    assert "drop subrequest r/first" in fixes(diagnosis)


def test_a_feature_that_is_off_can_be_switched_on() -> None:
    features = ALL_FEATURES._replace(prioritized_list=False)
    found = inventory(published(*gpus(1)), features=features)
    alternative = DeviceSubRequest("s", "gpu", allocation_mode="ExactCount", count=1)
    diagnosis = explained(found, wanting(DeviceRequest("r", first_available=(alternative,))))
    assert "switch DRAPrioritizedList on" in fixes(diagnosis)


def test_two_changes_are_offered_where_one_does_not_help() -> None:
    found = inventory(
        published(Device(name="gpu-0", taints=(TAINT,))),
        allocated=[allocated("user", [held(DRIVER, "gpu-0")])],
    )
    diagnosis = explained(found, wanting(gpu()))
    assert fixes(diagnosis)[0] == (
        "tolerate taint broken=fan:NoSchedule in request r and free claim default/user"
    )
    assert fixes(diagnosis)[-1] == "drop request r, the only one"


def test_only_what_matters_is_in_the_conflict() -> None:
    found = inventory(published(*gpus(3)), allocated=[allocated("user", [held(DRIVER, "gpu-0")])])
    impossible = gpu("b", selectors=selectors(NVIDIA))
    diagnosis = explained(found, wanting(gpu("a"), impossible, gpu("c")))
    assert members(diagnosis) == [
        "request b: 1 of class gpu",
        f"selector `{NVIDIA}` of request b",
    ]


def test_a_conflict_may_span_claims() -> None:
    found = inventory(published(*gpus(2)))
    claims = [claim("one", [gpu(count=2)]), claim("two", [gpu()])]
    diagnosis = explained(found, *claims)
    assert members(diagnosis) == [
        "request r of claim default/one: 2 of class gpu",
        "request r of claim default/two: 1 of class gpu",
    ]
    assert "count of request r of claim default/one 2 → 1" in fixes(diagnosis)


def test_of_very_many_claims_not_all_are_looked_at() -> None:
    devices = gpus(HOLDERS_MAX + 2)
    holders = [allocated(each.name, [held(DRIVER, each.name)]) for each in devices]
    found = inventory(published(*devices), allocated=holders)
    diagnosis = explained(found, wanting(gpu()))
    assert diagnosis.conflict.is_minimal
    assert len(diagnosis.conflict.members) == 1 + HOLDERS_MAX
    told = list(diagnosis_lines(diagnosis))
    assert any("2 more claims with devices of these pools" in line for line in told)
    assert len(told) < 20


def test_of_each_kind_of_fix_a_few_are_offered() -> None:
    devices = gpus(5)
    holders = [allocated(each.name, [held(DRIVER, each.name)]) for each in devices]
    diagnosis = explained(inventory(published(*devices), allocated=holders), wanting(gpu()))
    assert fixes(diagnosis) == [
        *[f"free claim default/gpu-{number}" for number in range(3)],
        "drop request r, the only one",
    ]


# --- nodes ------------------------------------------------------------------------------------


def test_an_incomplete_pool_is_named() -> None:
    half = slice_("half", DRIVER, gpus(1), pool=ResourcePool("node-1", 1, 2))
    diagnosis = explained(inventory(half), wanting(gpu()))
    (pool,) = diagnosis.pools
    assert (pool.pool, pool.state) == ("gpu.example.com/node-1", "incomplete")


def test_an_invalid_pool_is_named_with_its_reason() -> None:
    twice = published(Device(name="gpu-0"), Device(name="gpu-0"))
    diagnosis = explained(inventory(twice), wanting(gpu()))
    assert diagnosis.message == "invalid resource pools were encountered"
    assert diagnosis.node_only
    assert diagnosis.pools[0].reason == "duplicate device name gpu-0"


def test_a_search_that_is_given_up_claims_nothing() -> None:
    situation = Situation.of(inventory(published(*gpus(1))), HERE, [wanting(gpu(count=2))])
    diagnosis = diagnose(situation, effort=Effort(interrupt=lambda: "out of time"))
    assert diagnosis is not None
    assert diagnosis.fixes == ()
    assert not diagnosis.conflict.is_minimal
    assert diagnosis.trials_given_up > 0
    assert [*diagnosis_lines(diagnosis)][-1] == (
        "the diagnosis was ended: out of time; there may be more fixes"
    )


def test_a_diagnosis_that_is_ended_tells_what_it_knows() -> None:
    answers = iter([""])
    situation = Situation.of(inventory(published(*gpus(1))), HERE, [wanting(gpu(count=2))])
    effort = Effort(interrupt=lambda: next(answers, "out of time") or None)
    diagnosis = diagnose(situation, effort=effort)
    assert diagnosis is not None
    assert diagnosis.ended_by == "out of time"
    assert diagnosis.trials > 0
    assert [funnel.request for funnel in diagnosis.funnels] == ["r"]


# --- fleets -----------------------------------------------------------------------------------


def elsewhere(number: int) -> ResourceSlice:
    pool = ResourcePool(f"node-{number}", 1, 1)
    return slice_(f"s-{number}", DRIVER, gpus(4), pool=pool, node_name=f"node-{number}")


def test_the_situation_on_a_node_has_nothing_of_other_nodes() -> None:
    far = allocated("far", [held(DRIVER, "gpu-0", "node-7")])
    found = inventory(published(*gpus(2)), *map(elsewhere, range(5, 25)), allocated=[far])
    situation = Situation.of(found, HERE, [wanting(gpu(count=3))])
    assert [each.metadata.name for each in situation.slices] == ["s"]
    assert situation.allocated == ()
    assert explained(found, *situation.claims).funnels[0].in_fleet == 82


def test_the_inventory_stays_as_it_was() -> None:
    holder = allocated("training", [held(DRIVER, "gpu-1")])
    found = inventory(published(*gpus(2)), allocated=[holder])
    view, changes = found.view(HERE), found.ledger.changes
    explained(found, wanting(gpu(count=2)))
    assert found.view(HERE) is view
    assert found.ledger.changes == changes


def test_a_node_without_devices_has_only_the_request_to_blame() -> None:
    found = inventory(*map(elsewhere, range(5, 8)))
    bare = Node(metadata=ObjectMeta(name="bare"))
    diagnosis = diagnose_claims(found, bare, [wanting(gpu(count=2))])
    assert diagnosis is not None
    assert members(diagnosis) == ["request r: 2 of class gpu"]
    assert diagnosis.funnels[0].counts == (0,) * 7


# --- applying and reporting -------------------------------------------------------------------


def test_changes_applied_together_do_not_shift_one_another() -> None:
    chosen = gpu("c", 2, selectors=selectors("true", NVIDIA, "false"))
    other = DeviceConstraint(distinct_attribute=NUMA)
    wanted = wanting(gpu("a"), gpu("b"), chosen, constraints=(MATCH_NUMA, other))
    situation = Situation.of(inventory(published(*gpus(1))), HERE, [wanted])
    changes: list[SituationChange] = [
        DropRequest(0, 0),
        DropRequest(0, 1),
        DropSelector(RequestPath(0, 2), 0),
        DropSelector(RequestPath(0, 2), 2),
        LowerCount(RequestPath(0, 2), 1),
        DropConstraint(0, 0),
    ]
    (done,) = applied(situation, changes).claims
    assert done == wanting(gpu("c", selectors=selectors(NVIDIA)), constraints=(other,))


def test_a_fix_that_is_applied_is_what_it_says() -> None:
    holder = allocated("training", [held(DRIVER, "gpu-0")])
    found = inventory(published(*gpus(1)), allocated=[holder])
    diagnosis = explained(found, wanting(gpu()))
    (change,) = diagnosis.fixes[0].changes
    assert change_text(change, diagnosis.situation) == "free claim default/training"
    done = applied(diagnosis.situation, [change])
    assert done.allocated == ()
    found.remove_claim("default", "training")
    assert isinstance(allocate(found, HERE, done.claims), Allocated)


def test_the_report_tells_requests_that_are_alike_at_once() -> None:
    wanted = wanting(gpu("a"), gpu("b"), gpu("c"))
    diagnosis = explained(inventory(published(*gpus(2))), wanted)
    assert list(diagnosis_lines(diagnosis)) == [
        "requests a, b, c: 1 wanted each",
        "  devices: 2 in the fleet → 2 on the node",
        "impossible together:",
        "  requests a, b, c: 1 of class gpu each",
    ]


def test_the_tree_is_json() -> None:
    found = inventory(published(shareable("gpu-0", memory="4Gi")))
    diagnosis = explained(found, wanting(gpu(capacity=amounts({"memory": "6Gi"}))))
    told = json.loads(msgspec.json.encode(shown_diagnosis(diagnosis)))
    assert told["conflict"]["isMinimal"] is True
    near = told["requests"][0]["nearest"]
    assert near["stage"] == "fitting"
    assert near["text"] == "of memory 6Gi is wanted, 4Gi is left of 4Gi"
