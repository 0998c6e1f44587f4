"""`moor explain`: why pods get no node, and what would help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moorage.cli.explain import command
from moorage.cli.plan import command as plan

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAINING = ("-f", str(EXAMPLES / "training"), "--profile", "dgx-h100")

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: x
    resources: {requests: {cpu: "%s"}}
  %s
"""


def explain(*arguments: str, text: str | None = None) -> Result:
    given = ["-f", "-"] if text is not None else []
    return CliRunner().invoke(command, [*arguments, *given], input=text)


def tree(*arguments: str, text: str | None = None) -> Any:
    result = explain(*arguments, "-o", "json", text=text)
    return json.loads(result.stdout)


def test_a_pod_is_explained_down_to_the_device() -> None:
    result = explain(*TRAINING)
    assert result.exit_code == 1
    text = result.stdout
    assert text.endswith("pod default/training-0 gets node dgx-h100-0 with 4 devices\n")
    assert text.startswith(
        "pod default/training-1: request gpus wants 3 devices with one "
        "resource.kubernetes.io/numaNode, but of the free ones at most 2 have the same "
        "(numaNode 0)\n"
        "  fix 1: let Deployment training come first: priorityClassName training-first, a new "
        "PriorityClass with value 1 that preempts nobody (an administrator creates it; pods that "
        "run keep their devices) → gets node dgx-h100-0\n"
        "  fix 2 (advice): create Deployment training first, and then Pod notebook-0 and Pod "
        "notebook-1, once its pods have nodes → gets node dgx-h100-0\n"
        "  fix 3: ask for 2 instead of 3 in request gpus (asks for less, for both pods of "
        "Deployment training) → gets node dgx-h100-0\n"
        "  fix 4: run 1 replica of Deployment training instead of 2 (runs fewer replicas)\n"
        "  fix 5 (advice): wait until claim notebook-0-gpu-0 of pod notebook-0 frees its "
        "devices, or ask its owner → gets node dgx-h100-0 then\n"
        "  (moor explain pod/training-1 … --write-fix 1 prints the manifests with fix 1)\n\n"
    )
    assert "  node dgx-h100-0: cannot allocate all claims\n" in text
    assert "8 of the class → 3 free → 0 together\n" in text
    assert "    impossible together:\n      request gpus: 3 of class gpu.nvidia.com\n" in text
    assert (
        "      constraint matchAttribute resource.kubernetes.io/numaNode of requests gpus" in text
    )
    assert (
        "  Kubernetes: 0/1 nodes are available: 1 cannot allocate all claims. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.\n"
    ) in text


def test_the_first_fix_of_the_example_gives_all_four_pods_a_node() -> None:
    written = explain(*TRAINING, "--write-fix", "1")
    planned = CliRunner().invoke(
        plan, ["-f", "-", "--profile", "dgx-h100", "-o", "json"], input=written.stdout
    )
    pods = json.loads(planned.stdout)["pods"]
    assert len(pods) == 4
    assert all(each["node"] == "dgx-h100-0" for each in pods)


@pytest.mark.parametrize(
    ("number", "fate"),
    [
        (1, "is made of the changed template of Deployment training, too"),
        (3, "gets a claim as the changed ResourceClaimTemplate three-gpus-and-nic says, too"),
        (4, "stays as it is, as Deployment training has fewer pods: pods without a node go first"),
    ],
)
def test_it_is_said_what_becomes_of_siblings(number: int, fate: str) -> None:
    written = explain(*TRAINING, "--write-fix", str(number))
    assert f"note: training-0: {fate}\n" in written.stderr


def test_what_a_fix_gives_up_is_marked() -> None:
    (pending,) = tree(*TRAINING)["pending"]
    assert [each.get("givesUp") for each in pending["fixes"]] == [
        None,
        None,
        "asks for less, for both pods of Deployment training",
        "runs fewer replicas",
        None,
    ]


def test_trees_have_verdicts_with_diagnoses() -> None:
    (pending,) = tree(*TRAINING)["pending"]
    assert pending["pod"] == "default/training-1"
    (verdict,) = pending["verdicts"]
    assert verdict["reasons"] == ["cannot allocate all claims"]
    assert [request["request"] for request in verdict["diagnosis"]["requests"]] == ["gpus", "nic"]


@pytest.mark.parametrize(
    "subject",
    [
        "training-1",
        "pod/training-1",
        "pod/default/training-1",
        "deployment/training",
        "template/three-gpus-and-nic",
        "claim/training-1-devices-0",
    ],
)
def test_what_is_asked_about_may_be_named_in_many_ways(subject: str) -> None:
    result = explain(subject, *TRAINING)
    assert result.exit_code == 1
    assert "pod default/training-1: request gpus wants 3 devices" in result.stdout
    assert "notebook-0 gets" not in result.stdout


def test_kind_and_name_may_be_two_words() -> None:
    result = explain("pod", "training-1", *TRAINING)
    assert result.exit_code == 1
    assert "pod default/training-1: request gpus wants 3 devices" in result.stdout
    assert explain("pod", "training-1", "x", *TRAINING).exit_code == 2


def test_a_pod_that_may_be_in_what_was_not_read_is_no_mistake_of_the_caller(tmp_path: Path) -> None:
    result = explain("pod/x", "-f", str(tmp_path / "missing.yaml"))
    assert result.exit_code == 3
    assert "missing.yaml: no such file or directory" in result.stderr
    assert (
        "there is no Pod default/x; there is no Pod at all; not everything could be read\n"
        in result.stderr
    )
    assert "Usage:" not in result.stderr


GANG = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: five}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 5}}]
"""
MEMBER = """\
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  schedulingGroup: {podGroupName: gang}
  containers: [{name: c, image: x}]
  resourceClaims: [{name: r, resourceClaimTemplateName: five}]
"""


def test_of_a_gang_the_pod_is_explained_that_finds_nothing_beside_the_others() -> None:
    text = GANG + MEMBER % "first" + MEMBER % "second"
    result = explain("pod/first", "--profile", "dgx-h100", text=text)
    assert result.exit_code == 1
    assert "by itself the pod would fit on 1 node, but its group gang needs 2" in result.stdout
    assert (
        "  once the pods of its group before it have nodes, pod default/second gets none:\n"
    ) in result.stdout
    assert "8 of the class → 3 free\n" in result.stdout
    assert result.stdout.startswith("pod default/first: ")


def test_a_pod_that_fits_is_status_0() -> None:
    result = explain("pod/notebook-0", *TRAINING)
    assert result.exit_code == 0
    assert result.stdout == "pod default/notebook-0 gets node dgx-h100-0 with 1 device\n"


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    result = explain("pod/traning-1", *TRAINING)
    assert result.exit_code == 2
    assert "there is no Pod default/traning-1; did you mean default/training-" in result.stderr


def test_a_name_of_another_kind_is_answered_with_that_kind() -> None:
    result = explain("training", *TRAINING)
    assert result.exit_code == 2
    assert "there is no Pod default/training; did you mean deployment/training?" in result.stderr


def test_a_wrong_kind_is_answered_with_the_nearest() -> None:
    result = explain("pdo/training-1", *TRAINING)
    assert result.exit_code == 2
    assert "there is no kind 'pdo' here; did you mean po" in result.stderr
    result = explain("node/dgx-h100-0", *TRAINING)
    assert "no kind 'node' here; there are pod, claim, template, deployment," in result.stderr


def test_a_shortage_has_its_amounts_and_a_tried_fix() -> None:
    result = explain("--profile", "dgx-h100", text=POD % (1000, ""))
    assert "  node dgx-h100-0: Insufficient cpu\n" in result.stdout
    assert "    cpu: 1k asked for, 224 of 224 free\n" in result.stdout
    assert result.stdout.startswith(
        "pod default/p: the pod asks for 1000 CPUs, node dgx-h100-0 has 224 CPUs\n"
        "  fix 1: ask for 224 CPUs instead of 1000 in container c (asks for less) → gets node "
        "dgx-h100-0\n"
    )


def test_a_label_that_is_missing_is_named() -> None:
    result = explain("--profile", "dgx-h100", text=POD % (1, "nodeSelector: {zone: a}"))
    assert "the node selector wants zone=a, the node has no such label" in result.stdout
    assert "pod default/p: the node selector wants zone=a, a label that no node has\n" in (
        result.stdout
    )
    assert "  fix 1: label node dgx-h100-0 zone=a (an administrator's change)" in result.stdout
    assert " → gets node dgx-h100-0\n" in result.stdout


def test_one_shortage_does_not_hide_the_other() -> None:
    manifests = (EXAMPLES / "training" / "training.yaml").read_text()
    text = manifests.replace("replicas: 2", "replicas: 3").replace('cpu: "16"', 'cpu: "300"')
    (pending, *_) = tree("pod/training-0", "--profile", "dgx-h100", text=text)["pending"]
    (verdict,) = pending["verdicts"]
    assert verdict["reasons"] == ["Insufficient cpu"]
    assert verdict["diagnosis"] is None  # the devices would be there
    text = text.replace("count: 3", "count: 6")
    (pending, *_) = tree("pod/training-0", "--profile", "dgx-h100", text=text)["pending"]
    (verdict,) = pending["verdicts"]
    assert verdict["isBehind"]
    (request, *_) = verdict["diagnosis"]["requests"]
    assert (request["wanted"], request["ofClass"]) == (6, 8)


def test_a_class_that_a_profile_has_is_answered_with_the_profile() -> None:
    claim = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
    result = CliRunner().invoke(command, ["-f", "-", "--profile", "dgx-h100"], input=claim)
    assert (
        "\n  --profile example-gpu adds machines with devices of the class gpu.example.com\n"
        in (result.stdout)
    )


def test_a_class_that_is_missing_is_answered_with_the_nearest() -> None:
    seed = EXAMPLES / "seeds" / "000-01-gpu-numa-alignment.yaml"
    result = explain("-f", str(seed), "--profile", "dgx-h100")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "claim/gpu-numa-alignment-claim (no pod uses it): device class dranet does not exist: "
        "did you mean dra.net?\n"
    )
    assert "  Kubernetes: 0/1 nodes are available: request nic: device class dranet does" in (
        result.stdout
    )


def test_a_claim_that_is_missing_is_said_to_be_silent() -> None:
    text = POD % (1, "resourceClaims: [{name: r, resourceClaimName: nowhere}]")
    result = explain("--profile", "dgx-h100", text=text)
    assert '  could not find ResourceClaim "default/nowhere"\n' in result.stdout
    assert "there is no claim at all\n" in result.stdout
    assert result.stdout.endswith("Kubernetes writes no event and no condition for this\n")


def test_the_condition_of_a_gated_pod_is_told() -> None:
    text = POD % (1, "schedulingGates: [{name: example.com/later}]")
    result = explain("--profile", "dgx-h100", text=text)
    assert result.stdout.endswith(
        "  waiting for scheduling gates: [example.com/later]\n"
        "  Kubernetes writes the condition PodScheduled False, SchedulingGated: "
        "Scheduling is blocked due to non-empty scheduling gates\n"
    )


def test_the_event_of_a_missing_template_is_told() -> None:
    text = POD % (1, "resourceClaims: [{name: r, resourceClaimTemplateName: absent}]")
    result = explain("--profile", "dgx-h100", text=text)
    assert result.stdout.endswith(
        "  Kubernetes writes the event FailedResourceClaimCreation: PodResourceClaim r: "
        'resource claim template "absent": resourceclaimtemplate.resource.k8s.io "absent" '
        "not found\n"
    )


def test_a_pod_with_both_has_both() -> None:
    claims = "resourceClaims: [{name: r, resourceClaimTemplateName: absent}]"
    text = POD % (1, f"schedulingGates: [{{name: later}}]\n  {claims}")
    (pending,) = tree("--profile", "dgx-h100", text=text)["pending"]
    condition, event = pending["written"]
    assert condition.startswith("the condition PodScheduled False, SchedulingGated: ")
    assert event.startswith("the event FailedResourceClaimCreation: PodResourceClaim r: ")


def test_what_is_not_modelled_is_not_said_to_be_silent() -> None:
    text = POD % (1, "volumes: [{name: v, gcePersistentDisk: {pdName: c}}]")
    result = explain("--profile", "dgx-h100", text=text)
    assert result.stdout.endswith("it does not model this, so a node may be found\n")


def test_nothing_to_explain() -> None:
    result = explain("--profile", "dgx-h100")
    assert result.exit_code == 0
    assert result.stdout == "Nothing to explain: there are no pods that look for a node.\n"


# --- what is behind refusals --------------------------------------------------------------

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: %(node)s}
spec: {unschedulable: %(cordoned)s}
status: {allocatable: {cpu: 8, pods: 10}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %(node)s}
spec:
  driver: gpu.example.com
  nodeName: %(node)s
  pool: {name: %(node)s, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
"""


def cluster(*nodes: str, cordoned: str = "false") -> str:
    return "".join(CLUSTER % {"node": node, "cordoned": cordoned} for node in nodes)


def asking(resource: str, amount: int) -> str:
    asked = f"{{{resource}: {amount}}}"
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
  - name: main
    image: x
    resources: {{requests: {asked}, limits: {asked}}}
"""


def test_a_cordoned_node_is_called_so() -> None:
    result = explain(text=cluster("n1", cordoned="true") + POD % (1, ""))
    assert "    the node is cordoned: spec.unschedulable is true\n" in result.stdout


def test_a_resource_that_nothing_stands_behind_has_a_neighbour() -> None:
    result = explain(text=cluster("n1") + asking("example.com/gpus", 1))
    assert (
        "    no device class and no device plugin of the node has example.com/gpus; "
        "did you mean example.com/gpu?\n"
    ) in result.stdout


def test_requests_for_extended_resources_are_told_by_container() -> None:
    result = explain(text=cluster("n1") + asking("example.com/gpu", 3))
    assert (
        "    request container-0-request-0 is what container main asks for of example.com/gpu\n"
    ) in result.stdout
    assert "      request container-0-request-0: 3 of class gpu\n" in result.stdout
    assert "asks for 3 devices of class gpu, node n1 has 2\n" in result.stdout


HELD = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: on-%(node)s, namespace: default, uid: uid-%(node)s}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.example.com, pool: %(node)s, device: gpu-0}]
    nodeSelector:
      nodeSelectorTerms:
      - matchFields: [{key: metadata.name, operator: In, values: [%(node)s]}]
"""


def test_claims_that_are_bound_to_different_nodes_are_told() -> None:
    claims = "".join(HELD % {"node": node} for node in ("n1", "n2"))
    entries = ", ".join(f"{{name: {n}, resourceClaimName: on-{n}}}" for n in ("n1", "n2"))
    pod = POD % (1, f"resourceClaims: [{entries}]")
    result = explain("pod/p", text=cluster("n1", "n2") + pod + claims)
    for node in ("n1", "n2"):
        told = f"claim default/on-{node} has devices already, which can be used only on {node}"
        assert f"    {told}\n" in result.stdout


def test_of_nodes_alike_it_is_said_which_one_is_the_example() -> None:
    result = explain(text=cluster("n1", "n2") + asking("example.com/gpu", 3))
    assert "  nodes n1, n2: cannot allocate all claims\n" in result.stdout
    assert "    on n1, as an example:\n" in result.stdout


def test_what_ends_an_attempt_is_told_once_beside_kubernetes() -> None:
    claim = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].a == 1'}}]
"""
    result = explain(text=cluster("n1") + claim.removeprefix("---\n"))
    assert "  node n1: the attempt ends here, whatever other nodes have\n" in result.stdout
    assert result.stdout.count('running "DynamicResources" filter plugin') == 1


# --- namespaces ---------------------------------------------------------------------------

CLAIM_IN_TEAM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 9}}]}}
"""


@pytest.mark.parametrize("flag", ["-A", "--all-namespaces"])
def test_an_object_is_found_in_all_namespaces(flag: str) -> None:
    arguments = ("--profile", "dgx-h100")
    here = explain("claim/gpus", *arguments, text=CLAIM_IN_TEAM)
    assert here.exit_code == 2
    assert "there is no ResourceClaim default/gpus; did you mean team/gpus?" in here.stderr
    everywhere = explain("claim/gpus", flag, *arguments, text=CLAIM_IN_TEAM)
    assert everywhere.exit_code == 1
    said = "claim/gpus (no pod uses it): request gpu asks for 9 devices of class gpu.nvidia.com"
    assert said in everywhere.stdout
    assert explain(flag, *arguments, text=CLAIM_IN_TEAM).stdout == everywhere.stdout


def test_what_is_in_no_namespace_is_told_with_the_nearest() -> None:
    result = explain("claim/gpsu", "-A", "--profile", "dgx-h100", text=CLAIM_IN_TEAM)
    assert result.exit_code == 2
    assert "there is no ResourceClaim gpsu in any namespace; did you mean team/gpus?" in (
        result.stderr
    )


def test_objects_of_one_name_are_all_explained() -> None:
    both = f"{CLAIM_IN_TEAM}---\n{CLAIM_IN_TEAM.replace('namespace: team', 'namespace: other')}"
    result = explain("claim/gpus", "-A", "--profile", "dgx-h100", text=both)
    assert result.stdout.count("(no pod uses it): request gpu asks for 9 devices") == 2
    # How to use a fix is told once.
    assert result.stdout.count("(moor explain claim/team/gpus … --write-fix 1 prints") == 1
    assert result.stdout.count("--write-fix") == 1


REFUSED_CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: mixed}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors:
        - cel: {expression: "3 in [device.attributes['gpu.example.com'].index, 7]"}
---
"""


def test_a_claim_that_is_refused_is_repaired_in_the_namespace_of_its_pod() -> None:
    text = REFUSED_CLAIM + POD % (1, "resourceClaims: [{name: r, resourceClaimName: mixed}]")
    result = explain("--profile", "example-gpu", text=text)
    assert result.exit_code == 1
    assert (
        "elements of a list have one type: an attribute is dyn, and 7 is not\n"
        "  fix 1: request gpu: write dyn(7) instead of 7 → gets node example-gpu-0\n"
    ) in result.stdout


def test_a_template_that_is_not_asked_about_takes_no_devices() -> None:
    template = GANG.partition("---\n")[2].replace("count: 5", "count: 8")
    wanting = (
        template.replace("name: five", "name: one").replace("count: 8", "count: 1") + "---\n"
    ) + POD % (1, "resourceClaims: [{name: r, resourceClaimTemplateName: one}]")
    result = explain("pod/p", "--profile", "dgx-h100", text=f"{template}---\n{wanting}")
    assert result.stdout == "pod default/p gets node dgx-h100-0 with 1 device\n"
    result = explain("template/five", "--profile", "dgx-h100", text=f"{template}---\n{wanting}")
    assert result.exit_code == 1
