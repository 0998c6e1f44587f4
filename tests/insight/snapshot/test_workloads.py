"""Controllers make the pods that they miss, no more."""

from __future__ import annotations

import pytest

from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.insight.errors import TooManyPodsError
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.workloads import Expanded, with_controlled_pods
from moorage.validation.strategy import Context
from tests.insight.snapshot.test_builder import NOW, intake

CONTEXT = Context(gates=Gates.parse(""), now=NOW)

TEMPLATE = """\
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web, resources: {limits: {cpu: 1}}}]
"""
DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 3
{TEMPLATE}"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: web}
spec:
  parallelism: 4
  completions: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: web, resources: {limits: {cpu: 1}}}]
"""
DAEMONS = f"""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
{TEMPLATE}"""


def pod(name: str, owner: str = "", more: str = "") -> str:
    owners = f", ownerReferences: [{{controller: true, {owner}}}]" if owner else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: u-{name}{owners}}}\n"
        f"spec: {{containers: [{{name: main, image: web}}]}}\n{more}"
    )


def node(name: str, spec: str = "{}", labels: str = "{}") -> str:
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {labels}}}\nspec: {spec}\n"
    )


def snapshot(*texts: str) -> Snapshot:
    taken = intake("---\n".join(texts))
    assert not taken.refused
    assert not taken.unreadable
    return taken.snapshot()


def expanded(*texts: str) -> Expanded:
    return with_controlled_pods(snapshot(*texts), CONTEXT)


def names(*texts: str) -> list[str]:
    return [each.metadata.name for each in expanded(*texts).made]


def test_a_deployment_makes_its_replicas_with_owner_labels_and_defaults() -> None:
    made = expanded(DEPLOYMENT).made
    assert [each.metadata.name for each in made] == ["web-0", "web-1", "web-2"]
    first = made[0]
    owner = first.metadata.owner_references[0]
    assert (owner.kind, owner.name, owner.controller) == ("Deployment", "web", True)
    assert first.metadata.labels["app"] == "web"
    assert (
        first.metadata.labels["pod-template-hash"] == made[1].metadata.labels["pod-template-hash"]
    )
    assert str(first.spec.containers[0].resources.requests["cpu"]) == "1"
    assert first.status.phase == "Pending"
    assert first.metadata.uid != made[1].metadata.uid
    assert first.spec is made[1].spec


def test_expanding_again_makes_nothing() -> None:
    texts = (DEPLOYMENT, JOB.replace("web}", "job}"), DAEMONS, node("a"), node("b"))
    once = expanded(*texts)
    assert len(once.made) == 3 + 3 + 2
    assert with_controlled_pods(once.snapshot, CONTEXT).made == ()


def test_pods_that_are_there_count() -> None:
    owner = "apiVersion: apps/v1, kind: ReplicaSet, name: web-5d9c, uid: x"
    ended = pod("web-5d9c-b", owner, "status: {phase: Failed}\n")
    assert names(DEPLOYMENT, pod("web-5d9c-a", owner), ended) == ["web-0", "web-1"]


def test_a_replica_set_of_a_deployment_is_left_to_it() -> None:
    replica_set = DEPLOYMENT.replace("kind: Deployment", "kind: ReplicaSet").replace(
        "name: web}",
        "name: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, "
        "uid: d, controller: true}]}",
    )
    assert len(names(DEPLOYMENT, replica_set)) == 3
    assert names(replica_set) == ["web-1-0", "web-1-1", "web-1-2"]


def test_pods_of_a_controller_that_was_made_anew_do_not_count() -> None:
    old = pod("web-0", "apiVersion: batch/v1, kind: Job, name: web, uid: old")
    assert names(JOB.replace("name: web}", "name: web, uid: new}"), old) == [
        "web-1",
        "web-2",
        "web-3",
    ]


def test_a_stateful_set_makes_the_ordinals_that_are_missing() -> None:
    text = DEPLOYMENT.replace("Deployment", "StatefulSet").replace(
        "replicas: 3", "replicas: 3\n  ordinals: {start: 5}"
    )
    one = pod("web-6", "apiVersion: apps/v1, kind: StatefulSet, name: web, uid: ''")
    made = expanded(text, one).made
    assert [each.metadata.name for each in made] == ["web-5", "web-7"]
    assert made[1].metadata.labels["apps.kubernetes.io/pod-index"] == "7"


def test_a_pod_of_the_name_that_is_not_the_set_s_is_not_replaced() -> None:
    text = DEPLOYMENT.replace("Deployment", "StatefulSet")
    assert names(text, pod("web-1")) == ["web-0", "web-2"]


def test_volume_claims_of_a_stateful_set_are_volumes_of_its_pods() -> None:
    claim = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    claims = f"replicas: 1\n  volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {claim}}}]"
    text = DEPLOYMENT.replace("Deployment", "StatefulSet").replace("replicas: 3", claims)
    (made,) = expanded(text).made
    assert made.spec.volumes[0] == {"name": "data", "emptyDir": {}}  # it restricts no nodes


def test_a_cron_job_is_planned_as_its_next_job_unless_it_is_suspended() -> None:
    cron = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      completions: 2
      parallelism: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: report}]
"""
    assert len(names(cron)) == 2
    assert all(name.startswith("report-1-") for name in names(cron))
    assert names(cron.replace("schedule:", "suspend: true\n  schedule:")) == []


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (("", ""), 3),
        (("completions: 3", "completions: 9"), 4),
        (("completions: 3", ""), 4),
        (("parallelism: 4\n  completions: 3", ""), 1),
        (("parallelism: 4", "parallelism: 4\n  suspend: true"), 0),
    ],
)
def test_a_job_runs_as_many_as_may_and_are_to_succeed(change: tuple[str, str], count: int) -> None:
    text = JOB.replace(*change) if change[0] else JOB
    assert len(names(text)) == count


def test_what_has_succeeded_is_not_run_again() -> None:
    owner = "apiVersion: batch/v1, kind: Job, name: web, uid: ''"
    done = pod("web-a", owner, "status: {phase: Succeeded}\n")
    assert len(names(JOB, done)) == 2
    ended = (
        "status: {startTime: 2026-01-02T03:04:05Z, completionTime: 2026-01-02T03:05:05Z, "
        "conditions: [{type: SuccessCriteriaMet, status: 'True'}, "
        "{type: Complete, status: 'True'}]}\n"
    )
    assert names(JOB + ended) == []


def test_an_indexed_job_has_its_indexes() -> None:
    text = JOB.replace("completions: 3", "completions: 3\n  completionMode: Indexed")
    made = expanded(text).made
    assert [each.metadata.labels["batch.kubernetes.io/job-completion-index"] for each in made] == [
        "0",
        "1",
        "2",
    ]
    assert made[0].metadata.labels["job-name"] == "web"


def daemon_nodes(made: tuple[Pod, ...]) -> list[str]:
    found: list[str] = []
    for each in made:
        assert each.spec.affinity is not None
        assert each.spec.affinity.node_affinity is not None
        required = each.spec.affinity.node_affinity
        terms = required.required_during_scheduling_ignored_during_execution
        assert terms is not None
        assert terms.node_selector_terms is not None
        (field,) = terms.node_selector_terms[0].match_fields
        assert (field.key, field.operator) == ("metadata.name", "In")
        found += field.values
    return found


def test_daemons_go_to_every_node_that_admits_them() -> None:
    made = expanded(
        DAEMONS.replace("    spec:\n", "    spec:\n      nodeSelector: {gpu: 'yes'}\n"),
        node("plain"),
        node("gpu", labels="{gpu: 'yes'}"),
        node(
            "cordoned",
            "{taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}",
            "{gpu: 'yes'}",
        ),
        node("own", "{taints: [{key: mine, effect: NoSchedule}]}", "{gpu: 'yes'}"),
        node("soft", "{taints: [{key: mine, effect: PreferNoSchedule}]}", "{gpu: 'yes'}"),
    ).made
    assert [each.metadata.name for each in made] == ["agent-cordoned", "agent-gpu", "agent-soft"]
    assert daemon_nodes(made) == ["cordoned", "gpu", "soft"]
    assert len(made[0].spec.tolerations) == 6


def test_a_node_with_its_daemon_gets_no_other() -> None:
    owner = "apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: ''"
    one = pod("agent-x", owner).replace("spec: {", "spec: {nodeName: a, ")
    assert names(DAEMONS, node("a"), node("b"), one) == ["agent-b"]


def test_daemons_come_in_the_order_of_the_nodes_names() -> None:
    assert names(DAEMONS, node("b"), node("c"), node("a")) == ["agent-a", "agent-b", "agent-c"]


def test_a_template_that_no_server_would_take_makes_no_pods() -> None:
    stored = DEPLOYMENT.replace("{name: web}", "{name: web, uid: u}")  # by a server of old
    result = expanded(stored.replace("name: main", "name: MAIN"))
    assert result.made == ()
    assert str(result.concerns[0]).startswith(
        "Deployment default/web gets no pods: spec.containers[0].name"
    )


def test_too_many_pods_name_their_controller() -> None:
    given = snapshot(DEPLOYMENT.replace("replicas: 3", "replicas: 2000000000"))
    with pytest.raises(
        TooManyPodsError, match=r"Deployment default/web asks for more than the 50 "
    ):
        with_controlled_pods(given, CONTEXT, pods_max=50)
