"""Before anything is scheduled, pods, priorities and claims are there."""

from __future__ import annotations

from moorage.api.gates import Gates
from moorage.claims.pod_claims import ALL_FEATURES, ClaimUse, uses_of
from moorage.insight.snapshot.completion import Completed, complete, with_claims
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from tests.insight.snapshot.test_builder import NOW
from tests.insight.snapshot.test_workloads import CONTEXT, snapshot

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  metadata: {labels: {from: template}}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: main, image: web, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
"""
GROUP = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: team}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
"""


def completed(*texts: str, gates: str = "") -> Completed:
    return complete(snapshot(*texts), Context(gates=Gates.parse(gates), now=NOW))


def uses(found: Snapshot) -> list[str]:
    claims = {(each.metadata.namespace, each.metadata.name): each for each in found.claims}
    names = []
    for pod in found.pods:
        result = uses_of(pod, lambda namespace, name: claims.get((namespace, name)), ALL_FEATURES)
        assert isinstance(result, tuple), result
        names += [use.claim.metadata.name for use in result if isinstance(use, ClaimUse)]
    return names


def test_a_pod_gets_its_claim_from_the_template() -> None:
    found = completed(TEMPLATE, POD).snapshot
    (claim,) = found.claims
    assert claim.metadata.name == "web-gpu-0"
    assert claim.metadata.labels == {"from": "template"}
    assert uses(found) == ["web-gpu-0"]


def test_pods_of_a_deployment_get_a_claim_each() -> None:
    deployment = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
"""
    result = completed(TEMPLATE, deployment)
    assert uses(result.snapshot) == ["web-0-gpu-0", "web-1-gpu-0"]
    assert [pod.metadata.name for pod in result.snapshot.pods] == ["web-0", "web-1"]
    assert all(pod.status.resource_claim_statuses for pod in result.snapshot.pods)


def test_completing_again_changes_nothing() -> None:
    once = completed(TEMPLATE, POD).snapshot
    assert complete(once, CONTEXT).snapshot == once


def test_a_claim_that_was_made_but_not_noted_is_found() -> None:
    pod = POD.replace("name: web}", "name: web, uid: p}")
    made = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: web-gpu-x1y2z
  uid: c
  annotations: {resource.kubernetes.io/pod-claim-name: gpu}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: web, uid: p, controller: true}]
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
    found = completed(TEMPLATE, pod, made).snapshot
    assert uses(found) == ["web-gpu-x1y2z"]
    assert len(found.claims) == 1


def test_without_the_template_nothing_is_made() -> None:
    found = completed(POD).snapshot
    assert found.claims == ()
    assert found.pods[0].status.resource_claim_statuses is None


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    other = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: web-gpu-0}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
    assert uses(completed(TEMPLATE, POD, other).snapshot) == ["web-gpu-1"]


def test_the_pods_of_a_group_share_the_claim_of_the_group() -> None:
    member = POD.replace("spec:\n", "spec:\n  schedulingGroup: {podGroupName: team}\n", 1)
    found = completed(TEMPLATE, GROUP, member, member.replace("name: web}", "name: other}"))
    assert uses(found.snapshot) == ["team-gpu-0", "team-gpu-0"]
    assert len(found.snapshot.claims) == 1


def test_a_group_without_the_feature_makes_no_claim() -> None:
    found = completed(TEMPLATE, GROUP, gates="DRAWorkloadResourceClaims=false").snapshot
    assert found.claims == ()


def test_what_the_gates_do_not_allow_is_told() -> None:
    listing = TEMPLATE.replace(
        "exactly: {deviceClassName: gpu.example.com}",
        "firstAvailable: [{name: a, deviceClassName: gpu.example.com}]",
    )
    given = snapshot(listing, POD)
    features = ALL_FEATURES._replace(prioritized_list=False)
    found, concerns = with_claims(given, features)
    assert found.claims == ()
    assert "prioritized list" in str(concerns[0])


# --- priorities ---------------------------------------------------------------------------

URGENT = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
preemptionPolicy: Never
"""
PLAIN = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: m, image: i}]\n"
)


def test_priorities_come_from_classes() -> None:
    (pod,) = completed(URGENT, PLAIN + "  priorityClassName: urgent\n").snapshot.pods
    assert (pod.spec.priority, pod.spec.preemption_policy) == (1000, "Never")


def test_system_priorities_are_built_in() -> None:
    (pod,) = completed(PLAIN + "  priorityClassName: system-node-critical\n").snapshot.pods
    assert pod.spec.priority == 2_000_001_000


def test_the_lowest_default_class_counts_where_none_is_named() -> None:
    low = URGENT.replace("urgent", "low").replace("1000", "-5") + "globalDefault: true\n"
    high = URGENT + "globalDefault: true\n"
    (pod,) = completed(high, low, PLAIN).snapshot.pods
    assert (pod.spec.priority, pod.spec.priority_class_name) == (-5, "low")
    (plain,) = completed(PLAIN).snapshot.pods
    assert plain.spec.priority == 0


def test_a_class_that_there_is_not_is_told() -> None:
    result = completed(PLAIN + "  priorityClassName: gone\n")
    assert str(result.concerns[0]).startswith("there is no PriorityClass gone, but Pod default/p")


# --- runtime classes ------------------------------------------------------------------------

RUNTIME = """\
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: sandbox
overhead: {podFixed: {cpu: 250m}}
scheduling:
  nodeSelector: {runtime: sandbox}
  tolerations: [{key: sandbox, operator: Exists}]
"""
SANDBOXED = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  runtimeClassName: sandbox
  nodeSelector: {zone: a}
  containers: [{name: main, image: web}]
"""


def test_a_pod_gets_what_its_runtime_class_adds() -> None:
    found = completed(RUNTIME, SANDBOXED)
    (pod,) = found.snapshot.pods
    assert {name: str(amount) for name, amount in pod.spec.overhead.items()} == {"cpu": "250m"}
    assert pod.spec.node_selector == {"zone": "a", "runtime": "sandbox"}
    assert "sandbox" in [each.key for each in pod.spec.tolerations]
    assert found.concerns == ()


def test_what_a_runtime_class_adds_is_added_once() -> None:
    once = completed(RUNTIME, SANDBOXED).snapshot
    again = complete(once, Context(gates=Gates.parse(""), now=NOW)).snapshot
    assert again.pods[0].spec == once.pods[0].spec


def test_a_pod_that_does_not_agree_with_its_runtime_class_is_a_concern() -> None:
    found = completed(RUNTIME, SANDBOXED.replace("zone: a", "runtime: other"))
    (concern,) = found.concerns
    assert "conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox" in concern.fact
    assert found.snapshot.pods[0].spec.overhead == {}
