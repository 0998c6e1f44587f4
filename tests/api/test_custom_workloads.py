"""What operators create from their own kinds: names, counts, and where each part is written."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from moorage.api.custom_workloads import ADAPTERS, MadeDocument, expand_workload, is_workload
from moorage.api.custom_workloads.made_object import OBJECTS_MAX
from moorage.api.documents import Document, read
from moorage.api.documents.yaml_writer import dump_yaml
from moorage.api.errors import DecodeError
from moorage.api.field_path import Place

EXAMPLES = Path(__file__).parents[2] / "examples" / "operators"
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
WRONG: tuple[Any, ...] = (None, "text", 7, -1, True, 1.5, [], [[]], {}, {"a": 1}, 10**12)


def document_of(tree: Any) -> Document:
    (document,) = read(dump_yaml([tree]).encode(), source="manifest.yaml")
    return document


def workload(api_version: str, kind: str, spec: Any, **metadata: Any) -> Document:
    tree = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", **metadata}}
    return document_of({**tree, "spec": spec})


def made_of(document: Document) -> list[MadeDocument]:
    assert is_workload(document)
    return list(expand_workload(document).made)


def names_of(document: Document) -> list[str]:
    trees: list[Any] = [each.document.tree for each in made_of(document)]
    return [f"{tree['kind']} {tree['metadata']['name']}" for tree in trees]


def example_documents() -> list[Document]:
    return [
        document
        for path in sorted(EXAMPLES.glob("*.yaml"))
        for document in read(path.read_bytes(), source=path.name)
        if is_workload(document)
    ]


def example(kind: str) -> Document:
    return next(each for each in example_documents() if each.tree["kind"] == kind)  # type: ignore[index,call-overload]


# --- which objects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "JobSet",
            ["Job train-coordinator-0", "Job train-workers-0", "Job train-workers-1"],
        ),
        (
            "LeaderWorkerSet",
            ["StatefulSet llama", "StatefulSet llama-0", "StatefulSet llama-1"],
        ),
        ("ComputeDomain", ["ResourceClaimTemplate domain-channel"]),
        (
            "MPIJob",
            ["Pod bandwidth-launcher-0", "Pod bandwidth-worker-0", "Pod bandwidth-worker-1"],
        ),
        (
            "PyTorchJob",
            [
                *("Pod finetune-master-0", "Pod finetune-worker-0"),
                *("Pod finetune-worker-1", "Pod finetune-worker-2"),
            ],
        ),
        (
            "RayCluster",
            [
                *("Pod tune-head-0", "Pod tune-gpu-worker-0"),
                *("Pod tune-gpu-worker-1", "Pod tune-gpu-worker-2"),
            ],
        ),
        ("Job", ["Pod sweep-trial-0", "Pod sweep-trial-1"]),
        ("Workload", ["Pod batch-1-main-0", "Pod batch-1-main-1"]),
        ("AppWrapper", ["Pod inner-head-0"]),
    ],
)
def test_an_example_gives_what_its_operator_creates(kind: str, names: list[str]) -> None:
    assert names_of(example(kind)) == names


@pytest.mark.parametrize(
    ("group", "pods"),
    [
        ({"replicas": 3, "numOfHosts": 2}, 6),
        ({"replicas": 1, "minReplicas": 2}, 2),
        ({"replicas": 5, "maxReplicas": 4}, 4),
        ({"minReplicas": 1}, 1),
        ({}, 0),
        ({"replicas": 3, "suspend": True}, 0),
    ],
)
def test_workers_of_ray_are_within_their_bounds(group: dict[str, Any], pods: int) -> None:
    groups = [{"groupName": "g", "template": TEMPLATE, **group}]
    spec = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": groups}
    assert len(made_of(workload("ray.io/v1", "RayCluster", spec))) == 1 + pods


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        (
            "kubeflow.org/v1",
            "TFJob",
            {"runPolicy": {"suspend": True}, "tfReplicaSpecs": {"PS": {"template": TEMPLATE}}},
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {"suspend": True, "headGroupSpec": {"template": TEMPLATE}},
        ),
        (
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {"suspend": True, "components": [{"template": {"kind": "Pod"}}]},
        ),
    ],
)
def test_a_suspended_workload_has_no_pods(api_version: str, kind: str, spec: Any) -> None:
    assert not made_of(workload(api_version, kind, spec))


def test_a_suspended_job_set_has_suspended_jobs() -> None:
    jobs = [{"name": "a", "template": {"spec": {"template": TEMPLATE}}}]
    document = workload(
        "jobset.x-k8s.io/v1alpha2", "JobSet", {"suspend": True, "replicatedJobs": jobs}
    )
    (made,) = made_of(document)
    assert made.document.tree["spec"]["suspend"] is True  # type: ignore[index,call-overload]


def test_the_pods_of_a_workload_with_an_owner_are_the_owners() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    spec = {"podSets": [{"name": "main", "template": TEMPLATE}]}
    document = workload("kueue.x-k8s.io/v1beta1", "Workload", spec, ownerReferences=[owner])
    assert not made_of(document)


def test_workers_of_a_leader_are_numbered_from_one() -> None:
    _, workers, _ = made_of(example("LeaderWorkerSet"))
    spec: Any = workers.document.tree["spec"]  # type: ignore[index,call-overload]
    assert (spec["replicas"], spec["ordinals"]) == (2, {"start": 1})


def test_what_is_made_has_the_workload_as_controller_and_its_namespace() -> None:
    spec = {"podSets": [{"template": TEMPLATE}]}
    document = workload("kueue.x-k8s.io/v1beta1", "Workload", spec, namespace="n", uid="7")
    (made,) = made_of(document)
    metadata: Any = made.document.tree["metadata"]  # type: ignore[index,call-overload]
    assert metadata["namespace"] == "n"
    assert metadata["ownerReferences"][0]["uid"] == "7"


def test_what_is_not_modelled_is_named() -> None:
    remarks = expand_workload(example("Job")).remarks
    assert remarks == (
        "spec.minAvailable is not modelled: its pods are placed one by one, not all or none",
    )


# --- where it is written --------------------------------------------------------------------------


@pytest.mark.parametrize("document", example_documents(), ids=lambda each: each.source)
def test_every_part_is_as_it_is_written(document: Document) -> None:
    for made in made_of(document):
        for place, value in leaves(made.document.tree):
            written = made.made.written_place(place)
            if written is not None and (found := value_at(document.tree, written)) is not None:
                assert found == value or place[-1] in ("name", "suspend"), place


@pytest.mark.parametrize("document", example_documents(), ids=lambda each: each.source)
def test_nothing_of_a_pod_template_is_lost(document: Document) -> None:
    made = made_of(document)
    if document.tree["kind"] == "ComputeDomain":  # type: ignore[index,call-overload]
        return
    images = {v for place, v in leaves(document.tree) if place[-1] == "image"}
    assert images == {
        v for each in made for place, v in leaves(each.document.tree) if place[-1] == "image"
    }


def test_a_field_is_found_in_the_text_of_its_workload() -> None:
    made = made_of(example("JobSet"))[-1]
    place = ("spec", "template", "spec", "containers", 0, "image")
    text = (EXAMPLES / "jobset.yaml").read_text().splitlines()
    assert text[made.document.locate(place).line - 1].strip() == "image: registry.example/train:1"


def leaves(tree: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*place, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from leaves(value, (*place, index))
    else:
        yield place, tree


def value_at(tree: Any, place: Place) -> Any:
    for step in place:
        try:
            tree = tree[step]
        except (LookupError, TypeError):
            return None
    return tree


# --- malformed ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("document", example_documents(), ids=lambda each: each.source)
def test_a_malformed_workload_is_refused_with_its_place(document: Document) -> None:
    refused = [
        (place, error.place)
        for place, _ in nodes(document.tree)
        for value in WRONG
        if (error := fault_of(with_value(document, place, value))) is not None
    ]
    assert len(refused) > 10
    for place, named in refused:
        assert named[: len(place)] == place[: len(named)]


def with_value(document: Document, place: Place, value: Any) -> Document:
    tree = copy.deepcopy(document.tree)
    value_at(tree, place[:-1])[place[-1]] = value
    return document_of(tree)


def fault_of(document: Document) -> DecodeError | None:
    try:
        list(islice(expand_workload(document).made, 10) if is_workload(document) else ())
    except DecodeError as error:
        return error
    return None


def nodes(tree: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    if place:
        yield place, tree
    steps = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    if "template" not in place[-1:]:  # the pods in it are validated as pods
        for step, value in steps:
            yield from nodes(value, (*place, step))


def test_more_pods_than_are_made_are_refused() -> None:
    sets = [{"count": OBJECTS_MAX + 1, "template": TEMPLATE}]
    with pytest.raises(
        DecodeError, match=r"spec.podSets\[0\]: asks for more than the 100,000 pods"
    ):
        made_of(workload("kueue.x-k8s.io/v1beta1", "Workload", {"podSets": sets}))


def test_the_page_lists_every_kind() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "how-to" / "plan-operators.md").read_text()
    rows = {tuple(row.split("|")[1:3]) for row in page.splitlines() if row.startswith("| `")}
    listed = {
        (version.strip(" `"), kind.strip(" `"))
        for kinds, versions in rows
        for kind in kinds.split(",")
        for version in versions.split(",")
    }
    assert listed == set(ADAPTERS)
