"""Figures: the numbers of moor devices, explain and fit, computed anew where things changed."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.insight.answer.cause_kinds import CauseKind
from moorage.insight.devices import ClaimState, DeviceState, usage_in
from moorage.insight.fit import Fitted, fit
from moorage.insight.monitor import LabelLimits, Monitor, MonitorFamilies, Shape
from moorage.insight.monitor.families import folded
from moorage.insight.monitor.figures import FITS_NOW
from moorage.kit.clock import EPOCH
from moorage.kit.metrics import Labels, exposition
from moorage.validation.strategy import Context
from tests.insight.monitor.clusters import busy_cluster, busy_objects, objects_of

CONTEXT = Context(gates=Gates.parse(), now=Timestamp(EPOCH))


def samples(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def shown(figures: Any, **limits: int) -> dict[str, float]:
    families = MonitorFamilies(
        lambda: figures, lambda: EPOCH, LabelLimits()._replace(**limits)
    ).families()
    return samples(exposition(families))


def test_devices_are_counted_as_moor_devices_counts_them() -> None:
    cluster = busy_cluster(EPOCH)
    figures = Monitor(CONTEXT).figures_of(cluster, CONTEXT)
    usage = usage_in(cluster, CONTEXT)
    counted = Counter(
        {
            (driver, str(state)): number
            for (_, driver), counts in figures.devices.items()
            for state, number in counts.states.items()
        }
    )
    assert counted == Counter((each.id.driver, str(each.state)) for each in usage.devices)
    assert {ClaimState.PENDING: 0, **{s: len(t) for s, t in figures.claims.items()}} == {
        ClaimState.PENDING: 0,
        **Counter(each.state for each in usage.claims),
    }


def test_room_for_a_shape_is_what_moor_fit_says() -> None:
    cluster = busy_cluster(EPOCH)
    figures = Monitor(CONTEXT).figures_of(cluster, CONTEXT)
    rooms = {room.shape: room for room in figures.shapes}
    for template in cluster.templates[:2]:
        found = fit(cluster, template, CONTEXT, with_levers=False)
        assert isinstance(found, Fitted)
        room = rooms[f"team/{template.metadata.name}"]
        assert room.claims == found.fit.total
        assert [(each.free, each.stranded) for each in room.requests] == [
            (supply.free, left.free)
            for supply, left in zip(found.fit.supplies, found.fit.leftovers, strict=True)
        ]


def test_a_pod_without_a_node_has_a_cause_in_a_word() -> None:
    figures = Monitor(CONTEXT).figures_of(busy_cluster(EPOCH), CONTEXT)
    assert {each.name: each.cause for each in figures.waiting} == {
        "worker-0": "fits-now",
        "huge": "pool",
        "mistyped": "missing-class",
        "large": "node-resources",
    }


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ("schedulerName: volcano\n  ", CauseKind.OTHER_SCHEDULER),
        ("schedulingGates: [{name: example.com/wait}]\n  ", CauseKind.SCHEDULING_GATE),
        ("nodeSelector: {zone: b}\n  ", CauseKind.NODE_LABELS),
        ("resourceClaims: [{name: c, resourceClaimName: none}]\n  ", CauseKind.MISSING_CLAIM),
    ],
)
def test_causes_have_kinds(spec: str, cause: CauseKind) -> None:
    (pod,) = objects_of(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n"
        f"spec:\n  {spec}containers: [{{name: c, image: i}}]\n"
    )
    objects = [each for each in busy_objects(EPOCH) if not isinstance(each, Pod)]
    figures = Monitor(CONTEXT).figures([*objects, pod], EPOCH)
    assert [each.cause for each in figures.waiting] == [cause]


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        ("count: 2, selectors: [{cel: {expression: 'false'}}]", CauseKind.SELECTOR),
        ("count: 8", CauseKind.DEVICES_IN_USE),
        ("count: 7", CauseKind.DEVICE_TAINT),
        ("count: 33", CauseKind.CLAIM_LIMIT),
        ("count: 20", CauseKind.NO_DEVICE),
        ("count: 1, selectors: [{cel: {expression: 'device.attributes[\"a\"].b'}}]", None),
    ],
)
def test_causes_of_missing_devices_have_kinds(template: str, cause: CauseKind | None) -> None:
    name = "exactly: {deviceClassName: gpu.nvidia.com, "
    claim, pod = objects_of(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
        "metadata: {name: c, namespace: team}\n"
        f"spec: {{devices: {{requests: [{{name: r, {name}{template}}}}}]}}}}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n"
        "spec:\n  resourceClaims: [{name: c, resourceClaimName: c}]\n"
        "  containers: [{name: c, image: i, resources: {claims: [{name: c}]}}]\n"
    )
    objects = [
        each
        for each in busy_objects(EPOCH)
        if not isinstance(each, Pod) and each.metadata.name != "half"
    ]
    figures = Monitor(CONTEXT).figures([*objects, claim, pod], EPOCH)
    assert [each.cause for each in figures.waiting] == [cause or CauseKind.EXPRESSION]


def test_a_changed_claim_is_counted_as_if_everything_were_new() -> None:
    monitor = Monitor(CONTEXT)
    objects = busy_objects(EPOCH)
    monitor.figures(objects, EPOCH)
    freed = [
        replace(each, status=type(each.status)())
        if isinstance(each, ResourceClaim) and each.metadata.name == "held"
        else each
        for each in objects
    ]
    later = EPOCH + timedelta(minutes=1)
    assert monitor.figures(freed, later) == Monitor(CONTEXT).figures(freed, later)


def test_a_deleted_claim_is_as_old_as_its_deletion() -> None:
    figures = Monitor(CONTEXT).figures_of(busy_cluster(EPOCH), CONTEXT)
    found = shown(figures)
    assert found['moorage_claims_oldest_seconds{state="deleting"}'] == 60
    assert found['moorage_claims_oldest_seconds{state="reserved"}'] == 3600
    assert found['moorage_claims_by_age{state="reserved",le="900"}'] == 0
    assert found['moorage_claims_by_age{state="reserved",le="14400"}'] == 1


def test_declared_shapes_come_first_and_others_are_counted_as_left_out() -> None:
    cluster = busy_cluster(EPOCH)
    declared = Shape("mine", cluster.claims[0])
    figures = Monitor(CONTEXT, shapes=(declared,), shapes_max=2).figures_of(cluster, CONTEXT)
    assert [room.shape for room in figures.shapes] == ["mine", "other/mistyped"]
    assert shown(figures)['moorage_folded_label_values{label="shape"}'] == 2


def test_a_template_that_asks_for_capacity_is_a_shape() -> None:
    added = objects_of(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
        "metadata: {name: links, namespace: default}\nspec: {spec: {devices: {requests: [\n"
        "  {name: link, exactly: {deviceClassName: links, capacity: {requests: {bandwidth: 1G}}}}\n"
        "]}}}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: sender, namespace: default}\n"
        "spec:\n  containers: [{name: main, image: a}]\n"
        "  resourceClaims: [{name: link, resourceClaimTemplateName: links}]\n"
    )
    figures = Monitor(CONTEXT).figures([*busy_objects(EPOCH), *added], EPOCH)
    assert "default/links" in {room.shape for room in figures.shapes}


def test_where_more_fit_than_are_tried_stranded_devices_are_not_known() -> None:
    cluster = busy_cluster(EPOCH)
    figures = Monitor(CONTEXT, shapes=(Shape("mine", cluster.claims[0]),), claims_max=1).figures_of(
        cluster, CONTEXT
    )
    room = next(each for each in figures.shapes if each.shape == "mine")
    assert (room.claims, room.is_more, room.requests[0].stranded) == (1, True, None)
    assert not [name for name in shown(figures) if "stranded" in name and "mine" in name]


# --- labels ---------------------------------------------------------------------------------------


def test_values_beyond_the_limit_are_counted_together() -> None:
    counts: dict[Labels, float] = {(f"node-{n}", "free"): n for n in (10, 2, 1, 30)}
    assert folded(counts, 0, 2) == {
        ("node-1", "free"): 1,
        ("node-2", "free"): 2,
        ("<other>", "free"): 40,
    }
    assert folded(counts, 0, 4) == counts


def test_a_limit_changes_no_sum() -> None:
    figures = Monitor(CONTEXT).figures_of(busy_cluster(EPOCH), CONTEXT)
    all_, few = shown(figures), shown(figures, drivers=1, nodes=0, namespaces=1, classes=1)
    for start in ("moorage_devices{", "moorage_pending_pods{", "moorage_class_devices{"):
        sums = [sum(v for n, v in each.items() if n.startswith(start)) for each in (all_, few)]
        assert sums[0] == sums[1] > 0
    assert few['moorage_folded_label_values{label="driver"}'] == 4
    nodes = {name for name in few if 'node="' in name and "<other>" not in name}
    assert nodes == set()


def test_selectors_of_nodes_are_no_labels() -> None:
    (slice_,) = objects_of(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
        "spec:\n  driver: far.example.com\n  pool: {name: p, resourceSliceCount: 1}\n"
        "  nodeSelector:\n    nodeSelectorTerms:\n"
        "    - matchExpressions: [{key: zone, operator: Exists}]\n"
        "  devices: [{name: a}]\n"
    )
    figures = Monitor(CONTEXT).figures([*busy_objects(EPOCH), slice_], EPOCH)
    found = [name for name in shown(figures) if "far.example.com" in name]
    assert len(found) == len(DeviceState) - 1  # unknown is shown where something is
    assert all('node="<selector>"' in name for name in found)


def test_every_cause_is_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "monitor-devices.md"
    text = page.read_text(encoding="utf-8")
    assert [each for each in (FITS_NOW, *CauseKind) if f"`{each}`" not in text] == []
