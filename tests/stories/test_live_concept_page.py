"""The concept page live: what happens after a pod got its devices.

Nodes are played: a pod ends when a test says so, and drivers write what the test has them write.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim
from moorage.api.resource.v1alpha3 import ResourcePoolStatusRequest
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.api.scheduling import PodGroup
from moorage.client.writes import Patch, Target
from moorage.kit.clock import ManualClock
from moorage.scheduler.live.config import read_config
from tests.client.servers import until
from tests.stories.stage import Stage, arrives, given_by, path_of, play, reserved, trees_of
from tests.stories.tellers import SEEDS, STORIES

CLAIM = CATALOGUE.find("resource.k8s.io/v1", "ResourceClaim")
POOL_REQUEST = "002-23-pool-status-request"
CONFIGURATION = "002-24-scheduler-configuration"
MAPPING = "004-38-pod-status-mapping"


class Story:
    """A folder of `examples/stories`, on a stage."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.folder = stage, STORIES / name

    async def furnish(self, *files: str, seeds: tuple[str, ...] = ()) -> None:
        """Make the cluster, then what seeds and files have; nothing stands in for pods."""
        paths = [self.folder / "cluster.yaml", *(SEEDS / f"{seed}.yaml" for seed in seeds)]
        paths += [self.folder / f"{file}.yaml" for file in files]
        for path in paths:
            await self.stage.furnish(trees_of(path))

    async def apply(self, *files: str, namespace: str = "default") -> None:
        for file in files:
            await self.stage.furnish(trees_of(self.folder / f"{file}.yaml"), namespace)


def devices(stage: Stage, pod: Pod) -> list[str]:
    return [each.device for each in stage.given(pod)]


# --- devices that become free -------------------------------------------------------------------

LIST = ("002-10-prioritized-list-template", "002-13-cat-slice")


def test_a_pod_that_waits_gets_the_first_choice_when_it_is_free_again(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "prioritized-list").furnish("pods", seeds=LIST)
        await stage.delete(Pod, "first")
        third = await stage.bound("third")
        (given,) = stage.given(third)
        assert (given.request, given.device) == ("req-0/large-black", "large-black-cat")

    play(tmp_path, act)


def test_counters_that_are_given_back_serve_the_next_pod(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "shared-counters").furnish("pods", seeds=("002-17-shared-counters",))
        assert "cannot allocate all claims" in stage.message("second")
        await stage.delete(Pod, "first")
        assert devices(stage, await stage.bound("second")) == ["device-1"]

    play(tmp_path, act)


BANDWIDTH = ("002-18-consumable-nic-slice", "002-19-bandwidth-template")


def test_a_sender_that_has_ended_leaves_its_share_to_the_one_that_waits(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "shared-bandwidth").furnish("senders", seeds=BANDWIDTH)
        pods = stage.pods_of("sender-")
        (waiting,) = (pod for pod in pods if not pod.spec.node_name)
        placed = [pod for pod in pods if pod.spec.node_name]
        shares = {given.share for pod in placed for given in stage.given(pod)}
        assert len(shares) == 10
        await stage.phase(placed[0].metadata.name, "Succeeded")
        pod = await stage.bound(waiting.metadata.name)
        (given,) = stage.given(pod)
        assert given.consumed == {"bandwidth": "1G"}
        assert given.share not in shares

    play(tmp_path, act)


def test_users_get_a_device_although_an_admin_looks_at_it(tmp_path: Path) -> None:
    seeds = ("002-13-cat-slice",)

    async def act(stage: Stage) -> None:
        story = Story(stage, "admin-access")
        await story.furnish(seeds=seeds)
        (template,) = trees_of(SEEDS / "002-15-admin-access-template.yaml")
        await stage.furnish([template], "admins")
        await story.apply("pod", namespace="admins")
        inspector = await stage.bound("inspector", "admins")
        (given,) = stage.given(inspector)
        assert (given.device, given.is_admin) == ("large-black-cat", True)
        owned = stage.claim("my-cat", "users")
        assert owned is not None
        assert reserved(owned) == [("pods", "owner")]
        await stage.apply(story.folder / "user.yaml", namespace="users")
        assert "cannot allocate" in stage.message("claim-another-cat", "users")
        await stage.delete(Pod, "owner", "users")
        user = await stage.bound("claim-another-cat", "users")
        assert devices(stage, user) == ["large-black-cat"]

    play(tmp_path, act)


# --- pod groups ---------------------------------------------------------------------------------


def test_claims_of_a_group_stay_until_the_group_goes(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "pod-group").furnish("second-pod", seeds=("002-12-pod-group-and-pod",))
        group = [("podgroups", "training-group")]
        pods = [await stage.bound(f"training-group-pod-{number}", "some-ns") for number in (1, 2)]
        shared = [
            {claim.metadata.name: reserved(claim) for claim in stage.claims_of(pod)} for pod in pods
        ]
        common = {name: told for name, told in shared[0].items() if name in shared[1]}
        assert list(common.values()) == [group, group]
        assert reserved_of(stage, "my-pod-claim") == [("pods", "training-group-pod-1")]
        for pod in pods:
            await stage.delete(Pod, pod.metadata.name, "some-ns")
        await until(lambda: reserved_of(stage, "my-pod-claim") == [])
        assert reserved_of(stage, "my-pg-claim") == group
        await stage.play(lost_member())
        assert stage.message("lost", "some-ns")
        assert reserved_of(stage, "my-pg-claim") == group, "although a waiting pod fits nowhere"
        await stage.delete(Pod, "lost", "some-ns")
        await stage.delete(PodGroup, "training-group", "some-ns")
        await until(lambda: reserved_of(stage, "my-pg-claim") == [])
        await until(lambda: stage.objects.count(ResourceClaim) == 2)  # those that users made
        assert not any(claim.status.allocation for claim in stage.objects.list(ResourceClaim))

    def lost_member() -> dict[str, Any]:
        (tree,) = trees_of(STORIES / "pod-group" / "second-pod.yaml")
        metadata = {**tree["metadata"], "name": "lost"}
        return {
            **tree,
            "metadata": metadata,
            "spec": {**tree["spec"], "nodeSelector": {"no": "node"}},
        }

    def reserved_of(stage: Stage, name: str) -> list[tuple[str, str]]:
        claim = stage.claim(name, "some-ns")
        assert claim is not None
        return reserved(claim)

    play(tmp_path, act)


# --- taints -------------------------------------------------------------------------------------

RULE = "002-21-device-taint-rule"


def condition(stage: Stage, name: str) -> tuple[str, str, str] | None:
    rule = stage.objects.get(DeviceTaintRule, "", name)
    found = rule.status.conditions if rule is not None and rule.status is not None else ()
    return next(((each.status, each.reason, each.message) for each in found or ()), None)


def test_a_rule_evicts_and_tells_of_it(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish()
        await stage.phase("user", "Running")
        await stage.furnish(trees_of(SEEDS / f"{RULE}.yaml"))
        evicted = await arrives(lambda: _leaving(stage, "user"))
        (target,) = (
            each for each in evicted.status.conditions or () if each.type == "DisruptionTarget"
        )
        assert target.reason == "DeletionByDeviceTaintManager"
        assert target.message == "Device Taint manager: deleting due to NoExecute taint"
        (event, *_) = await stage.events("DeviceTaintManagerEviction")
        assert (event.type, event.message) == ("Normal", "Marking for deletion")
        await stage.delete(Pod, "user")  # as the kubelet does when all containers have ended
        await until(lambda: (claim := stage.claim("in-use")) and not claim.status.reserved_for)

    play(tmp_path, act)


def test_the_rule_of_the_page_reads_as_the_page_describes_it(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))  # certificates are of today

    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish()
        await stage.furnish(trees_of(SEEDS / f"{RULE}.yaml"))
        await until(lambda: _leaving(stage, "user"))
        for _ in range(1000):  # what is written on the way takes its own time, not the clock's
            await clock.advance(1)
            if condition(stage, "example") == described:
                return
        assert condition(stage, "example") == described

    described = ("False", "Completed", "1 pod evicted since starting the controller.")
    play(tmp_path, act, clock=clock)


def test_a_dry_run_says_who_would_be_evicted_and_evicts_nobody(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish("rule-none")
        status, reason, message = await arrives(lambda: condition(stage, "dry-run"))
        assert (status, reason) == ("False", "NoEffect")
        assert message.startswith(
            "3 published devices selected. 1 allocated device selected. "
            "1 pod would be evicted in 1 namespace if the effect was NoExecute."
        )
        assert not _leaving(stage, "user")

    play(tmp_path, act)


def test_a_toleration_for_a_while_delays_the_eviction(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))  # certificates are of today

    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish("patient")
        await stage.furnish(trees_of(SEEDS / f"{RULE}.yaml"))
        await until(lambda: _leaving(stage, "user"))
        await clock.advance(290)
        assert not _leaving(stage, "patient")
        await clock.advance(20)
        await until(lambda: _leaving(stage, "patient"))

    play(tmp_path, act, clock=clock)


def test_a_taint_that_goes_in_time_calls_the_eviction_off(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))  # certificates are of today

    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish("patient")
        await stage.furnish(trees_of(SEEDS / f"{RULE}.yaml"))
        await until(lambda: _leaving(stage, "user"))
        await stage.delete(DeviceTaintRule, "example")
        await stage.events("DeviceTaintManagerEviction")
        await until(lambda: stage.objects.get(DeviceTaintRule, "", "example") is None)
        await clock.advance(600)
        assert not _leaving(stage, "patient")

    play(tmp_path, act, clock=clock)


def test_a_driver_that_taints_its_device_has_the_pod_evicted(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "device-taints").furnish()
        devices_now = trees_of(STORIES / "device-taints" / "cluster.yaml")
        (slice_,) = (tree for tree in devices_now if tree["kind"] == "ResourceSlice")
        taint = {"key": "dra.example.com/unhealthy", "effect": "NoExecute"}
        slice_["spec"]["devices"][0]["taints"] = [taint]
        slice_["spec"]["pool"]["generation"] = 2
        await stage.furnish([slice_])
        await until(lambda: _leaving(stage, "user"))

    play(tmp_path, act)


def test_a_pod_that_waits_is_placed_when_the_rule_goes(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        story = Story(stage, "device-taints")
        await story.furnish("rule-pool")
        await stage.apply(story.folder / "claim.yaml")
        assert "cannot allocate all claims" in stage.message("claim-careful")
        await stage.delete(DeviceTaintRule, "one-node")
        assert devices(stage, await stage.bound("claim-careful")) == ["device-1"]

    play(tmp_path, act)


def _leaving(stage: Stage, name: str) -> Pod | None:
    pod = stage.pod(name)
    return pod if pod is not None and pod.metadata.deletion_timestamp is not None else None


# --- pool status --------------------------------------------------------------------------------


def test_pool_status_counts_devices_that_are_free_in_use_and_tainted(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "pool-status").furnish("user", "request")
        await stage.furnish(trees_of(SEEDS / f"{POOL_REQUEST}.yaml"))

        def answered(name: str) -> Any:
            found = stage.objects.get(ResourcePoolStatusRequest, "", name)
            return found.status if found is not None else None

        status = await until(lambda: answered("gpus"))
        told = [
            (each.pool_name, each.total_devices, each.allocated_devices, each.unavailable_devices)
            for each in status.pools
        ]
        assert told == [("node-1", 3, 1, 1), ("shared", 2, 0, 0)]
        assert [each.available_devices for each in status.pools] == [1, 2]
        assert status.conditions[0].message == "Calculated status for 2 pools"
        nothing = await until(lambda: answered("check-gpus"))
        assert nothing.pool_count == 0
        assert any("example.com/gpu" in each for each in stage.warnings)

    play(tmp_path, act)


# --- binding conditions -------------------------------------------------------------------------

FABRIC = "002-25-binding-conditions-slice"
PREPARED, FAILED = "dra.example.com/is-prepared", "dra.example.com/preparing-failed"


async def report(stage: Stage, type_: str, status: str = "True") -> None:
    """Play the driver: it says how far the device is."""
    when = "2026-01-01T00:00:00Z"
    told = {
        "type": type_,
        "status": status,
        "reason": "Told",
        "message": "",
        "lastTransitionTime": when,
    }
    device = {
        "driver": "dra.example.com",
        "pool": "gpu-pool",
        "device": "gpu-1",
        "conditions": [told],
    }
    await stage.set_status(CLAIM, "default", "gpu", {"devices": [device]})


async def waiting(stage: Stage) -> None:
    """Let the pod of the story wait for its device."""
    story = Story(stage, "binding-conditions")
    await story.furnish(seeds=(FABRIC,))
    *needed, pod = sorted(
        trees_of(story.folder / "pod.yaml"), key=lambda tree: tree["kind"] == "Pod"
    )
    await stage.furnish(needed)
    await stage.play({**pod, "metadata": {**pod["metadata"], "namespace": "default"}}, waits=False)
    await until(lambda: (claim := stage.claim("gpu")) and claim.status.allocation)


def test_a_pod_is_bound_when_its_device_is_prepared(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await waiting(stage)
        (event, *_) = await stage.events("BindingConditionsPending")
        assert event.type == "Normal"
        pod = stage.pod("fabric")
        assert pod is not None
        assert not pod.spec.node_name
        await report(stage, PREPARED)
        assert (await stage.bound("fabric")).spec.node_name == "node-3"
        claim = stage.claim("gpu")
        assert claim is not None
        assert claim.status.allocation is not None
        selector = claim.status.allocation.node_selector
        assert selector is not None
        (term,) = selector.node_selector_terms or ()
        assert [(each.key, each.values) for each in term.match_fields] == [
            ("metadata.name", ("node-3",))  # the device binds to the node
        ]

    play(tmp_path, act)


def test_a_device_that_fails_is_given_back_and_the_pod_tried_again(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await waiting(stage)
        await stage.furnish(trees_of(STORIES / "binding-conditions" / "ready.yaml"))
        await report(stage, FAILED)
        pod = await stage.bound("fabric")
        assert devices(stage, pod) == ["gpu-9"]  # the other one, which needs no preparing

    play(tmp_path, act)


def test_waiting_ends_after_the_time_of_the_configuration(tmp_path: Path) -> None:
    (tree,) = trees_of(SEEDS / f"{CONFIGURATION}.yaml")
    file = decode_tree(tree, KubeSchedulerConfiguration).value
    config = read_config(file, Gates.parse())
    assert config.profiles[0].binding_timeout_s == 60
    clock = ManualClock(datetime.now(UTC))  # certificates are of today

    async def act(stage: Stage) -> None:
        await waiting(stage)
        await stage.furnish(trees_of(STORIES / "binding-conditions" / "ready.yaml"))
        await clock.advance(61)
        for _ in range(200):
            await clock.advance(1)
            pod = stage.pod("fabric")
            if pod is not None and pod.spec.node_name:
                break
        assert devices(stage, await stage.bound("fabric")) == ["gpu-9"]

    play(tmp_path, act, config=config, clock=clock)


# --- node-allocatable resources -----------------------------------------------------------------


def test_the_status_of_a_pod_has_what_comes_with_its_device(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "node-allocatable").furnish("modest", seeds=("002-27-xpu-slice",))
        pod = await stage.bound("modest")
        (status,) = pod.status.node_allocatable_resource_claim_statuses or ()
        assert status.resource_claim_name == "xpu"
        assert [(each.name, str(each.quantity)) for each in status.mapping] == [("memory", "8Gi")]

    play(tmp_path, act)


# --- pods that bypass the scheduler -------------------------------------------------------------


def test_a_claim_with_devices_is_reserved_for_a_pod_that_bypassed_the_scheduler(
    tmp_path: Path,
) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "scheduler-bypass").furnish("shared", "bypassing")
        await until(lambda: len(holders(stage)) == 2)
        assert sorted(holders(stage)) == ["scheduled", "sharing"]
        made = await arrives(lambda: stage.claim_like("lost-"))
        assert not any(given_by(made))
        await stage.delete(Pod, "scheduled")
        await until(lambda: holders(stage) == ["sharing"])
        claim = stage.claim("shared")
        assert claim is not None
        assert any(given_by(claim))

    def holders(stage: Stage) -> list[str]:
        claim = stage.claim("shared")
        return [] if claim is None else [name for _, name in reserved(claim)]

    play(tmp_path, act)


# --- what drivers and kubelets report -----------------------------------------------------------


def test_a_driver_reports_what_it_made_of_a_device(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "pool-status").furnish("user")
        network = {
            "interfaceName": "eth0",
            "ips": ["10.9.8.0/24"],
            "hardwareAddress": "ea:9f:cb:40:b1:7b",
        }
        told = {
            "driver": "gpu.example.com",
            "pool": "node-1",
            "device": "gpu-0",
            "networkData": network,
        }
        await stage.set_status(CLAIM, "default", "gpu", {"devices": [told]})
        answer = await stage.ask("GET", path_of(CLAIM, "default", "gpu"))
        (device,) = answer.tree["status"]["devices"]
        assert device["networkData"] == network

    play(tmp_path, act)


@pytest.mark.parametrize(("gate", "is_kept"), [("", True), ("ResourceHealthStatus=false", False)])
def test_the_health_of_devices_is_in_the_status_of_the_pod(
    gate: str, is_kept: bool, tmp_path: Path
) -> None:
    async def act(stage: Stage) -> None:
        await Story(stage, "pool-status").furnish("user")
        health = {"resourceID": "gpu.example.com/node-1/gpu-0", "health": "Unhealthy"}
        resources = [{"name": "claim:gpu", "resources": [health]}]
        container = {
            "name": "main",
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "allocatedResourcesStatus": resources,
        }
        body = {"status": {"containerStatuses": [container]}}
        await stage.cluster.admin.write(Patch(Target(Pod, "default", "user"), body, "status"))
        answer = await stage.ask("GET", "/api/v1/namespaces/default/pods/user")
        (status,) = answer.tree["status"]["containerStatuses"]
        assert status.get("allocatedResourcesStatus") == (resources if is_kept else None)

    play(tmp_path, act, gates=Gates.parse(gate))


def test_the_status_mapping_of_the_page_is_stored_in_shipped_names(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        (tree,) = trees_of(SEEDS / f"{MAPPING}.yaml")
        await stage.send(tree)
        name = tree["metadata"]["name"]
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        body = {"status": tree["status"]}
        answer = await stage.ask("PATCH", path, body, "", "application/merge-patch+json")
        assert answer.status == 200, answer.message
        status = answer.tree["status"]["extendedResourceClaimStatus"]
        assert status["requestMappings"] == [
            {
                "containerName": "container-name",
                "resourceName": "foo.domain/bar",
                "requestName": "container-0-request-2",
            }
        ]

    play(tmp_path, act)
