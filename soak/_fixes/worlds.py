"""Clusters with pods that get no node: recorded cases, situations, examples of the seeds.

A recorded case of allocation is a node, its classes and slices, and claims. It becomes a world in
three forms: claims that a pod names, templates that a pod names, and templates of a Deployment.
Everything but the pod and its claims is stored in the cluster; claims that an API server would not
take today are stored there, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import ADMIN_NAMESPACE_LABEL
from moorage.hardware.attributes import NumaNodeForm
from moorage.sources.cluster_sources import ClusterSource, FileSource, Profiles, Taker

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = ROOT.parent / "shared" / "corpus"
ALLOCATOR: Final = ("rules", "upstream-table", "search-public", "public")
NAMESPACE: Final = "default"
POD: Final = "pending"
RESOURCE: Final = "resource.k8s.io/v1"
AMOUNTS: Final = {"cpu": "64", "memory": "512Gi", "pods": "110"}
EVERYTHING: Final = Gates.parse("")
_GATES: Final = {
    "AdminAccess": (Gate.DRA_ADMIN_ACCESS,),
    "CompatibilityGroups": (Gate.DRA_DEVICE_COMPATIBILITY_GROUPS,),
    "ConsumableCapacity": (Gate.DRA_CONSUMABLE_CAPACITY,),
    "DerivedAttributes": (Gate.DRA_DERIVED_ATTRIBUTES,),
    "DeviceBindingAndStatus": (Gate.DRA_DEVICE_BINDING_CONDITIONS,),
    "DeviceTaints": (Gate.DRA_DEVICE_TAINTS, Gate.DRA_DEVICE_TAINT_RULES),
    "FractionalCapacityRange": (Gate.DRA_FRACTIONAL_CAPACITY_RANGE,),
    "ListTypeAttributes": (Gate.DRA_LIST_TYPE_ATTRIBUTES,),
    "OptionalNodeOperations": (Gate.DRA_OPTIONAL_NODE_OPERATIONS,),
    "PartitionableDevices": (Gate.DRA_PARTITIONABLE_DEVICES, Gate.DRA_PARTITIONABLE_DEVICES_TYPE),
    "PrioritizedList": (Gate.DRA_PRIORITIZED_LIST,),
}


class Trees(NamedTuple):
    """A source that has objects as trees."""

    name: str
    trees: list[Any]

    def give(self, intake: Taker) -> None:
        """Pass on the objects as they are read from JSON."""
        for tree in self.trees:
            for document in read(json.dumps(tree).encode(), source=self.name, schema=CORE):
                intake.add_document(document)


class Text:
    """A source that has objects as YAML text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def give(self, intake: Taker) -> None:
        """Pass on the objects of the text."""
        for document in read(self._text.encode(), source="-", schema=CORE):
            for item in expand_lists(document):
                intake.add_document(item)


@dataclass(frozen=True)
class World:
    """A cluster, manifests with pods, and the gates that are on."""

    name: str
    cluster: tuple[ClusterSource, ...]
    manifests: tuple[ClusterSource, ...]
    gates: Gates
    namespace: str = NAMESPACE

    def __str__(self) -> str:
        return self.name


# --- recorded cases of allocation -----------------------------------------------------------


class Form(StrEnum):
    """How the claims of a case are written."""

    CLAIM = "claim"
    TEMPLATE = "template"
    DEPLOYMENT = "deployment"
    STORED = "stored"


class RecordedCase:
    """A case of allocation that Kubernetes could not allocate."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @staticmethod
    def is_unsatisfiable(fields: Mapping[str, Any]) -> bool:
        """Return whether a line of the corpus has a case that cannot be allocated."""
        expected = fields.get("expectExperimental") or fields["expect"]
        outcome = expected["outcome"]
        if outcome == "timeout":
            outcome = expected["trueOutcome"]
        return bool(outcome != "allocated")

    def world(self, form: Form) -> World:
        """Return the case as a cluster with a pod."""
        cluster = [*self._around(), *self._allocated()]
        claims, pod = list(self._claims()), self._pod(form)
        if form is Form.STORED:
            cluster += map(_stored, claims)
            claims = []
        elif form is not Form.CLAIM:
            claims = list(map(_template, claims))
        return World(
            f"{self._fields['id']} ({form})",
            (Trees("cluster.json", cluster),),
            (Trees("manifests.json", [*claims, pod]),),
            self._gates(),
        )

    def _gates(self) -> Gates:
        """Return all gates except those of features that the case has off."""
        features = set(self._fields["features"])
        off = {gate for name, gates in _GATES.items() if name not in features for gate in gates}
        return Gates(EVERYTHING.on - off)

    def _around(self) -> Iterator[dict[str, Any]]:
        fields = self._fields
        labels = {ADMIN_NAMESPACE_LABEL: "true"}
        yield _stored(_object("v1", "Namespace", {"metadata": {"name": NAMESPACE}}, labels=labels))
        node = _object("v1", "Node", fields["node"])
        status = node.get("status") or {}
        node["status"] = {**status, "capacity": AMOUNTS, "allocatable": AMOUNTS}
        yield _stored(node)
        for tree in fields["classes"] or ():
            yield _stored(_object(RESOURCE, "DeviceClass", tree))
        seen: set[str] = set()
        for tree in fields["slices"] or ():
            made = _object(RESOURCE, "ResourceSlice", tree)
            while made["metadata"]["name"] in seen:
                made["metadata"]["name"] += "x"
            seen.add(made["metadata"]["name"])
            yield _stored(made)

    def _allocated(self) -> Iterator[dict[str, Any]]:
        for number, tree in enumerate(self._fields["allocatedClaims"] or ()):
            made = _object(RESOURCE, "ResourceClaim", tree)
            made["metadata"] |= {"namespace": "others", "name": f"held-{number}"}
            yield _stored(made)

    def _claims(self) -> Iterator[dict[str, Any]]:
        for number, tree in enumerate(self._fields["claims"]):
            made = _object(RESOURCE, "ResourceClaim", tree)
            yield made | {"metadata": {"namespace": NAMESPACE, "name": f"claim-{number}"}}

    def _pod(self, form: Form) -> dict[str, Any]:
        is_named = form in (Form.CLAIM, Form.STORED)
        field = "resourceClaimName" if is_named else "resourceClaimTemplateName"
        numbers = range(len(self._fields["claims"]))
        spec = {
            "containers": [{"name": "main", "image": "registry.example.com/app:1"}],
            "resourceClaims": [{"name": f"c{n}", field: f"claim-{n}"} for n in numbers],
        }
        metadata = {"name": POD, "namespace": NAMESPACE}
        if form is not Form.DEPLOYMENT:
            return _object("v1", "Pod", {"metadata": metadata, "spec": spec})
        labels = {"app": POD}
        template = {"metadata": {"labels": labels}, "spec": spec}
        wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return _object("apps/v1", "Deployment", {"metadata": metadata, "spec": wanted})


def _object(
    version: str, kind: str, tree: Mapping[str, Any], *, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": version, "kind": kind, **json.loads(json.dumps(tree))}
    if labels is not None:
        made["metadata"]["labels"] = labels
    return made


def _stored(tree: dict[str, Any]) -> dict[str, Any]:
    """Return an object as a server has it."""
    metadata = tree["metadata"]
    name = "/".join((tree["kind"], metadata.get("namespace", ""), metadata["name"]))
    return tree | {"metadata": {**metadata, "uid": f"uid-of-{name}"}}


def _template(claim: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": claim["metadata"],
        "spec": {"spec": claim["spec"]},
    }


def recorded_cases() -> Iterator[RecordedCase]:
    """Yield the cases of the corpus that cannot be allocated; none where it is not there."""
    for name in ALLOCATOR:
        path = CORPUS / "allocator" / f"{name}.jsonl"
        if not path.exists():
            continue
        with path.open(encoding="utf-8") as lines:
            for fields in map(json.loads, lines):
                if RecordedCase.is_unsatisfiable(fields):
                    yield RecordedCase(fields)


# --- files ----------------------------------------------------------------------------------


def file_worlds() -> Iterator[World]:
    """Yield the situations, ours and the recorded ones, and the examples of the seeds."""
    gates = EVERYTHING
    for path in sorted((ROOT / "tests" / "insight" / "situations").glob("*.yaml")):
        yield World(f"situation {path.stem}", (), (_files(path),), gates, "team")
    for path in sorted((CORPUS / "situations").glob("*/expect.json")):
        yield _situation(path)
    stories = ROOT / "examples" / "stories"
    seeds = sorted((ROOT / "examples" / "seeds").glob("*.yaml"))
    for folder in sorted(path.parent for path in stories.glob("*/cluster.yaml")):
        cluster = (_files(folder / "cluster.yaml"),)
        own = [each for each in sorted(folder.glob("*.yaml")) if each.name != "cluster.yaml"]
        for path in own:
            yield World(f"story {folder.name}/{path.name}", cluster, (_files(path),), gates)
        for path in seeds:
            yield World(f"seed {path.name} on {folder.name}", cluster, (_files(path),), gates)


def _situation(path: Path) -> World:
    folder, expected = path.parent, json.loads(path.read_text(encoding="utf-8"))
    cluster: list[ClusterSource] = []
    if (folder / "cluster.yaml").exists():
        cluster.append(_files(folder / "cluster.yaml"))
    if expected["profile"]:
        cluster.append(Profiles((expected["profile"],), NumaNodeForm.SCALAR))
    namespace = expected["pod"].split("/")[0]
    manifests = (_files(folder / "pods.yaml"),)
    return World(f"situation {folder.name}", tuple(cluster), manifests, EVERYTHING, namespace)


def _files(path: Path) -> FileSource:
    return FileSource((str(path),), recursive=False, schema=CORE)
