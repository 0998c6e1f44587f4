"""A server in memory with controllers of claims on it, and objects to put there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.resource.v1 import (
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, Patch, RecordEvent, Target
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.resource_claim_releases import ClaimReleaseController
from moorage.controllers.resource_claims import GroupClaimController, PodClaimController
from tests.claims import parts
from tests.controllers.model import Model
from tests.controllers.settling import Settling

Tree = dict[str, Any]

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
ALL = Gates.parse()


def template(name: str = "t", *requests: Tree) -> ResourceClaimTemplate:
    made = parts.template(*requests or ({"name": "d", "exactly": {"deviceClassName": "c"}},))
    return replace(made, metadata=ObjectMeta(name=name, namespace="ns"))


def pod(name: str = "p", **fields: Any) -> Pod:
    """Return a pod without a uid; the server gives it one."""
    made = parts.pod(name, **fields)
    return replace(made, metadata=replace(made.metadata, uid=""))


def group(name: str = "g", **fields: Any) -> PodGroup:
    """Return a group without a uid; the server gives it one."""
    made = parts.group(name, **fields)
    return replace(made, metadata=replace(made.metadata, uid=""))


def named_claim(name: str = "shared") -> ResourceClaim:
    """Return a claim that a user makes."""
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="ns"))


class Owners(Controller):
    """Deletes claims whose owners are gone, as the garbage collector does."""

    name = "owners"
    kinds = (ResourceClaim, Pod, PodGroup)

    def add_indexes(self, objects: Indexer) -> None:
        self._objects = objects

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        for claim in objects.list(ResourceClaim):
            if claim.metadata.owner_references:
                yield claim.metadata.namespace, claim.metadata.name

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        claim = objects.get(ResourceClaim, *key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        if not any(self._is_there(key[0], each) for each in claim.metadata.owner_references):
            yield Delete(Target.of(claim))

    def _is_there(self, namespace: str, owner: OwnerReference) -> bool:
        struct: type[Any] = Pod if owner.kind == "Pod" else PodGroup
        found = self._objects.get(struct, namespace, owner.name)
        return found is not None and found.metadata.uid == owner.uid


class Scene(Settling):
    """The controllers of claims, and more if asked for."""

    def __init__(self, *others: Controller, gates: Gates = ALL, own: Sequence[Controller] = ()):
        loops = own or (
            PodClaimController(gates),
            GroupClaimController(gates),
            ClaimReleaseController(gates),
        )
        super().__init__(Model(NOW), [*loops, *others])

    def put(self, *values: Any) -> None:
        """Create objects, and settle."""
        self.model.put(*values)
        self.settle()

    def patch(self, struct: type[Any], name: str, part: str = "", **body: Any) -> None:
        """Change fields of an object, and settle."""
        self.model.write(Patch(Target(struct, "ns", name), body, part))
        self.settle()

    def phase(self, name: str, phase: str) -> None:
        """Set the phase of a pod, as a kubelet would, and settle."""
        self.patch(Pod, name, "status", status={"phase": phase})

    def delete(self, struct: type[Any], name: str, grace_s: int | None = 0) -> None:
        """Delete an object, and settle."""
        self.model.write(Delete(Target(struct, "ns", name), grace_s=grace_s))
        self.settle()

    def allocate(
        self, name: str, *pods: str, results: Sequence[Tree] = (), group: str = ""
    ) -> None:
        """Allocate a claim and reserve it, as the scheduler would, and settle."""
        reserved = [self._reservation(Pod, "pods", "", each) for each in pods]
        if group:
            reserved.append(self._reservation(PodGroup, "podgroups", "scheduling.k8s.io", group))
        status = {
            "allocation": {"devices": {"results": list(results or [result()])}},
            "reservedFor": reserved,
        }
        metadata = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
        target = Target(ResourceClaim, "ns", name)
        self.model.write(Patch(target, {"metadata": metadata}))
        self.model.write(Patch(target, {"status": status}, "status"))
        self.settle()

    def _reservation(self, struct: type[Any], resource: str, api_group: str, name: str) -> Tree:
        uid = self.model.get(struct, "ns", name).metadata.uid
        return {"apiGroup": api_group, "resource": resource, "name": name, "uid": uid}

    def bind(self, name: str, node: str = "n") -> None:
        """Give a pod a node, as the scheduler would, and settle."""
        self.patch(Pod, name, spec={"nodeName": node})

    def pod(self, name: str = "p") -> Pod:
        found = self.model.get(Pod, "ns", name)
        assert isinstance(found, Pod)
        return found

    def claims(self) -> list[ResourceClaim]:
        found = self.model.objects.list(ResourceClaim)
        return sorted(found, key=lambda each: each.metadata.name)

    def claim(self, name: str = "") -> ResourceClaim:
        """Return a claim, or the only one."""
        if name:
            found = self.model.get(ResourceClaim, "ns", name)
            assert isinstance(found, ResourceClaim)
            return found
        (found,) = self.claims()
        return found

    def named(self, pod: str = "p") -> dict[str, str | None]:
        """Return the claims that the status of a pod names, by entry."""
        statuses = self.pod(pod).status.resource_claim_statuses or ()
        return {each.name: each.resource_claim_name for each in statuses}

    def told(self) -> list[RecordEvent]:
        return self.model.told

    def messages(self) -> list[tuple[str, str]]:
        return [(each.reason, each.message) for each in self.model.told]

    def is_at_rest(self) -> bool:
        """Tell whether no plan of any object wants a write, after a look at everything."""
        for number, controller in enumerate(self.controllers):
            for struct in controller.kinds:
                for value in list(self.model.objects.list(struct)):
                    keys = controller.keys(self.model.objects, ObjectChange(value, value))
                    # Also of those that the controller did not find worth a look.
                    is_filtered = isinstance(
                        controller, PodClaimController | ClaimReleaseController
                    )
                    is_own = is_filtered and struct is controller.kinds[0]
                    own = [object_key(value)] if is_own else []
                    for key in {*keys, *own}:
                        if any(
                            not isinstance(w, RecordEvent) for w in self.plan(number, key).writes
                        ):
                            return False
        return True


def result(device: str = "d0", **fields: Any) -> Tree:
    """Return what a request got."""
    return {"request": "d", "driver": "dra", "pool": "pool", "device": device, **fields}


def slice_of(*devices: Tree, name: str = "s", generation: int = 1, count: int = 1) -> ResourceSlice:
    spec = {
        "driver": "dra",
        "nodeName": "n",
        "pool": {"name": "pool", "generation": generation, "resourceSliceCount": count},
        "devices": list(devices),
    }
    return decode_tree({"metadata": {"name": name}, "spec": spec}, ResourceSlice).value


def rule(name: str = "r", effect: str = "NoExecute", **selector: Any) -> DeviceTaintRule:
    taint = {"key": "broken", "effect": effect, "timeAdded": str(NOW)}
    spec = {"deviceSelector": selector, "taint": taint}
    return decode_tree({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule).value
