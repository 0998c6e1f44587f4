"""Objects for tests of controllers, short to write; and a world that they live in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core import Node, Pod, PodCondition
from moorage.api.labels import Selector, SelectorFault, read_selector
from moorage.api.meta import LabelSelector
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Delete, Target, Update
from moorage.controllers import stored_selectors
from moorage.controllers.controller import Controller
from tests.controllers import settling
from tests.controllers.model import Model
from tests.controllers.settling import Settling

NOW = Timestamp.parse("2026-01-01T00:00:00Z")


def thing(api_version: str, kind: str, name: str, **fields: Any) -> Any:
    """Return an object of any kind; `metadata` adds to its metadata."""
    found = CATALOGUE.find(api_version, kind)
    metadata = {"name": name, **fields.pop("metadata", {})}
    if found.namespaced:
        metadata.setdefault("namespace", "default")
    tree = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
    return decode_tree(tree, found.struct).value


def template(app: str = "web", image: str = "web:1", **spec: Any) -> dict[str, Any]:
    """Return a template of pods."""
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def deployment(name: str = "web", *, image: str = "web:1", **spec: Any) -> Any:
    """Return a deployment."""
    body = {
        "selector": {"matchLabels": {"app": name}},
        "template": template(name, image),
        **spec,
    }
    return thing("apps/v1", "Deployment", name, spec=body)


def replica_set(name: str = "web", replicas: int = 3, **spec: Any) -> Any:
    """Return a replica set."""
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name),
        **spec,
    }
    return thing("apps/v1", "ReplicaSet", name, spec=body)


def node(name: str, **spec: Any) -> Node:
    """Return a node."""
    found: Node = thing("v1", "Node", name, spec=spec, metadata={"labels": {"node": name}})
    return found


class World(Settling):
    """Controllers on a server in memory, with pods that a test lets run."""

    def __init__(self, *controllers: Controller) -> None:
        super().__init__(Model(NOW), controllers)

    def settle(self) -> None:
        """Settle, with fewer plans than a run that never rests would take."""
        bound, settling.PLANS_MAX = settling.PLANS_MAX, 2_000
        try:
            super().settle()
        finally:
            settling.PLANS_MAX = bound

    def put(self, *values: Any) -> None:
        """Create objects, and settle."""
        self.model.put(*values)
        self.settle()

    def get(self, struct: type[Any], name: str, namespace: str = "default") -> Any:
        """Return an object."""
        return self.model.get(struct, namespace, name)

    def all(self, struct: type[Any]) -> list[Any]:
        """Return all objects of a kind, by name."""
        return sorted(self.model.objects.list(struct), key=lambda v: v.metadata.name)

    def change(self, value: Any, **spec: Any) -> None:
        """Change the spec of an object, and settle."""
        current = self.model.get(type(value), value.metadata.namespace, value.metadata.name)
        self.model.write(Update(replace(current, spec=replace(current.spec, **spec))))
        self.settle()

    def change_spec_of_pod(self, pod: Pod, **spec: Any) -> None:
        """Change the spec of a pod as the scheduler does, and settle."""
        self.change(pod, **spec)

    def change_metadata(self, value: Any, **metadata: Any) -> None:
        """Change the metadata of an object, and settle."""
        current = self.model.get(type(value), value.metadata.namespace, value.metadata.name)
        changed = replace(current, metadata=replace(current.metadata, **metadata))
        self.model.write(Update(changed))
        self.settle()

    def delete(self, value: Any, propagation: str = "", grace_s: int | None = None) -> None:
        """Delete an object, and settle."""
        target = Target(type(value), value.metadata.namespace, value.metadata.name)
        self.model.write(Delete(target, propagation=propagation, grace_s=grace_s))
        self.settle()

    def report(self, pod: Pod, phase: str, *, ready: bool = False, **status: Any) -> None:
        """Have a node say in which phase a pod is."""
        current = self.model.get(Pod, pod.metadata.namespace, pod.metadata.name)
        condition = PodCondition(
            type="Ready", status="True" if ready else "False", last_transition_time=self.model.now
        )
        said = replace(current.status, phase=phase, conditions=(condition,), **status)
        self.model.write(Update(replace(current, status=said), "status"))

    def run_all(self, pods: Iterable[Pod] | None = None) -> None:
        """Have all pods run and be ready, and settle, until nothing changes any more."""
        for _ in range(100):
            waiting = [
                pod
                for pod in self.all(Pod)
                if pod.status.phase in ("", "Pending") and pod.metadata.deletion_timestamp is None
            ]
            if not waiting:
                return
            for pod in waiting:
                self.report(pod, "Running", ready=True)
            self.settle()
        raise AssertionError("pods are made without end")

    def told(self, reason: str) -> list[str]:
        """Return the messages of the events of a reason."""
        return [each.message for each in self.model.told if each.reason == reason]


def later(seconds: float) -> Timestamp:
    """Return a time after now."""
    return Timestamp(NOW.instant + timedelta(seconds=seconds))


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[LabelSelector]:
    """Return the selectors that controllers read from now on."""
    reads: list[LabelSelector] = []

    def counted(selector: LabelSelector) -> Selector | SelectorFault:
        reads.append(selector)
        return read_selector(selector)

    monkeypatch.setattr(stored_selectors, "read_selector", counted)
    return reads
