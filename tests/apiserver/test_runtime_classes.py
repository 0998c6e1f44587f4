"""Runtime classes: fields set in pods that name one, and rejections."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moorage.api.core import Pod, PodSpec, Toleration
from moorage.api.runtime_class import RuntimeClass, Scheduling
from moorage.claims import runtime_classes as classes
from moorage.claims.runtime_classes import with_runtime
from tests.apiserver.client import PODS, Client, pod

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
PREFIX = 'pods "p" is forbidden: '


def runtime_class(name: str = "kata", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "handler": "kata", **fields}


def of_class(name: str = "kata", **fields: Any) -> dict[str, Any]:
    body = pod()
    body["spec"] |= {"runtimeClassName": name, **fields}
    return body


def test_a_class_that_does_not_exist_is_refused(client: Client) -> None:
    refused = client.post(PODS, of_class("gone")).json
    assert refused["code"] == 403
    assert refused["message"] == f'{PREFIX}pod rejected: RuntimeClass "gone" not found'
    # It is refused before the rules are looked at.
    broken = of_class("gone", volumes=[{"name": "/"}])
    assert client.post(PODS, broken).json["reason"] == "Forbidden"


def test_a_class_adds_overhead_nodes_and_tolerations(client: Client) -> None:
    toleration = {"key": "kata", "operator": "Exists", "effect": "NoSchedule"}
    scheduling = {"nodeSelector": {"runtime": "kata"}, "tolerations": [toleration]}
    overhead = {"podFixed": {"cpu": "250m"}}
    client.post(CLASSES, runtime_class(overhead=overhead, scheduling=scheduling))
    own = {"key": "kata", "operator": "Equal", "value": "", "effect": "NoSchedule"}
    spec = client.post(PODS, of_class(nodeSelector={"a": "b"}, tolerations=[own])).json["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "runtime": "kata"}
    # The pod's own is covered by the one of the class.
    assert [t for t in spec["tolerations"] if t["effect"] == "NoSchedule"] == [toleration]


@pytest.mark.parametrize(
    ("of_runtime", "of_pod", "why"),
    [
        (
            {"overhead": {"podFixed": {"cpu": "1"}}},
            {"overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {},
            {"overhead": {"cpu": "2"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"scheduling": {"nodeSelector": {"a": "b"}}},
            {"nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
        ),
    ],
)
def test_what_a_class_says_may_not_be_contradicted(
    client: Client, of_runtime: dict[str, Any], of_pod: dict[str, Any], why: str
) -> None:
    client.post(CLASSES, runtime_class(**of_runtime))
    refused = client.post(PODS, of_class(**of_pod)).json
    assert refused["message"] == f"{PREFIX}{why}"


def test_classes_are_checked_and_keep_their_handler(client: Client) -> None:
    refused = client.post(CLASSES, runtime_class(handler="../runc")).json
    assert refused["code"] == 422
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["handler"]
    made = client.post(CLASSES, runtime_class()).json
    made["handler"] = "other"
    refused = client.put(f"{CLASSES}/kata", made).json
    assert refused["details"]["causes"][0]["field"] == "handler"


def test_classes_are_found_and_shown(client: Client) -> None:
    client.post(CLASSES, runtime_class())
    (found,) = client.get("/apis/node.k8s.io/v1").json["resources"]
    assert (found["name"], found["kind"], found["namespaced"]) == (
        "runtimeclasses",
        "RuntimeClass",
        False,
    )
    table = client.get(CLASSES, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Handler", "Age"]
    assert table["rows"][0]["cells"][:2] == ["kata", "kata"]


# --- merging --------------------------------------------------------------------------------------

TOLERATIONS = some.builds(
    Toleration,
    key=some.sampled_from(["", "a", "b"]),
    operator=some.sampled_from(["", "Equal", "Exists", "Lt"]),
    value=some.sampled_from(["", "x"]),
    effect=some.sampled_from(["", "NoSchedule", "NoExecute"]),
    toleration_seconds=some.sampled_from([None, 0, 1, 2]),
)


def merged(own: list[Toleration], of_class: list[Toleration]) -> list[Toleration]:
    pod = Pod(spec=PodSpec(tolerations=tuple(own)))
    runtime = RuntimeClass(scheduling=Scheduling(tolerations=tuple(of_class)))
    found = with_runtime(pod, runtime)
    assert isinstance(found, Pod)
    return list(found.spec.tolerations)


def merged_one_by_one(every: list[Toleration]) -> list[Toleration]:
    """Compare each with all others, as Kubernetes does."""
    kept: list[Toleration] = []
    for position, each in enumerate(every):
        later = [other for other in every[position + 1 :] if other != each]
        if not any(classes._covers(other, each) for other in (*kept, *later)):
            kept.append(each)
    return kept


@given(some.lists(TOLERATIONS, max_size=8), some.lists(TOLERATIONS, max_size=4))
def test_tolerations_are_merged_as_if_each_were_compared_with_all(
    own: list[Toleration], of_class: list[Toleration]
) -> None:
    assert merged(own, of_class) == merged_one_by_one([*own, *of_class])


def test_tolerations_that_cover_nothing_do_not_hide_those_that_do() -> None:
    narrow = Toleration(key="a", operator="Equal", value="x", effect="NoSchedule")
    wide = Toleration(key="a", operator="Equal", value="x")
    others = [
        Toleration(key="a", operator="Lt", value="x", toleration_seconds=seconds)
        for seconds in (None, 1)
    ]
    assert merged([narrow, wide, *others], []) == [wide, *others]


@pytest.mark.parametrize(
    "fields",
    [
        lambda n: {"operator": "Exists", "effect": "NoExecute", "toleration_seconds": n},
        lambda n: {"operator": "Equal", "value": str(n)},
        lambda n: {"operator": "Exists", "effect": f"No{n}"},
        lambda n: {"operator": f"Op{n}"},
    ],
)
def test_many_tolerations_are_merged_in_few_comparisons(
    fields: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, covers = 0, classes._covers

    def counted(wide: Toleration, narrow: Toleration) -> bool:
        nonlocal count
        count += 1
        return covers(wide, narrow)

    monkeypatch.setattr(classes, "_covers", counted)
    own = [Toleration(key="a", **fields(number)) for number in range(2000)]
    merged(own, [Toleration(key="b", operator="Exists")])
    assert count <= 16 * 2001
