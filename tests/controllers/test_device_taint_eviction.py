"""Evictions from tainted devices, and the status of the rules that taint them."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.meta import Condition
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.client.writes import Delete, Patch, Target
from moorage.controllers.device_taint_eviction import DeviceTaintEvictionController
from moorage.controllers.metrics import TaintMetrics
from moorage.kit.metrics import exposition
from tests.claims.parts import BY_NAME, BY_TEMPLATE
from tests.controllers.scenes import (
    ALL,
    NOW,
    Scene,
    group,
    named_claim,
    pod,
    result,
    rule,
    slice_of,
    template,
)

TAINT = {"key": "broken", "effect": "NoExecute", "timeAdded": str(NOW)}
MARKED = ("DeviceTaintManagerEviction", "Marking for deletion")
CANCELLED = ("DeviceTaintManagerEviction", "Cancelling deletion")


def tolerating(seconds: int | None = None, effect: str = "NoExecute") -> dict[str, Any]:
    found: dict[str, Any] = {"operator": "Exists", "effect": effect}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def scene_with(
    *tolerations: dict[str, Any], gates: Gates = ALL, metrics: TaintMetrics | None = None
) -> Scene:
    """Return a scene with pod `p` on device `d0` by the claim `shared`."""
    scene = Scene(DeviceTaintEvictionController(gates, metrics), gates=gates)
    scene.put(slice_of({"name": "d0"}, {"name": "d1"}), named_claim(), pod(claims=[BY_NAME]))
    scene.allocate("shared", "p", results=[result(tolerations=list(tolerations))])
    scene.bind("p")
    return scene


def is_leaving(scene: Scene, name: str = "p") -> bool:
    found = scene.model.get(Pod, "ns", name)
    return found is None or found.metadata.deletion_timestamp is not None


def condition(scene: Scene, name: str = "r") -> Condition:
    found: DeviceTaintRule = scene.model.get(DeviceTaintRule, "", name)
    (only,) = found.status.conditions
    return only


def says(scene: Scene, name: str = "r") -> tuple[str, str, str]:
    found = condition(scene, name)
    return found.status, found.reason, found.message


# --- evictions ------------------------------------------------------------------------------------


def test_pod_leaves_a_device_that_its_driver_taints() -> None:
    metrics = TaintMetrics()
    scene = scene_with(metrics=metrics)
    devices = [{"name": "d0", "taints": [TAINT]}]
    target = Target(ResourceSlice, "", "s")
    scene.model.write(Patch(target, {"spec": {"devices": devices}}))
    scene.settle()
    left = scene.pod()
    assert is_leaving(scene)
    (disruption,) = left.status.conditions
    assert (disruption.type, disruption.status) == ("DisruptionTarget", "True")
    assert disruption.reason == "DeletionByDeviceTaintManager"
    assert disruption.message == "Device Taint manager: deleting due to NoExecute taint"
    assert scene.messages() == [MARKED]
    text = exposition(metrics.families())
    assert "device_taint_eviction_controller_pod_deletions_total 1" in text
    assert 'pod_deletion_duration_seconds_bucket{le="0.005"} 1' in text
    assert scene.is_at_rest()


def test_other_effects_do_not_evict() -> None:
    scene = scene_with()
    scene.put(rule(effect="NoSchedule", driver="dra"))
    assert not is_leaving(scene)
    assert says(scene) == (
        "False",
        "OtherEffect",
        "Eviction only happens for the NoExecute effect.",
    )


def test_rule_evicts_and_tells_how_far_it_has_come() -> None:
    scene = scene_with()
    scene.put(rule(driver="dra"))
    pending = "1 pod needs to be evicted in 1 namespace."
    assert says(scene) == ("True", "PodsPendingEviction", pending)
    assert condition(scene).observed_generation == 1
    assert is_leaving(scene)
    scene.advance(10)
    done = "1 pod evicted since starting the controller."
    assert says(scene) == ("False", "Completed", done)


def test_rule_that_means_nothing_has_not_started() -> None:
    scene = scene_with()
    scene.put(rule(driver="other"))
    assert says(scene) == ("False", "NotStarted", "")


def test_rule_means_devices_that_are_no_longer_published() -> None:
    scene = scene_with()
    scene.model.write(Delete(Target(ResourceSlice, "", "s")))
    scene.put(rule(device="d0"))
    assert is_leaving(scene)


def test_toleration_delays_from_when_the_taint_was_added() -> None:
    scene = scene_with(tolerating(8), tolerating(30))
    scene.advance(3)
    scene.put(rule())
    scene.advance(4)
    assert not is_leaving(scene)
    scene.advance(1)
    assert is_leaving(scene)


def test_toleration_without_end_keeps_the_pod() -> None:
    scene = scene_with(tolerating())
    scene.put(rule())
    scene.advance(1000)
    assert not is_leaving(scene)


def test_toleration_of_every_effect_does_not_keep_the_pod() -> None:
    scene = scene_with(tolerating(effect=""))
    scene.put(rule())
    assert is_leaving(scene)


def test_rule_that_goes_in_time_cancels_the_eviction() -> None:
    scene = scene_with(tolerating(8))
    scene.put(rule())
    scene.model.write(Delete(Target(DeviceTaintRule, "", "r")))
    scene.advance(100)
    assert not is_leaving(scene)
    assert scene.messages() == [CANCELLED]


def test_pods_without_a_node_stay() -> None:
    scene = scene_with()
    scene.put(pod("q", claims=[BY_NAME]))
    scene.put(rule())
    assert not is_leaving(scene, "q")


def test_pod_that_comes_to_a_tainted_device_leaves() -> None:
    scene = Scene(DeviceTaintEvictionController(ALL))
    scene.put(slice_of({"name": "d0"}), rule(), named_claim(), pod(claims=[BY_NAME]))
    scene.allocate("shared", "p")
    assert not is_leaving(scene)
    scene.bind("p")
    assert is_leaving(scene)


def test_finished_pods_are_not_deleted() -> None:
    scene = Scene(own=[DeviceTaintEvictionController(ALL)])
    scene.put(slice_of({"name": "d0"}), named_claim(), pod(claims=[BY_NAME]))
    scene.allocate("shared", "p")
    scene.bind("p")
    scene.phase("p", "Succeeded")
    scene.put(rule())
    assert not is_leaving(scene)


def test_pods_of_a_group_leave_together() -> None:
    scene = Scene(DeviceTaintEvictionController(ALL))
    scene.put(template(), group(claims=[BY_TEMPLATE]), slice_of({"name": "d0"}))
    scene.put(*(pod(name, claims=[BY_TEMPLATE], group="g") for name in ("p", "q")))
    scene.allocate(scene.claim().metadata.name, group="g")
    for name in ("p", "q"):
        scene.bind(name)
    scene.put(rule())
    assert is_leaving(scene, "p")
    assert is_leaving(scene, "q")


def test_taint_of_an_old_generation_does_not_count() -> None:
    scene = scene_with(tolerating(8))
    scene.put(slice_of({"name": "d0", "taints": [TAINT]}, name="old", generation=1))
    scene.put(slice_of({"name": "d0"}, name="new", generation=2))
    scene.advance(100)
    assert not is_leaving(scene)
    assert scene.messages() == [CANCELLED]


def test_namesake_of_an_evicted_pod_is_not_touched() -> None:
    scene = scene_with()
    scene.put(rule())
    scene.delete(Pod, "p")
    scene.put(pod(claims=[BY_NAME]))
    scene.bind("p")
    scene.advance(100)
    assert not is_leaving(scene)


# --- rules ----------------------------------------------------------------------------------------


def test_rule_without_effect_previews_and_evicts_nobody() -> None:
    scene = scene_with()
    scene.put(rule(effect="None"))
    message = (
        "2 published devices selected. 1 allocated device selected. "
        "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
        "This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update."
    )
    assert says(scene) == ("False", "NoEffect", message)
    scene.delete(Pod, "p")
    scene.advance(1000)
    assert says(scene)[2] == message


def test_rule_that_becomes_serious_evicts() -> None:
    scene = scene_with()
    scene.put(rule(effect="None"))
    taint = {"spec": {"taint": {"effect": "NoExecute"}}}
    scene.model.write(Patch(Target(DeviceTaintRule, "", "r"), taint))
    scene.settle()
    assert condition(scene).observed_generation == 2
    assert is_leaving(scene)
    scene.advance(10)
    assert says(scene)[1] == "Completed"


def test_status_is_written_at_most_every_ten_seconds() -> None:
    scene = scene_with(tolerating(3))
    scene.put(rule())
    first = condition(scene).last_transition_time
    scene.advance(9)
    assert is_leaving(scene)
    assert condition(scene).last_transition_time == first
    scene.advance(1)
    assert condition(scene).last_transition_time != first


def test_rules_mean_nothing_when_their_feature_is_off() -> None:
    scene = scene_with(gates=Gates.parse("DRADeviceTaintRules=false", unlocked=True))
    scene.put(rule())
    assert not is_leaving(scene)
    assert scene.model.get(DeviceTaintRule, "", "r").status.conditions == ()


def device_class(expression: str) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return decode_tree({"metadata": {"name": "c"}, "spec": spec}, DeviceClass).value


def test_rule_by_class_follows_the_class() -> None:
    scene = scene_with()
    scene.put(rule(deviceClassName="c"))
    assert not is_leaving(scene)
    scene.put(device_class('device.driver == "dra"'))
    assert is_leaving(scene)


def test_rule_by_expression_follows_the_devices() -> None:
    scene = scene_with()
    expression = 'device.attributes["dra"].?old.orValue(false)'
    scene.put(rule(selectors=[{"cel": {"expression": expression}}]))
    assert not is_leaving(scene)
    devices = [{"name": "d0", "attributes": {"old": {"bool": True}}}]
    scene.model.write(Patch(Target(ResourceSlice, "", "s"), {"spec": {"devices": devices}}))
    scene.settle()
    assert is_leaving(scene)


def test_claim_is_free_after_the_eviction() -> None:
    scene = scene_with()
    scene.put(rule())
    scene.delete(Pod, "p")
    found: ResourceClaim = scene.claim()
    assert found.status.allocation is None
