"""Plans of pods with volume claims: bound, to be bound, supposed, and missing."""

from __future__ import annotations

import re

import pytest

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.answer.answer import answer
from moorage.insight.explain.pods import explain
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.consistency import check_consistency
from moorage.insight.snapshot.snapshot import overlay
from moorage.validation.strategy import Context
from tests.insight.snapshot.test_builder import intake

CONTEXT = Context(gates=Gates.parse(""), now=Timestamp.parse("2026-01-01T00:00:00Z"))
NODES = "---\n".join(
    f"""\
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}
status: {{capacity: {{cpu: 8, pods: 110}}}}
"""
    for name in ("node-1", "node-2")
)


def claim(name: str = "data", more: str = "", modes: str = "ReadWriteOnce") -> str:
    return f"""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [{modes}], resources: {{requests: {{storage: 1Gi}}}}{more}}}
"""


def volume(name: str = "disk", node: str = "node-2", size: str = "1Gi", more: str = "") -> str:
    term = f"{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}"
    return f"""\
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: {size}}}
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  local: {{path: /disk}}
  nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{term}]}}]}}}}
{more}"""


def storage_class(mode: str, *, provisioner: str = "disks.example.com", name: str = "disks") -> str:
    return f"""\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: {provisioner}
volumeBindingMode: {mode}
"""


def pod(name: str = "reader", volume: str = "persistentVolumeClaim: {claimName: data}") -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: main, image: i}}]
  volumes: [{{name: v, {volume}}}]
"""


def planned(*texts: str) -> Plan:
    found = intake("---\n".join((NODES, *texts)))
    assert not found.refused
    return plan(found.snapshot(), CONTEXT)


def concerns(found: Plan) -> str:
    return "\n".join(map(str, found.concerns))


IN_CLASS = ", storageClassName: disks"
NO_CLASS = ', storageClassName: ""'


def test_a_pod_goes_where_the_smallest_volume_is_that_fits_its_claim() -> None:
    small = volume("small", node="node-1", size="1Mi")
    large = volume("large", node="node-1", size="2Gi")
    found = planned(claim(more=IN_CLASS), large, volume(), small, pod())
    assert [each.node for each in found.placed] == ["node-2"]
    assert not found.concerns


def test_a_claim_that_names_a_volume_gets_that_one() -> None:
    other = volume("other", node="node-1", size="2Gi")
    found = planned(claim(more=f"{IN_CLASS}, volumeName: other"), other, volume(), pod())
    assert [each.node for each in found.placed] == ["node-1"]


def test_two_claims_get_two_volumes() -> None:
    claims = (claim("data", IN_CLASS), claim("more", IN_CLASS))
    volumes = (volume("a", node="node-1"), volume("b", node="node-2"))
    pods = (pod("a"), pod("b", "persistentVolumeClaim: {claimName: more}"))
    found = planned(*claims, *volumes, *pods)
    assert [each.node for each in found.placed] == ["node-1", "node-2"]


@pytest.mark.parametrize(
    "texts",
    [
        (claim(more=IN_CLASS), storage_class("WaitForFirstConsumer")),
        (claim(more=IN_CLASS), storage_class("Immediate")),
        (claim(more=IN_CLASS),),
        (claim(),),
    ],
)
def test_a_volume_that_will_be_made_restricts_no_nodes(texts: tuple[str, ...]) -> None:
    assert len(planned(*texts, pod()).placed) == 1


def test_what_is_supposed_is_said() -> None:
    supposed = concerns(planned(claim(more=IN_CLASS), pod()))
    assert "nothing is known of the volume of PersistentVolumeClaim default/data" in supposed
    waits = storage_class("WaitForFirstConsumer")
    assert not concerns(planned(claim(more=IN_CLASS), waits, pod()))


@pytest.mark.parametrize(
    ("texts", "message", "cause"),
    [
        ((), 'persistentvolumeclaim "data" not found', "data does not exist in namespace default"),
        (
            (claim(more=NO_CLASS),),
            "pod has unbound immediate PersistentVolumeClaims",
            "no free volume fits it .1Gi and ReadWriteOnce",
        ),
        (
            (
                claim(more=IN_CLASS),
                storage_class("Immediate", provisioner="kubernetes.io/no-provisioner"),
            ),
            "pod has unbound immediate PersistentVolumeClaims",
            "of class disks has no volume yet",
        ),
        (
            (claim(more=IN_CLASS), volume(node="gone")),
            "2 node.s. didn't match PersistentVolume's node affinity",
            "volume of PersistentVolumeClaim data cannot be reached from node-1, node-2",
        ),
    ],
)
def test_a_pod_waits_and_says_why(texts: tuple[str, ...], message: str, cause: str) -> None:
    found = planned(*texts, pod())
    (pending,) = found.pending
    assert re.search(f"0/2 nodes are available: {message}", pending.message)
    told = answer(found, explain(found, pending), CONTEXT)
    assert re.search(cause, told.cause)


def test_a_misspelt_claim_is_mended() -> None:
    found = planned(claim("dataset"), pod(volume="persistentVolumeClaim: {claimName: datset}"))
    (pending,) = found.pending
    (fix, *_) = answer(found, explain(found, pending), CONTEXT).fixes
    assert fix.text == "use PersistentVolumeClaim dataset instead of datset"
    assert fix.node == "node-1"


def test_a_volume_for_one_pod_has_one_pod() -> None:
    found = planned(claim(modes="ReadWriteOncePod"), pod("a"), pod("b"))
    assert [each.pod.metadata.name for each in found.placed] == ["a"]
    (pending,) = found.pending
    told = answer(found, explain(found, pending), CONTEXT)
    assert told.cause.startswith("PersistentVolumeClaim data is for one pod at a time")


def test_a_volume_of_its_own_restricts_no_nodes() -> None:
    spec = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
    own = pod(volume=f"ephemeral: {{volumeClaimTemplate: {{spec: {{{spec}}}}}}}")
    assert len(planned(own).placed) == 1


STORED = claim(more=f"{IN_CLASS}, volumeName: disk").replace("name: data", "name: data, uid: c")


def test_a_stored_claim_stays_as_the_cluster_has_it() -> None:
    waiting = claim(more=IN_CLASS).replace("name: data", "name: data, uid: c")
    found = planned(waiting, volume(), storage_class("Immediate"), pod())
    assert "unbound immediate" in found.pending[0].message
    bound = f"{STORED}status: {{phase: Bound}}\n"
    assert [each.node for each in planned(bound, volume(), pod()).placed] == ["node-2"]


def test_a_bound_claim_without_any_volumes_counts_as_reachable() -> None:
    found = planned(f"{STORED}status: {{phase: Bound}}\n", pod())
    assert len(found.placed) == 1
    assert "nothing is known of the volume" in concerns(found)


def test_applying_a_claim_again_leaves_it_bound() -> None:
    cluster = intake("---\n".join((NODES, volume(), f"{STORED}status: {{phase: Bound}}\n")))
    manifests = intake("---\n".join((claim(more=IN_CLASS), pod())))
    before, after = cluster.snapshot(), manifests.snapshot()
    applied, _ = overlay(before, after)
    found = plan(before.with_objects(applied.objects()), CONTEXT)
    assert [each.node for each in found.placed] == ["node-2"]


def test_a_numbered_pod_comes_back_to_the_volume_that_it_had() -> None:
    stored = STORED.replace("name: data", "name: data-web-1")
    found = planned(
        f"{stored}status: {{phase: Bound}}\n",
        volume(),
        """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/hostname: node-1}
      containers: [{name: main, image: i}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
""",
    )
    assert [each.pod.metadata.name for each in found.placed] == ["web-0"]
    assert "didn't match PersistentVolume's node affinity" in found.pending[0].message


def test_a_missing_claim_is_reported_before_any_plan() -> None:
    found = intake("---\n".join((NODES, pod()))).snapshot()
    assert any(
        "PersistentVolumeClaim default/data is not among the objects" in str(each)
        for each in check_consistency(found)
    )
