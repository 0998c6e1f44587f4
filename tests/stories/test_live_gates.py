"""Features that are off, on, and switched off after use, live.

One test or more for each row of what Kubernetes promises of enabling, disabling and downgrading.
An act is played on a folder of data, then the cluster starts again with other gates. Where the
server has a feature and the other programs do not, the cluster is between two versions. Rows about
kubelets and drivers (metadata, versions of their services, names of slices) are not here: there
are no nodes yet.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import to_tree
from moorage.api.core import Namespace, Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.resource.v1alpha3 import ResourcePoolStatusRequest
from moorage.api.scheduling import PodGroup
from moorage.client.writes import Patch, Target
from tests.client.servers import until
from tests.stories.stage import Stage, arrives, kind_of, path_of, placed, play, reserved

Tree = dict[str, Any]
Act = Callable[[Stage], Coroutine[Any, Any, None]]

DRIVER = "device.example.com"
ON = Gates.parse()


# Gates that 1.37 has locked, and the newest version that can switch them off.
UNLOCKED = {
    "DRAAdminAccess": "1.35",
    "DRAExtendedResource": "1.36",
    "DRAPrioritizedList": "1.36",
    "DRAResourceClaimDeviceStatus": "1.36",
}


def off(gate: str) -> Gates:
    """Return all gates but one, and those that need it, of the newest version that has it so."""
    return Gates.parse(f"{gate}=false", emulated_version=UNLOCKED.get(gate, "1.37"))


# --- what a cluster has -------------------------------------------------------------------------


def node(**status: Any) -> Tree:
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return tree("v1", "Node", "node-1", status={"capacity": room, **status})


def device_class() -> Tree:
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    return tree("resource.k8s.io/v1", "DeviceClass", "device", spec={"selectors": selectors})


def slice_of(*devices: Tree, name: str = "slice-1", pool: str = "node-1", **spec: Any) -> Tree:
    count = spec.pop("slices", 1)
    place = {} if "perDeviceNodeSelection" in spec else {"nodeName": "node-1"}
    told = {"name": pool, "generation": 1, "resourceSliceCount": count}
    given = {"devices": list(devices)} if devices else {}
    spec = {"driver": DRIVER, "pool": told, **place, **given, **spec}
    return tree("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)


def claim(name: str, constraints: Any = (), **exactly: Any) -> Tree:
    devices: Tree = {
        "requests": [{"name": "device", "exactly": {"deviceClassName": "device", **exactly}}]
    }
    if constraints:
        devices["constraints"] = list(constraints)
    return tree("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": devices})


def template(name: str, **exactly: Any) -> Tree:
    spec = claim(name, **exactly)["spec"]
    return tree("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": spec})


def pod(name: str, *, uses: str = "", template: str = "", **spec: Any) -> Tree:
    source = {"resourceClaimName": uses} if uses else {"resourceClaimTemplateName": template}
    resources = {"claims": [{"name": "device"}]}
    container = {"name": "main", "image": "registry.example.com/app", "resources": resources}
    entries = [{"name": "device", **source}]
    told = {"containers": [container], "resourceClaims": entries, **spec}
    return tree("v1", "Pod", name, spec=told)


def tree(api_version: str, kind: str, name: str, **parts: Any) -> Tree:
    found = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}
    return placed(found, "default")


async def used(stage: Stage, name: str, **exactly: Any) -> Pod:
    """Return a pod with a claim for a device, once it is decided on."""
    await stage.furnish([claim(name, **exactly), pod(name, uses=name)])
    return await stage.pod_that_comes(name)


def devices(stage: Stage, found: Pod) -> list[str]:
    return [each.device for each in stage.given(found)]


async def stored(stage: Stage, wanted: Tree) -> Tree:
    """Return an object as the server gives it out."""
    name = wanted["metadata"]["name"]
    path = path_of(kind_of(wanted), wanted["metadata"].get("namespace", ""), name)
    answer = await stage.ask("GET", path)
    assert answer.status == 200, answer.message
    return answer.tree


# --- row 1: fields -------------------------------------------------------------------------------

COUNTER = {"counterSet": "set", "counters": {"memory": {"value": "1Gi"}}}
DERIVED = {"name": "derived/one", "expression": "1"}
# A gate, an object that uses it, and the way to the field. Objects that are nothing without the
# field are refused where it is dropped; their rows are below.
FIELDS = {
    "DRAAdminAccess": (
        claim("used", adminAccess=True),
        ("spec", "devices", "requests", 0, "exactly", "adminAccess"),
    ),
    "DRAConsumableCapacity": (
        slice_of({"name": "d", "allowMultipleAllocations": True}),
        ("spec", "devices", 0, "allowMultipleAllocations"),
    ),
    "DRADeviceBindingConditions": (
        slice_of({"name": "d", "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}),
        ("spec", "devices", 0, "bindingConditions"),
    ),
    "DRADeviceTaints": (
        slice_of({"name": "d", "taints": [{"key": "a", "effect": "NoSchedule"}]}),
        ("spec", "devices", 0, "taints"),
    ),
    "DRAExtendedResource": (
        tree(
            "resource.k8s.io/v1",
            "DeviceClass",
            "used",
            spec={"extendedResourceName": "example.com/gpu"},
        ),
        ("spec", "extendedResourceName"),
    ),
    "DRAOptionalNodeOperations": (
        slice_of({"name": "d"}, skipNodeOperations=["*"]),
        ("spec", "skipNodeOperations"),
    ),
    "DRADerivedAttributes": (
        claim("used", [{"matchAttribute": "derived/one"}], derivedAttributes=[DERIVED]),
        ("spec", "devices", "requests", 0, "exactly", "derivedAttributes"),
    ),
    "GenericWorkload": (
        tree(
            "v1",
            "Pod",
            "used",
            spec={
                "containers": [{"name": "c", "image": "i"}],
                "schedulingGroup": {"podGroupName": "group"},
            },
        ),
        ("spec", "schedulingGroup"),
    ),
}


def at(found: Any, place: tuple[str | int, ...]) -> Any:
    """Return what is at a place of a tree, if there is something."""
    for step in place:
        found = found[step] if isinstance(step, int) else (found or {}).get(step)
    return found


@pytest.mark.parametrize("gate", FIELDS)
def test_row_1_a_field_is_dropped_where_it_is_new_kept_where_it_was_and_works_again(
    gate: str, tmp_path: Path
) -> None:
    used, place = FIELDS[gate]
    written = {**used, "metadata": {**used["metadata"], "name": "used"}}

    def named(name: str) -> Tree:
        return {**written, "metadata": {**written["metadata"], "name": name}}

    async def on(stage: Stage) -> None:
        labels = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await stage.cluster.admin.write(Patch(Target(Namespace, "", "default"), labels))
        answer = await stage.send(written)
        assert answer.status == 201, answer.message
        assert at(answer.tree, place)

    async def switched_off(stage: Stage) -> None:
        path = path_of(kind_of(written), written["metadata"].get("namespace", ""), "used")
        body = {"metadata": {"labels": {"touched": "yes"}}}
        answer = await stage.ask("PATCH", path, body, "", "application/merge-patch+json")
        assert answer.status == 200, answer.message
        assert at(answer.tree, place)
        await stage.send(named("fresh"))
        assert not at(await stored(stage, named("fresh")), place)

    async def on_again(stage: Stage) -> None:
        assert at(await stored(stage, written), place)
        await stage.send(named("again"))
        assert at(await stored(stage, named("again")), place)

    play(tmp_path, on)
    play(tmp_path, switched_off, gates=off(gate))
    play(tmp_path, on_again)


# --- row 2: admin access -------------------------------------------------------------------------


def test_row_2_without_admin_access_templates_and_claims_are_refused_and_pods_keep_it(
    tmp_path: Path,
) -> None:
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "admins", "labels": {"resource.kubernetes.io/admin-access": "true"}},
    }

    def inside(found: Tree) -> Tree:
        return {**found, "metadata": {**found["metadata"], "namespace": "admins"}}

    async def on(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}), space])
        await stage.furnish([inside(claim("running", adminAccess=True))])
        await stage.furnish([inside(pod("running", uses="running"))])
        await stage.furnish([inside(claim("waiting", adminAccess=True))])
        await stage.furnish([inside(template("made", adminAccess=True))])

    async def between(stage: Stage) -> None:
        running = await stage.bound("running", "admins")
        assert stage.given(running)[0].is_admin
        await stage.play(inside(pod("waiting", uses="waiting")))
        assert "admin access is requested, but the feature is disabled" in stage.message(
            "waiting", "admins"
        )
        await stage.play(inside(pod("made", template="made")), waits=False)
        (event, *_) = await stage.events("FailedResourceClaimCreation")
        assert "admin access" in event.message

    play(tmp_path, on)
    play(tmp_path, between, gates=off("DRAAdminAccess"), server=ON)


# --- row 3: prioritized list ---------------------------------------------------------------------


def test_row_3_a_scheduler_without_prioritized_lists_says_so(tmp_path: Path) -> None:
    choices = [{"name": "first", "deviceClassName": "device"}]
    request = {"name": "device", "firstAvailable": choices}
    wanted = claim("listed")
    wanted["spec"]["devices"]["requests"] = [request]
    spec = {"spec": wanted["spec"]}
    made = tree("resource.k8s.io/v1", "ResourceClaimTemplate", "made", spec=spec)

    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}), wanted, made])
        await stage.play(pod("listed", uses="listed"))
        assert "has subrequests, but the DRAPrioritizedList feature is disabled" in stage.message(
            "listed"
        )
        await stage.play(pod("made", template="made"), waits=False)
        (event, *_) = await stage.events("FailedResourceClaimCreation")
        assert "prioritized list" in event.message.lower()

    async def on_again(stage: Stage) -> None:
        assert devices(stage, await stage.bound("listed")) == ["d"]

    play(tmp_path, act, gates=off("DRAPrioritizedList"), server=ON)
    play(tmp_path, on_again)


# --- row 4: partitionable devices ----------------------------------------------------------------


def test_row_4_partitions_are_not_given_and_whole_devices_are(tmp_path: Path) -> None:
    counters = [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
    parts = [
        slice_of(name="counters", pool="parts", sharedCounters=counters, slices=2),
        slice_of({"name": "part", "consumesCounters": [COUNTER]}, pool="parts", slices=2),
    ]

    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), *parts])
        await used(stage, "first")
        assert stage.message("first")
        await stage.furnish([slice_of({"name": "whole"}, name="whole", pool="whole")])
        assert devices(stage, await stage.bound("first")) == ["whole"]
        await used(stage, "second")
        assert stage.message("second")

    async def on_again(stage: Stage) -> None:
        assert devices(stage, await stage.bound("second")) == ["part"]

    play(tmp_path, between, gates=off("DRAPartitionableDevices"), server=ON)
    play(tmp_path, on_again)


# --- row 5: consumable capacity ------------------------------------------------------------------


def test_row_5_requests_for_capacity_fail_and_a_share_counts_as_the_whole_device(
    tmp_path: Path,
) -> None:
    shared = {
        "name": "nic",
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": "10G"}},
    }
    asked = {"capacity": {"requests": {"bandwidth": "1G"}}}

    async def on(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of(shared)])
        assert (await used(stage, "sharing", **asked)).spec.node_name

    async def between(stage: Stage) -> None:
        (given,) = stage.given(await stage.bound("sharing"))
        assert given.share
        assert given.consumed == {"bandwidth": "1G"}
        await used(stage, "asking", **asked)
        assert "capacity" in stage.message("asking")
        await used(stage, "plain")
        assert "cannot allocate all claims" in stage.message("plain")
        await stage.delete(Pod, "sharing")
        assert devices(stage, await stage.bound("plain")) == ["nic"]

    play(tmp_path, on)
    play(tmp_path, between, gates=off("DRAConsumableCapacity"), server=ON)


# --- row 6: binding conditions -------------------------------------------------------------------


def test_row_6_devices_with_conditions_are_not_given(tmp_path: Path) -> None:
    slow = {"name": "slow", "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}

    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of(slow)])
        await used(stage, "user")
        assert "cannot allocate all claims" in stage.message("user")

    play(tmp_path, act, gates=off("DRADeviceBindingConditions"), server=ON)


# --- rows 7 and 8: taints ------------------------------------------------------------------------

BROKEN = {"key": "example.com/broken", "effect": "NoExecute"}


def rule(effect: str = "NoExecute") -> Tree:
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {**BROKEN, "effect": effect}}
    return tree("resource.k8s.io/v1", "DeviceTaintRule", "broken", spec=spec)


def is_leaving(stage: Stage, name: str) -> bool:
    found = stage.pod(name)
    return found is None or found.metadata.deletion_timestamp is not None


def test_row_7_taints_count_for_nothing_while_off_and_evict_when_on_again(tmp_path: Path) -> None:
    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d", "taints": [BROKEN]})])
        user = await used(stage, "user")
        assert devices(stage, user) == ["d"]

    async def on_again(stage: Stage) -> None:
        await until(lambda: is_leaving(stage, "user"))

    play(tmp_path, between, gates=off("DRADeviceTaints"), server=ON)
    play(tmp_path, on_again)


def test_row_7_a_slice_with_taints_has_at_most_64_devices(tmp_path: Path) -> None:
    many: list[Tree] = [{"name": f"d-{number}"} for number in range(65)]

    async def act(stage: Stage) -> None:
        tainted = [{**many[0], "taints": [BROKEN]}, *many[1:]]
        answer = await stage.send(slice_of(*tainted))
        assert answer.status == 422
        assert "64" in answer.message

    async def without(stage: Stage) -> None:
        tainted = [{**many[0], "taints": [BROKEN]}, *many[1:]]
        assert (await stage.send(slice_of(*tainted))).status == 201  # the taints are dropped

    play(tmp_path / "on", act)
    play(tmp_path / "off", without, gates=off("DRADeviceTaints"))


def test_row_8_rules_have_no_effect_and_no_status_while_off(tmp_path: Path) -> None:
    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}), rule()])
        user = await used(stage, "user")
        assert devices(stage, user) == ["d"]
        found = await stage.cluster.admin.get(DeviceTaintRule, "", "broken")
        assert found is not None
        assert not (found.status and found.status.conditions)

    async def on_again(stage: Stage) -> None:
        await until(lambda: is_leaving(stage, "user"))

    play(tmp_path, between, gates=off("DRADeviceTaintRules"), server=ON)
    play(tmp_path, on_again)


# --- rows 9 and 10: lists ------------------------------------------------------------------------


def on_numa(name: str, **value: Any) -> Tree:
    return {"name": name, "attributes": {"resource.kubernetes.io/numaNode": value}}


SAME = [{"matchAttribute": "resource.kubernetes.io/numaNode", "requests": ["device"]}]


def test_row_9_a_server_without_lists_refuses_new_ones_and_keeps_stored_ones(
    tmp_path: Path,
) -> None:
    async def on(stage: Stage) -> None:
        assert (await stage.send(slice_of(on_numa("d", ints=[0, 1])))).status == 201

    async def switched_off(stage: Stage) -> None:
        answer = await stage.send(slice_of(on_numa("d", ints=[0, 1]), name="new", pool="new"))
        assert answer.status == 422
        body = {"metadata": {"labels": {"touched": "yes"}}}
        await stage.cluster.admin.write(Patch(Target(ResourceSlice, "", "slice-1"), body))
        found = await stored(stage, slice_of())
        assert found["spec"]["devices"] == [on_numa("d", ints=[0, 1])]

    play(tmp_path, on)
    play(tmp_path, switched_off, gates=off("DRAListTypeAttributes"))


def test_rows_9_and_10_a_scheduler_without_lists_lets_the_pod_wait_until_it_has_them(
    tmp_path: Path,
) -> None:
    async def between(stage: Stage) -> None:
        mixed = slice_of(on_numa("list", ints=[0, 1]), on_numa("scalar", int=1))
        await stage.furnish([node(), device_class(), mixed])
        await used(stage, "user", count=2, constraints=SAME)
        assert stage.message("user")

    async def on_again(stage: Stage) -> None:
        assert devices(stage, await stage.bound("user")) == ["list", "scalar"]

    play(tmp_path, between, gates=off("DRAListTypeAttributes"), server=ON)
    play(tmp_path, on_again)


def test_row_10_scalars_work_always(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        both = slice_of(on_numa("a", int=1), on_numa("b", int=1))
        await stage.furnish([node(), device_class(), both])
        user = await used(stage, "user", count=2, constraints=SAME)
        assert devices(stage, user) == ["a", "b"]

    play(tmp_path, act, gates=off("DRAListTypeAttributes"))


# --- row 11: derived attributes ------------------------------------------------------------------


def test_row_11_a_scheduler_without_derived_attributes_refuses_the_claim(tmp_path: Path) -> None:
    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "a"}, {"name": "b"})])
        match = [{"matchAttribute": "derived/one", "requests": ["device"]}]
        await used(stage, "user", count=2, derivedAttributes=[DERIVED], constraints=match)
        assert "derived" in stage.message("user").lower()

    async def on_again(stage: Stage) -> None:
        user = await stage.bound("user")
        assert devices(stage, user) == ["a", "b"]
        (claim,) = stage.claims_of(user)
        told = set(to_tree(claim)["status"])
        assert told == {"allocation", "reservedFor"}, "no condition tells of the allocation"

    play(tmp_path, between, gates=off("DRADerivedAttributes"), server=ON)
    play(tmp_path, on_again)


# --- row 12: compatibility groups ----------------------------------------------------------------


def test_row_12_a_pool_with_compatibility_groups_is_not_used(tmp_path: Path) -> None:
    counters = [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
    grouped = {**COUNTER, "compatibilityGroups": ["red"]}
    parts = [
        slice_of(name="counters", sharedCounters=counters, slices=3),
        slice_of({"name": "part", "consumesCounters": [grouped]}, name="parts", slices=3),
        slice_of({"name": "plain"}, name="plain", slices=3),
    ]

    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), *parts])
        await used(stage, "user")
        assert "cannot allocate all claims" in stage.message("user")

    async def on_again(stage: Stage) -> None:
        assert (await stage.bound("user")).spec.node_name == "node-1"

    play(tmp_path, between, gates=off("DRADeviceCompatibilityGroups"), server=ON)
    play(tmp_path, on_again)


# --- row 13: optional node operations ------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "features", "is_given"),
    [
        (ON, ["DRAOptionalNodeOperations"], True),
        (ON, [], False),
        (off("DRAOptionalNodeOperations"), ["DRAOptionalNodeOperations"], False),
    ],
    ids=["on", "node lacks it", "scheduler off"],
)
def test_row_13_devices_that_need_no_preparing_want_a_node_that_knows_of_it(
    gates: Gates, features: list[str], is_given: bool, tmp_path: Path
) -> None:
    async def act(stage: Stage) -> None:
        skipping = slice_of({"name": "d"}, skipNodeOperations=["*"])
        await stage.furnish([node(declaredFeatures=features), device_class(), skipping])
        user = await used(stage, "user")
        assert bool(user.spec.node_name) == is_given

    play(tmp_path, act, gates=gates, server=ON)


# --- row 14: node-allocatable resources ----------------------------------------------------------


def test_row_14_only_pods_that_are_scheduled_while_it_is_on_are_accounted(tmp_path: Path) -> None:
    with_memory = {
        "name": "xpu",
        "nodeAllocatableResources": {"memory": {"mapping": {"deviceMultiplier": "10Gi"}}},
    }

    def eater(name: str) -> Tree:
        asked = {"requests": {"memory": "8Gi"}}
        container = {"name": "main", "image": "registry.example.com/app", "resources": asked}
        return tree("v1", "Pod", name, spec={"containers": [container]})

    async def before(stage: Stage) -> None:
        features = ["DRANodeAllocatableResources"]
        known = node(declaredFeatures=features)
        await stage.furnish([known, device_class(), slice_of(with_memory)])
        user = await used(stage, "user")
        assert user.spec.node_name
        assert not user.status.node_allocatable_resource_claim_statuses

    async def on_again(stage: Stage) -> None:
        await stage.furnish([eater("first")])
        assert stage.pod("first").spec.node_name  # type: ignore[union-attr]
        await stage.delete(Pod, "first")
        await stage.delete(Pod, "user")
        await until(lambda: stage.pod("user") is None)
        await used(stage, "fresh")
        fresh = await stage.bound("fresh")  # once the device of the other is free
        assert fresh.status.node_allocatable_resource_claim_statuses
        await stage.furnish([eater("second")])
        assert "Insufficient memory" in stage.message("second")

    async def off_again(stage: Stage) -> None:
        assert (await stage.bound("second")).spec.node_name  # what the device takes is not seen

    play(tmp_path, before, gates=off("DRANodeAllocatableResources"), server=ON)
    play(tmp_path, on_again)
    play(tmp_path, off_again, gates=off("DRANodeAllocatableResources"))


# --- row 15: claims of workloads -----------------------------------------------------------------


def test_row_15_reservations_of_groups_stay_while_it_is_off_and_end_when_it_is_on(
    tmp_path: Path,
) -> None:
    entry = {"name": "device", "resourceClaimName": "shared"}
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]}
    group = tree("scheduling.k8s.io/v1beta1", "PodGroup", "group", spec=spec)

    async def on(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"})])
        await stage.furnish([claim("shared"), group])
        member = pod("member", uses="shared", schedulingGroup={"podGroupName": "group"})
        await stage.furnish([member])
        assert holders(stage) == [("podgroups", "group")]

    async def switched_off(stage: Stage) -> None:
        await stage.delete(Pod, "member")
        await stage.furnish([slice_of({"name": "e"}, name="other", pool="other")])
        await used(stage, "other")  # time for the controllers to do something
        assert holders(stage) == [("podgroups", "group")]

    async def on_again(stage: Stage) -> None:
        await stage.delete(PodGroup, "group")
        await until(lambda: holders(stage) == [])

    def holders(stage: Stage) -> list[tuple[str, str]]:
        found = stage.claim("shared")
        assert found is not None
        return reserved(found)

    play(tmp_path, on)
    play(tmp_path, switched_off, gates=off("DRAWorkloadResourceClaims"))
    play(tmp_path, on_again)


def test_row_15_pods_of_groups_are_not_evicted_while_it_is_off(tmp_path: Path) -> None:
    entry = {"name": "device", "resourceClaimName": "shared"}
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]}
    group = tree("scheduling.k8s.io/v1beta1", "PodGroup", "group", spec=spec)

    async def on(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}, {"name": "e"})])
        await stage.furnish([claim("shared"), group])
        member = pod("member", uses="shared", schedulingGroup={"podGroupName": "group"})
        await stage.furnish([member])
        await used(stage, "alone")

    async def switched_off(stage: Stage) -> None:
        await stage.furnish([rule()])
        await until(lambda: is_leaving(stage, "alone"))
        assert not is_leaving(stage, "member")

    async def on_again(stage: Stage) -> None:
        await until(lambda: is_leaving(stage, "member"))

    play(tmp_path, on)
    play(tmp_path, switched_off, gates=off("DRAWorkloadResourceClaims"))
    play(tmp_path, on_again)


def test_row_15_without_it_a_template_that_matches_that_of_the_group_is_refused(
    tmp_path: Path,
) -> None:
    entry = {"name": "device", "resourceClaimTemplateName": "made"}
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]}
    group = tree("scheduling.k8s.io/v1beta1", "PodGroup", "group", spec=spec)

    async def between(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"})])
        await stage.furnish([template("made"), group])
        member = pod("member", template="made", schedulingGroup={"podGroupName": "group"})
        await stage.play(member, waits=False)
        (event, *_) = await stage.events("FailedResourceClaimCreation")
        assert "DRAWorkloadResourceClaims" in event.message
        assert stage.objects.count(ResourceClaim) == 0

    async def on_again(stage: Stage) -> None:
        assert devices(stage, await stage.bound("member")) == ["d"]

    play(tmp_path, between, gates=off("DRAWorkloadResourceClaims"), server=ON)
    play(tmp_path, on_again)


# --- rows 17 to 19: statuses ---------------------------------------------------------------------


def test_row_17_what_drivers_report_is_dropped_while_off_and_kept_where_it_was(
    tmp_path: Path,
) -> None:
    told = {"driver": DRIVER, "pool": "node-1", "device": "d", "data": {"is": "ready"}}

    async def report(stage: Stage, name: str) -> Any:
        path = path_of(kind_of(claim(name)), "default", name, "status")
        body = {"status": {"devices": [told]}}
        answer = await stage.ask("PATCH", path, body, "", "application/merge-patch+json")
        assert answer.status == 200, answer.message
        return answer.tree["status"].get("devices")

    async def on(stage: Stage) -> None:
        devices_of_two = slice_of({"name": "d"}, {"name": "e"})
        await stage.furnish([node(), device_class(), devices_of_two])
        await used(stage, "first")
        await used(stage, "second")
        assert await report(stage, "first")

    async def switched_off(stage: Stage) -> None:
        assert not await report(stage, "second")
        assert (await stored(stage, claim("first")))["status"]["devices"]

    play(tmp_path, on)
    play(tmp_path, switched_off, gates=off("DRAResourceClaimDeviceStatus"))


GRANULAR = "DRAResourceClaimGranularStatusAuthorization"


@pytest.mark.parametrize(("gates", "is_allowed"), [(ON, False), (off(GRANULAR), True)])
def test_row_18_without_granular_authorization_the_status_is_one_thing(
    gates: Gates, is_allowed: bool, tmp_path: Path
) -> None:
    rules = [
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims", "resourceclaims/status"],
            "verbs": ["get", "patch", "update"],
        }
    ]
    api = "rbac.authorization.k8s.io/v1"
    role = tree(api, "ClusterRole", "reporter", rules=rules)
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reporter"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reporter"}
    bound = tree(api, "ClusterRoleBinding", "reporter", roleRef=ref, subjects=[subject])

    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}), role, bound])
        await used(stage, "user")
        told = {"driver": DRIVER, "pool": "node-1", "device": "d", "data": {"is": "ready"}}
        path = path_of(kind_of(claim("user")), "default", "user", "status")
        body = {"status": {"devices": [told]}}
        merge = "application/merge-patch+json"
        answer = await stage.ask("PATCH", path, body, "", merge, as_user="reporter")
        assert (answer.status == 200) == is_allowed, answer.message
        assert is_allowed or "status.devices: Forbidden" in answer.message

    play(tmp_path, act, gates=gates)


@pytest.mark.parametrize(
    ("gate", "kept"),
    [
        ("ResourceHealthStatusMessage", {"resourceID": "d", "health": "Unhealthy"}),
        ("ResourceHealthStatus", None),
    ],
)
def test_row_19_health_and_its_message_have_gates_of_their_own(
    gate: str, kept: Any, tmp_path: Path
) -> None:
    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"})])
        await used(stage, "user")
        health = {"resourceID": "d", "health": "Unhealthy", "message": "too hot"}
        container = {
            "name": "main",
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "allocatedResourcesStatus": [{"name": "claim:device", "resources": [health]}],
        }
        body = {"status": {"containerStatuses": [container]}}
        path = "/api/v1/namespaces/default/pods/user/status"
        answer = await stage.ask("PATCH", path, body, "", "application/merge-patch+json")
        assert answer.status == 200, answer.message
        (status,) = answer.tree["status"]["containerStatuses"]
        found = status.get("allocatedResourcesStatus")
        assert (found[0]["resources"][0] if found else None) == kept

    play(tmp_path, act, gates=off(gate))


# --- row 21: pool status -------------------------------------------------------------------------


def test_row_21_requests_wait_while_it_is_off_and_are_answered_when_it_is_on(
    tmp_path: Path,
) -> None:
    request = tree(
        "resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", "gpus", spec={"driver": DRIVER}
    )

    async def switched_off(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"}), request])
        await used(stage, "user")
        assert "status" not in await stored(stage, request)

    async def on_again(stage: Stage) -> None:
        def answered() -> Any:
            found = stage.objects.get(ResourcePoolStatusRequest, "", "gpus")
            return found.status if found is not None else None

        assert (await arrives(answered)).pool_count == 1

    play(tmp_path, switched_off, gates=off("DRAResourcePoolStatus"))
    play(tmp_path, on_again)


# --- rows 24 and 25 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "is_given"),
    [(ON, "1500m"), (off("DRAFractionalCapacityRange"), "2")],
    ids=["fractional", "whole"],
)
def test_row_24_steps_are_whole_numbers_without_fractional_ranges(
    gates: Gates, is_given: str, tmp_path: Path
) -> None:
    policy = {"default": "1", "validRange": {"min": "500m", "step": "500m", "max": "8"}}
    cpus = {
        "name": "cpus",
        "allowMultipleAllocations": True,
        "capacity": {"cpu": {"value": "8", "requestPolicy": policy}},
    }

    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of(cpus)])
        user = await used(stage, "user", capacity={"requests": {"cpu": "1200m"}})
        (given,) = stage.given(user)
        assert given.consumed == {"cpu": is_given}

    play(tmp_path, act, gates=gates)


def test_row_25_a_device_that_is_gone_stays_with_its_claim_and_can_be_tainted(
    tmp_path: Path,
) -> None:
    async def act(stage: Stage) -> None:
        await stage.furnish([node(), device_class(), slice_of({"name": "d"})])
        await used(stage, "user")
        await stage.delete(ResourceSlice, "slice-1")
        scheduling = stage.cluster.scheduling.informers.objects
        await until(lambda: scheduling.count(ResourceSlice) == 0)
        assert devices(stage, await stage.bound("user")) == ["d"]
        await stage.furnish([rule()])
        await until(lambda: is_leaving(stage, "user"))
        found = stage.objects.get(ResourceClaim, "default", "user")
        assert found is not None
        assert found.status.allocation is not None

    play(tmp_path, act)


# --- versions and presets -------------------------------------------------------------------------

VERSIONS = ("1.34", "1.35", "1.36", "1.37")


@pytest.mark.parametrize("preset", ["moorage", "kubernetes-1.37"])
def test_claims_stay_and_pods_are_placed_through_all_versions_and_back(
    preset: str, tmp_path: Path
) -> None:
    async def furnish(stage: Stage) -> None:
        many = [{"name": f"d-{number}"} for number in range(9)]
        await stage.furnish([node(), device_class(), slice_of(*many), template("one")])

    def step(number: int) -> Act:
        async def act(stage: Stage) -> None:
            await stage.play(pod(f"pod-{number}", template="one"))
            for each in range(number + 1):
                found = await stage.bound(f"pod-{each}")
                assert devices(stage, found) == [f"d-{each}"]

        return act

    gates = {each: Gates.parse(preset=preset, emulated_version=each) for each in VERSIONS}
    play(tmp_path, furnish, gates=gates["1.34"])
    for number, version in enumerate((*VERSIONS, *reversed(VERSIONS[:-1]))):
        play(tmp_path, step(number), gates=gates[version])
