"""Which DRA controllers run, and their common metrics."""

from __future__ import annotations

from moorage.api.gates import Gates
from moorage.controllers.controller_manager import dra_controllers
from moorage.controllers.metrics import DraMetrics
from moorage.kit.metrics import exposition
from tests.claims.parts import BY_TEMPLATE
from tests.controllers.scenes import Scene, pod, rule, slice_of, template


def names(gates: Gates) -> list[str]:
    return [each.name for each in dra_controllers(gates, DraMetrics())]


def test_gates_decide_which_controllers_run() -> None:
    assert names(Gates.parse()) == [
        "resourceclaim-controller",
        "resourceclaim-controller-releases",
        "resourceclaim-controller-groups",
        "device-taint-eviction-controller",
        "resourcepoolstatusrequest-controller",
    ]
    assert names(Gates.parse(preset="kubernetes-1.37")) == [
        "resourceclaim-controller",
        "resourceclaim-controller-releases",
        "device-taint-eviction-controller",
    ]


def test_all_of_them_work_together() -> None:
    metrics = DraMetrics()
    scene = Scene(own=dra_controllers(Gates.parse(), metrics))
    scene.put(template(), slice_of({"name": "d0"}), pod(claims=[BY_TEMPLATE]))
    scene.allocate(scene.claim().metadata.name, "p")
    scene.bind("p")
    scene.put(rule())
    text = exposition(metrics.families(scene.model.objects))
    assert "device_taint_eviction_controller_pod_deletions_total 1" in text
    assert 'resource_claims{allocated="true"' in text
    assert scene.is_at_rest()
