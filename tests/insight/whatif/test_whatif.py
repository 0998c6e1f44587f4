"""The effect of changes on pods, claims and devices."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.core.placement import Taint
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.whatif import (
    AddObjects,
    AddTaintRule,
    ClusterChange,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
    UnknownNameError,
    apply,
)
from moorage.insight.whatif.evicted_pods import TaintEviction
from tests.insight.whatif.clusters import (
    CONTEXT,
    FIRST,
    NOTEBOOK,
    SECOND,
    ask,
    cluster,
    free,
    objects,
    turns,
)

GPU = "gpu.example.com"

WAITING = """\
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec:
  containers: [{name: main, image: web, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: two}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-3}
status: {capacity: {cpu: 8, pods: 10}, allocatable: {cpu: 8, pods: 10}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-3-gpus}
spec:
  driver: gpu.example.com
  nodeName: node-3
  pool: {name: node-3, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
"""
DAEMONS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: agent}]}
"""
AGENT = """\
apiVersion: v1
kind: Pod
metadata:
  name: agent-node-1
  uid: 00000000-0000-4000-8000-000000000201
  ownerReferences:
  - {apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u, controller: true}
spec: {nodeName: node-1, containers: [{name: main, image: agent}]}
"""


def rule_text(effect: str = "NoExecute", key: str = "example.com/maintenance") -> str:
    return f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {{name: r}}
spec:
  deviceSelector: {{driver: gpu.example.com, pool: node-1}}
  taint: {{key: {key}, effect: {effect}}}
"""


def rule(effect: str = "NoExecute", key: str = "example.com/maintenance") -> AddTaintRule:
    (found,) = objects(rule_text(effect, key)).taint_rules
    return AddTaintRule(found)


# --- nodes ----------------------------------------------------------------------------------


def test_a_drained_node_gives_its_pods_away_and_a_bare_one_is_lost() -> None:
    found = ask(DrainNode("node-1"))
    assert turns(found) == {FIRST: "moves node-2", NOTEBOOK: "lost -"}
    assert found.is_worse
    assert free(found) == {"node-1": (0, 2), "node-2": (1, 0)}
    assert [each.is_cordoned for each in found.devices] == [True, False]
    assert [each.why for each in found.pods] == ["node-1 is drained"] * 2
    assert found.same == 1


def test_daemons_stay_on_a_drained_node_and_go_with_a_removed_one() -> None:
    with_agent = cluster(DAEMONS, AGENT)
    assert "team-a/agent-node-1" not in turns(ask(DrainNode("node-1"), on=with_agent))
    found = ask(RemoveNodes(("node-1",)), on=with_agent)
    assert turns(found)["team-a/agent-node-1"] == "gone -"
    assert not next(each for each in found.pods if "agent" in each.pod).is_worse


STATIC = """\
apiVersion: v1
kind: Pod
metadata:
  name: proxy-node-1
  uid: 00000000-0000-4000-8000-000000000501
  annotations: {kubernetes.io/config.mirror: "1"}
  ownerReferences: [{apiVersion: v1, kind: Node, name: node-1, uid: u, controller: true}]
spec: {nodeName: node-1, containers: [{name: main, image: proxy}]}
"""


def test_static_pods_leave_only_with_their_node() -> None:
    on = cluster(STATIC)
    name = "team-a/proxy-node-1"
    taint = TaintNode("node-1", Taint(key="a", effect="NoExecute"))
    for change in (DrainNode("node-1"), taint, DeletePods((name,))):
        assert name not in turns(ask(change, on=on))
    assert turns(ask(RemoveNodes(("node-1",)), on=on))[name] == "gone -"


def test_a_pod_that_has_ended_is_not_made_anew() -> None:
    on = cluster()
    ended = replace(on.pods[0], status=replace(on.pods[0].status, phase="Succeeded"))
    found = ask(DeletePods((FIRST,)), on=on.with_objects([ended]))
    # Its replica set makes another one in any case, which now gets the devices that it still had.
    assert turns(found) == {"team-a/inference-0": "moves node-1"}


def test_a_removed_node_takes_its_devices_along() -> None:
    found = ask(RemoveNodes(("node-2",)))
    (turn,) = found.pods
    assert (turn.pod, turn.kind, turn.is_worse) == (SECOND, "loses", True)
    assert turn.after is not None
    assert turn.after.message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    (gone,) = (each for each in found.devices if each.node == "node-2")
    assert (gone.total_before, gone.total_after) == (2, 0)


def test_cordoning_moves_nobody_but_who_still_looks_for_a_node() -> None:
    one = WAITING.replace("count: 2", "count: 1")
    found = ask(CordonNode("node-2"), on=cluster(one))
    assert turns(found) == {"team-a/waiting": "loses -"}


def test_a_new_node_helps_who_waits_and_gets_its_daemons() -> None:
    found = ask(AddObjects(objects(NODE)), on=cluster(WAITING, DAEMONS))
    assert turns(found) == {
        "team-a/waiting": "gains node-3",
        "team-a/agent-node-3": "new node-3",
    }
    assert not found.is_worse
    assert found.pods[0].after is not None
    assert found.pods[0].after.devices == (f"{GPU}/node-3/gpu-0", f"{GPU}/node-3/gpu-1")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ("[]", [0]),
        ("[{key: a, operator: Exists}]", []),
        ("[{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]", [30]),
        ("[{key: a, operator: Exists, effect: NoSchedule}]", [0]),
    ],
)
def test_a_node_taint_evicts_who_does_not_tolerate_it(
    tolerations: str, expected: list[int]
) -> None:
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: tolerant, uid: 00000000-0000-4000-8000-000000000301}}
spec:
  nodeName: node-2
  tolerations: {tolerations}
  containers: [{{name: main, image: web}}]
"""
    taint = TaintNode("node-2", Taint(key="a", value="b", effect="NoExecute"))
    found = ask(taint, on=cluster(pod))
    assert [e.after_seconds for e in found.evictions if e.pod == "team-a/tolerant"] == expected
    assert TaintEviction(SECOND, 0, "a=b:NoExecute", node="node-2") in found.evictions


def test_a_taint_that_only_keeps_away_evicts_nobody() -> None:
    found = ask(TaintNode("node-1", Taint(key="a", effect="NoSchedule")))
    assert turns(found) == {}
    assert found.evictions == ()


# --- devices --------------------------------------------------------------------------------


def test_a_rule_tells_its_evictions_before_it_is_created() -> None:
    found = ask(rule())
    assert turns(found) == {FIRST: "moves node-2", NOTEBOOK: "lost -"}
    taint = "example.com/maintenance:NoExecute"
    device = f"{GPU}/node-1/gpu-"
    assert found.evictions == (
        TaintEviction(FIRST, 0, taint, "", "r", f"{FIRST}-gpu", f"{device}0"),
        TaintEviction(NOTEBOOK, 60, taint, "", "r", f"{NOTEBOOK}-gpu", f"{device}1"),
    )
    (preview,) = found.rules
    assert preview.message == "2 pods need to be evicted in 1 namespace."


def test_a_rule_without_effect_changes_nothing_and_tells_what_it_would() -> None:
    found = ask(rule("None"))
    assert turns(found) == {}
    assert found.evictions == ()
    (preview,) = found.rules
    assert [each.pod for each in preview.evictions] == [FIRST, NOTEBOOK]
    assert preview.message.startswith(
        "2 published devices selected. 2 allocated devices selected. "
        "2 pods would be evicted in 1 namespace if the effect was NoExecute."
    )


def test_a_rule_with_another_effect_keeps_devices_from_new_pods_only() -> None:
    found = ask(rule("NoSchedule"), DeletePods((NOTEBOOK,)))
    assert turns(found) == {NOTEBOOK: "deleted -"}
    assert not found.is_worse
    assert free(found)["node-1"] == (0, 0)


def test_rules_do_nothing_where_they_are_off() -> None:
    off = CONTEXT._replace(gates=Gates.parse("DRADeviceTaintRules=false"))
    found = ask(rule(), context=off)
    assert (turns(found), found.rules) == ({}, ())
    assert [each.rule for each in found.concerns] == ["rules-off"]


def test_what_happens_anyway_is_no_difference() -> None:
    evicting = cluster(rule_text())
    found = ask(CordonNode("node-2"), on=evicting)
    assert found.leaving_anyway == (FIRST, NOTEBOOK)
    assert found.evictions == ()
    assert turns(found) == {FIRST: "loses -"}
    assert turns(ask(DrainNode("node-1"), on=evicting)) == {}


def test_without_a_rule_its_evictions_do_not_happen() -> None:
    found = ask(RemoveTaintRule("r"), on=cluster(rule_text()))
    assert turns(found) == {FIRST: "moves node-1", NOTEBOOK: "new node-1"}


def test_a_pod_that_gets_tainted_devices_again_is_worse_off() -> None:
    # The effect that a toleration leaves out lets a claim have the device, and no more.
    tolerating = cluster().templates[0]
    text = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: team-a}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu, tolerations: [{key: k, operator: Exists}]}
"""
    assert tolerating.metadata.name == "one-gpu"
    found = ask(rule(key="k"), CordonNode("node-2"), on=cluster(text))
    turn = next(each for each in found.pods if each.pod == FIRST)
    assert turn.is_worse
    assert turn.again == (
        f"{GPU}/node-1/gpu-0 has k:NoExecute, no toleration with effect NoExecute covers it"
    )


def test_replaced_slices_leave_claims_what_they_have() -> None:
    (old,) = (each for each in cluster().slices if each.metadata.name == "node-2-gpus")
    devices = old.spec.devices or ()
    new = replace(old, spec=replace(old.spec, devices=devices[1:]))
    found = ask(ReplaceSlices((GPU,), (new,)), on=cluster(WAITING.replace("count: 2", "count: 1")))
    assert turns(found) == {}
    assert {each.device: each.claims for each in found.missing} == {
        f"{GPU}/node-1/gpu-0": (f"{FIRST}-gpu",),
        f"{GPU}/node-1/gpu-1": (f"{NOTEBOOK}-gpu",),
        f"{GPU}/node-2/gpu-0": (f"{SECOND}-gpu",),
    }


def test_a_driver_that_has_no_slices_is_told() -> None:
    found = ask(ReplaceSlices(("nic.example.com",), ()))
    assert [each.rule for each in found.concerns] == ["new-driver"]


# --- pods and claims ------------------------------------------------------------------------


def test_a_deleted_pod_frees_its_devices_and_helps_who_waits() -> None:
    changes = (DeletePods((NOTEBOOK, FIRST)), CordonNode("node-2"))
    found = ask(*changes, on=cluster(WAITING))
    assert turns(found) == {
        FIRST: "loses -",  # comes back after the one that waits already
        NOTEBOOK: "deleted -",
        "team-a/waiting": "gains node-1",
    }


def test_claims_made_for_a_pod_go_with_it_and_others_lose_their_devices() -> None:
    world = apply(cluster(), [DeletePods((NOTEBOOK, FIRST))], CONTEXT)
    claims = {each.metadata.name: each for each in world.snapshot.claims}
    assert set(claims) == {"inference-m9d4q-gpu", "notebook-gpu"}
    assert claims["notebook-gpu"].status.allocation is None
    assert claims["notebook-gpu"].metadata.finalizers == ()
    (again,) = (each for each in world.snapshot.pods if each.metadata.name == "inference-7xk2p")
    assert (again.spec.node_name, again.status.resource_claim_statuses or ()) == ("", ())


def test_a_claim_in_use_is_deleted_once_it_is_not() -> None:
    claim = DeleteClaims((f"{NOTEBOOK}-gpu",))
    found = ask(claim)
    assert [each.rule for each in found.concerns] == ["claims-in-use"]
    assert free(found)["node-1"] == (0, 0)
    found = ask(claim, DeletePods((NOTEBOOK,)))
    assert found.concerns == ()
    assert free(found)["node-1"] == (0, 1)


def test_who_waits_for_a_deleted_claim_says_so() -> None:
    found = ask(DeleteClaims(("team-a/two",)), on=cluster(WAITING))
    (turn,) = found.pods
    assert turn.kind == "waits"
    assert turn.after is not None
    assert "two" in turn.after.message


def test_a_claim_made_for_a_pod_that_waits_is_made_anew() -> None:
    waiting = """\
apiVersion: v1
kind: Pod
metadata: {name: late, uid: 00000000-0000-4000-8000-000000000401}
spec:
  containers: [{name: main, image: web, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
status:
  resourceClaimStatuses: [{name: gpu, resourceClaimName: late-gpu-x}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: late-gpu-x
  uid: 00000000-0000-4000-8000-000000000402
  annotations: {resource.kubernetes.io/pod-claim-name: gpu}
  ownerReferences:
  - apiVersion: v1
    kind: Pod
    name: late
    uid: 00000000-0000-4000-8000-000000000401
    controller: true
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 1}}]}}
"""
    found = ask(DeleteClaims(("team-a/late-gpu-x",)), on=cluster(waiting))
    assert turns(found) == {}


# --- names, laws ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (DrainNode("node1"), "there is no node node1; did you mean node-1?"),
        (CordonNode("x"), "there is no node x"),
        (RemoveNodes(("node-1", "node-9")), "there is no node node-9; did you mean node-2?"),
        (TaintNode("n", Taint(key="a", effect="NoSchedule")), "there is no node n"),
        (
            DeletePods(("team-a/notebok",)),
            f"there is no pod team-a/notebok; did you mean {NOTEBOOK}?",
        ),
        (DeleteClaims(("team-a/x",)), "there is no claim team-a/x"),
        (RemoveTaintRule("x"), "there is no taint rule x"),
    ],
)
def test_what_is_not_there_is_named(change: ClusterChange, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ask(change)
    assert str(caught.value) == message
    assert caught.value.change is change


def test_nothing_changed_is_no_difference() -> None:
    found = ask(on=cluster(WAITING, DAEMONS))
    assert turns(found) == {}
    assert not any(each.is_changed for each in found.devices)


CHANGES: list[ClusterChange] = [
    CordonNode("node-1"),
    DrainNode("node-1"),
    TaintNode("node-2", Taint(key="a", effect="NoExecute")),
    DeletePods((NOTEBOOK,)),
    DeletePods((FIRST,)),
    DeleteClaims((f"{SECOND}-gpu",)),
    RemoveNodes(("node-2",)),
    rule(),
    AddObjects(objects(NODE)),
]


@given(st.lists(st.sampled_from(CHANGES), unique_by=id))
@settings(max_examples=30)
def test_pods_that_do_not_leave_do_not_move_and_no_device_has_two_owners(
    changes: list[ClusterChange],
) -> None:
    if RemoveNodes(("node-2",)) in changes:  # Nothing else can be done to it afterwards.
        changes = [each for each in changes if not isinstance(each, TaintNode)]
    settled = apply(cluster(WAITING), changes, CONTEXT).snapshot
    assert apply(settled, (), CONTEXT).departures == ()
    found = ask(*changes, on=cluster(WAITING))
    left = {each.pod for each in found.pods if each.why}
    moved = {each.pod for each in found.pods if each.kind in ("moves", "loses", "lost")}
    assert moved - {"team-a/waiting"} <= left
    held = [d for each in found.pods if each.after is not None for d in each.after.devices]
    assert len(held) == len(set(held))


def test_time_that_has_passed_counts() -> None:
    earlier = rule()
    context = CONTEXT._replace(now=Timestamp(CONTEXT.now.instant + timedelta(seconds=45)))
    found = ask(earlier, context=context)
    assert [each.after_seconds for each in found.evictions] == [0, 15]
