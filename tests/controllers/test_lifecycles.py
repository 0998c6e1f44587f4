"""Recorded lives of claims: what the controllers do, with the scheduler's part taken as recorded.

After each step of a recording our controllers settle; then pods get the nodes, and claims the
allocations and reservations, that the recorded scheduler gave them, until nothing changes. What
is compared is what controllers decide: which claims there are, whether they are allocated,
protected, being deleted and for whom they are reserved, which claims pods name, which pods are
gone or marked, the conditions of rules, answers about pools, and the controllers' events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from conformance._recordings import Names
from moorage.api.catalogue import CATALOGUE, to_hub
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim
from moorage.api.resource.v1alpha3 import ResourcePoolStatusRequest
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.controllers.device_taint_eviction import DeviceTaintEvictionController
from moorage.controllers.pool_status import PoolStatusRequestController
from tests.controllers.scenes import ALL, Owners, Scene
from tests.corpus import corpus

Tree = dict[str, Any]
NAMESPACE = "namespace"

# What decides these is not a controller of claims: admission, quota, namespaces, the protection
# of groups, a second kubelet, or authorization.
OTHERS = {
    "admin-access",
    "dry-run",
    "immutable",
    "namespace-deleted",
    "podgroup-deleted-first",
    "quota-count",
    "quota-extended",
    "status-authz",
}
SCENARIOS = [
    "binding-deleted",
    "binding-failure",
    "binding-success",
    "bypass-generated",
    "bypass-named",
    "claim-missing",
    "claim-template-edited",
    "class-deleted",
    "consumable",
    "derived",
    "driver-taint",
    "ext-explicit",
    "ext-init-sidecar",
    "ext-mixed-node",
    "force-delete",
    "generated-claim-deleted",
    "node-deleted",
    "podgroup-claim",
    "pool-generation",
    "pool-status",
    "prioritized-list",
    "priority",
    "reserved-named-succeeded",
    "scheduling-gate",
    "shared-claim",
    "slice-removed",
    "taintrule-noexecute",
    "taintrule-none",
    "taintrule-selective",
    "template-complete",
    "template-failed",
    "two-claims",
    "wake-on-free",
]
# Kubernetes makes a deleted claim anew only when its pod changes; ours at once.
BETTER = {("generated-claim-deleted", 2)}


class Replay(Scene):
    """A recording played to our controllers."""

    def __init__(self) -> None:
        super().__init__(
            DeviceTaintEvictionController(ALL), PoolStatusRequestController(ALL), Owners()
        )
        self.model.put(*(Node(metadata=ObjectMeta(name=name)) for name in ("node-a", "node-b")))
        self.names = Names()

    # --- steps ----------------------------------------------------------------------------------

    def do(self, step: Tree) -> None:
        do = step["do"]
        match do["verb"]:
            case "create":
                for tree in [do["object"]] if "object" in do else do["objects"]:
                    self.model.write(Create(self._object(tree)))
            case "delete":
                self.model.write(
                    Delete(self._target(do["target"]), grace_s=do.get("gracePeriodSeconds"))
                )
            case "patch" | "patch-status":
                part = "status" if do["verb"] == "patch-status" else ""
                self.model.write(Patch(self._target(do["target"]), self._own(do["patch"]), part))
        self.settle()

    def _object(self, tree: Tree) -> Any:
        tree = self._own(tree)
        kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
        value: Any = decode_tree(tree, kind.struct).value
        value = to_hub(value, kind)
        if kind.namespaced:
            value = replace(value, metadata=replace(value.metadata, namespace=NAMESPACE))
        if isinstance(value, DeviceTaintRule) and value.spec.taint.time_added is None:
            taint = replace(value.spec.taint, time_added=self.model.now)
            value = replace(value, spec=replace(value.spec, taint=taint))
        return value

    def _target(self, target: Tree) -> Target:
        kinds = [kind for kind in CATALOGUE if kind.name == target["kind"]]
        hub = next(kind for kind in kinds if kind.api_version == kind.hub_version)
        name = str(self.names.ours.get(target["name"], target["name"]))
        return Target(hub.struct, NAMESPACE if hub.namespaced else "", name)

    def _own(self, tree: Any) -> Any:
        """Return a tree with our names for the recorded ones."""
        return self.names.own(tree, self._uid)

    def _uid(self, kind: str, name: str) -> str:
        found = self.model.get(*_place(self._target({"kind": kind, "name": name})))
        return str(found.metadata.uid)

    # --- the scheduler's part -------------------------------------------------------------------

    def schedule(self, state: Tree) -> None:
        """Do what the recorded scheduler did, until nothing is left of it."""
        self._learn_names()
        for theirs, claim in (state.get("resourceclaims") or {}).items():
            annotations = claim["metadata"].get("annotations", {})
            if "resource.kubernetes.io/extended-resource-claim" in annotations:
                self._make_special(theirs, claim, state)
            if claim.get("status", {}).get("allocation"):
                self._allocate(theirs, claim)
        for name, pod in (state.get("pods") or {}).items():
            ours = self.model.get(Pod, NAMESPACE, name)
            node = pod["spec"].get("nodeName", "")
            if ours is not None and node != ours.spec.node_name:
                target = Target(Pod, NAMESPACE, name)
                self.model.write(Patch(target, {"spec": {"nodeName": node}}))
        self.settle()
        self._learn_names()

    def _learn_names(self) -> None:
        """Number our claims as the recording does."""
        for claim in self.model.objects.list(ResourceClaim):
            self.names.learn(claim.metadata.generate_name, claim.metadata.name)

    def _make_special(self, theirs: str, claim: Tree, state: Tree) -> None:
        if theirs in self.names.ours:
            return
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        pod = self.model.get(Pod, NAMESPACE, owner)
        tree = {**claim, "status": {}}
        value = decode_tree(tree, ResourceClaim).value
        metadata = replace(
            value.metadata,
            name="",
            namespace=NAMESPACE,
            finalizers=(),
            owner_references=(replace(value.metadata.owner_references[0], uid=pod.metadata.uid),),
        )
        made = self.model.write(Create(replace(value, metadata=metadata))).metadata
        self.names.learn(made.generate_name, made.name)
        status = state["pods"][owner]["status"]["extendedResourceClaimStatus"]
        body = {"status": {"extendedResourceClaimStatus": self._own(status)}}
        self.model.write(Patch(Target(Pod, NAMESPACE, owner), body, "status"))

    def _allocate(self, theirs: str, claim: Tree) -> None:
        ours = self.model.get(ResourceClaim, NAMESPACE, self.names.ours.get(theirs, theirs))
        if ours is None or ours.status.allocation is not None:
            return  # Reservations of what is allocated already are ours to make and to keep.
        status = claim["status"]
        reserved = [
            {**each, "uid": self._uid(_KINDS[each["resource"]], each["name"])}
            for each in status.get("reservedFor", [])
        ]
        target = Target.of(ours)
        finalizers = claim["metadata"].get("finalizers", [])
        self.model.write(Patch(target, {"metadata": {"finalizers": finalizers}}))
        body = {"allocation": status["allocation"], "reservedFor": reserved}
        self.model.write(Patch(target, {"status": body}, "status"))


_KINDS = {"pods": "Pod", "podgroups": "PodGroup"}


def _place(target: Target) -> tuple[type[Any], str, str]:
    return target.struct, target.namespace, target.name


# --- what is compared -----------------------------------------------------------------------------


def theirs(state: Tree) -> Tree:
    """Return what the recording says of what controllers decide."""
    return {
        "claims": {
            name: _claim(claim) for name, claim in (state.get("resourceclaims") or {}).items()
        },
        "pods": {name: _pod(pod) for name, pod in (state.get("pods") or {}).items()},
        "rules": _statuses(state.get("devicetaintrules")),
        "requests": _statuses(state.get("resourcepoolstatusrequests")),
        "events": _distinct(
            [each["reason"], each["message"], each["object"]]
            for each in state.get("events") or []
            if each["from"] in ("resource_claim", "device-taint-eviction-controller")
        ),
    }


def ours(replay: Replay) -> Tree:
    """Return the same of our objects, in recorded names."""
    objects = replay.model.objects

    def trees(struct: type[Any]) -> Tree:
        return {each.metadata.name: to_tree(each) for each in objects.list(struct)}

    events = (
        [each.reason, each.message, f"{each.about.kind}/{each.about.metadata.name}"]
        for each in replay.model.told
    )
    found = {
        "claims": {name: _claim(claim) for name, claim in trees(ResourceClaim).items()},
        "pods": {name: _pod(pod) for name, pod in trees(Pod).items()},
        "rules": _statuses(trees(DeviceTaintRule)),
        "requests": _statuses(trees(ResourcePoolStatusRequest)),
        "events": _distinct(events),
    }
    renamed: Tree = replay.names.recorded(found)
    return renamed


def _distinct(events: Iterable[list[str]]) -> list[list[str]]:
    return [list(each) for each in sorted({tuple(each) for each in events})]


def _claim(tree: Tree) -> Tree:
    metadata, status = tree["metadata"], tree.get("status") or {}
    return {
        "finalizers": metadata.get("finalizers", []),
        "is deleting": "deletionTimestamp" in metadata,
        "is allocated": bool(status.get("allocation")),
        "reserved for": sorted(each["name"] for each in status.get("reservedFor") or []),
    }


def _pod(tree: Tree) -> Tree:
    status = tree["status"]
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    disruption = conditions.get("DisruptionTarget", {})
    return {
        "is deleting": "deletionTimestamp" in tree["metadata"],
        "claims": status.get("resourceClaimStatuses") or [],
        "disruption": [disruption.get("reason"), disruption.get("message")],
    }


def _statuses(trees: Tree | None) -> Tree:
    found = {name: tree.get("status") or {} for name, tree in (trees or {}).items()}
    for status in found.values():
        for each in status.get("conditions") or []:
            each.pop("lastTransitionTime", None)
    return found


def _without(tree: Tree, varied: list[Tree]) -> Tree:
    """Return what is left to compare where the recordings differ among themselves."""
    for each in varied:
        match each["path"].split("/"):
            case ["resourceclaims", name, "status", "reservedFor"]:
                if name in tree["claims"]:
                    tree["claims"][name]["reserved for"] = []
            case ["events", *_]:
                tree["events"] = []
    return tree


@pytest.mark.parametrize("name", SCENARIOS)
def test_controllers_do_what_those_of_kubernetes_did(name: str) -> None:
    recording = json.loads(corpus("lifecycle", f"{name}.json").read_text())
    replay = Replay()
    for number, step in enumerate(recording["steps"]):
        replay.model.told.clear()
        if step["expectError"] is None:
            replay.do(step)
        replay.schedule(step["state"])
        replay.advance(step["settle_s"])
        varied = step.get("varied") or []
        wanted, found = _without(theirs(step["state"]), varied), _without(ours(replay), varied)
        if (name, number) not in BETTER:
            assert found == wanted, f"step {number}"
    assert replay.is_at_rest()


def test_every_recording_is_played_or_left_to_others() -> None:
    names = {path.stem for path in corpus("lifecycle").glob("*.json")}
    # Which pods of a group are scheduled, and when, is the scheduler's business.
    others = OTHERS | {name for name in names if name.startswith("group-")}
    assert names == others | set(SCENARIOS)
