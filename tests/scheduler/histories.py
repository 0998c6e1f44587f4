"""Random histories of clusters: objects that come, change and go, pods that are given nodes.

A history runs on one cluster that is kept up to date. A book beside it has the objects that are
there; a new cluster made from the book, in any order, must answer every pod alike.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.reservation import Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Attempt, Outcome, Pending, Placed, attempt, schedule
from tests.scheduler.makers import ZONE, node, pod
from tests.scheduler.scenes import (
    GPU,
    Object,
    claim,
    cluster,
    device_class,
    new_names,
    only_on,
    slice_of,
    taint_rule,
    user,
    wanting,
)

NODES = ("node-1", "node-2", "node-3", "node-4")
CLAIMS = ("c-0", "c-1", "c-2", "c-3", "c-4")
RESOURCE = "example.com/gpu"


# --- what there can be --------------------------------------------------------------------------


def some_node(random: Random) -> Node:
    name = random.choice(NODES)
    allocatable = {"cpu": random.choice(["2", "4", "4"]), "memory": "8Gi", "pods": "6"}
    if random.random() < 0.2:
        allocatable[RESOURCE] = random.choice(["0", "1"])
    return node(
        name,
        labels={"kubernetes.io/hostname": name, ZONE: random.choice("ab")},
        allocatable=allocatable,
        taints=random.choice([[], [], [], [{"key": "k", "effect": "NoSchedule"}]]),
        status={"declaredFeatures": random.choice([[], ["DRAOptionalNodeOperations"]])},
        unschedulable=random.random() < 0.1,
    )


def some_slice(random: Random) -> ResourceSlice:
    number = random.randint(0, 3)
    more: dict[str, Any] = {}
    if random.random() < 0.3:
        amount = random.choice(["1", "2"])
        more = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": amount}}}}
    if random.random() < 0.2:
        more["bindsToNode"] = True
    if random.random() < 0.7:
        return slice_of(random.choice(NODES), number, **more)
    in_zone = {"key": ZONE, "operator": "In", "values": [random.choice("ab")]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}
    where: dict[str, Any] = random.choice([{"allNodes": True}, {"nodeSelector": terms}])
    return slice_of("net", number, where=where, **more)


def some_class(random: Random) -> DeviceClass:
    spec: dict[str, Any] = {}
    if random.random() < 0.2:
        expression = random.choice(["false", f'device.driver == "{GPU}"'])
        spec["selectors"] = [{"cel": {"expression": expression}}]
    if random.random() < 0.5:
        spec["extendedResourceName"] = RESOURCE
    return device_class(random.choice(["gpu", "gpu", "other"]), **spec)


def some_rule(random: Random) -> DeviceTaintRule:
    selector = random.choice([{}, {"driver": GPU}, {"pool": random.choice([*NODES, "net"])}])
    return taint_rule(random.choice(["rule-1", "rule-2"]), **selector)


def some_claim(random: Random, taken: set[tuple[str, str]]) -> ResourceClaim:
    name = random.choice(CLAIMS)
    if random.random() < 0.3:
        pool, device = random.choice([*NODES, "net"]), f"gpu-{random.randint(0, 2)}"
        if (pool, device) not in taken:
            return claim(
                name,
                has=[(pool, device)],
                at=None if pool == "net" else only_on(pool),
                reserved=random.choice([[], [], ["someone"]]),
            )
    request = wanting(random.choice([1, 1, 2]))
    if random.random() < 0.3:
        alternatives = [
            {"name": f"n{count}", "deviceClassName": "gpu", "allocationMode": "ExactCount"}
            | {"count": count}
            for count in (2, 1)
        ]
        request = {"name": "gpu", "firstAvailable": alternatives}
    return claim(name, request)


def pods(name: str) -> list[Pod]:
    """Return pods of all sorts, all with one name."""
    labels = {"app": "web"}
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    tolerating = [{"key": "k", "operator": "Exists"}]
    one = {"cpu": "1"}
    return [
        pod(name, requests=one),
        pod(name, requests={"cpu": "3"}, tolerations=tolerating, priority=10),
        pod(name, requests=one, nodeSelector={ZONE: "a"}, labels=labels),
        pod(name, requests=one, affinity=apart, labels=labels),
        pod(name, requests=one, affinity=near),
        pod(name, requests=one, topologySpreadConstraints=[spread], labels=labels),
        pod(name, requests=one, ports=[80], priority=5),
        pod(name, requests={RESOURCE: "1"}),
        pod(name, requests={RESOURCE: "1", "cpu": "2"}, priority=10, preemptionPolicy="Never"),
        user(name, "c-0"),
        user(name, "c-0", "c-1", requests=one),
        user(name, "c-1", requests=one, priority=10),
        user(name, "c-2", "c-2", requests={"cpu": "2"}),
        user(name, "c-3", requests={RESOURCE: "1"}),
        user(name, "c-4", tolerations=tolerating, affinity=apart),
        user(name, "c-4", nodeName="node-2"),
    ]


# --- a history ----------------------------------------------------------------------------------


class History:
    """A cluster, and the book of what is in it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.cluster = cluster()
        self.counts: Counter[str] = Counter()
        self._names = new_names()
        self._book: dict[tuple[str, str], Object] = {}
        self._pods: dict[str, Pod] = {}
        self._reserved: list[Reservation] = []
        self._made = 0
        self._put("class", device_class(extendedResourceName=RESOURCE))
        for _ in range(4):
            self._put("node", some_node(random))
            self._put("slice", some_slice(random))
        for name in CLAIMS:
            self.cluster.put_claim(claim(name, wanting(random.choice([1, 1, 2]))))

    def step(self) -> None:
        """Change something."""
        kind = self.random.choice([*STEPS])
        self.counts[kind] += 1
        STEPS[kind](self)

    def fresh(self) -> Cluster:
        """Return a cluster made anew from the same objects, in some other order."""
        objects = [*self._book.values(), *self.cluster.claims.values(), *self._pods.values()]
        self.random.shuffle(objects)
        return cluster(*objects)

    def check(self) -> None:
        """Compare the cluster with one that is made anew."""
        other = self.fresh()
        for number, one in enumerate(pods("probe")):
            expected, actual = (
                described(schedule(other, one)),
                described(schedule(self.cluster, one)),
            )
            assert actual == expected, f"pod {number}:\n  kept: {actual}\n  anew: {expected}"
            self.counts["fits" if "node" in actual else "pending"] += 1
            if actual.get("preemption"):
                self.counts["preempts"] += 1
                self._check_preemption(one, *actual["preemption"])

    def _check_preemption(self, one: Pod, where: str, victims: list[str]) -> None:
        """See that the pod would really get the node once the victims have left."""
        other = self.fresh()
        for victim in [each for each in self._pods.values() if each.metadata.name in victims]:
            other.remove_pod(victim)
        ready = attempt(other, one)
        assert isinstance(ready, Attempt)
        assert where in ready.nodes_by_score(), f"{where} does not do without {victims}"

    # --- steps ------------------------------------------------------------------------------------

    def put(self) -> None:
        """Put an object that is not a claim."""
        kind = self.random.choice(KINDS)
        self._put(kind, MAKERS[kind](self.random))

    def _put(self, kind: str, value: Any) -> None:
        self._book[kind, value.metadata.name] = value
        getattr(self.cluster, f"put_{kind}")(value)

    def remove(self) -> None:
        """Remove an object that is not a claim."""
        kind, name = self.random.choice(sorted(self._book) or [("", "")])
        is_rare = kind == "class" and self.random.random() < 0.8
        if kind and not is_rare:
            del self._book[kind, name]
            getattr(self.cluster, f"remove_{kind}")(name)

    def put_claim(self) -> None:
        """Put a claim, but never in place of one that a pod was given."""
        found = some_claim(self.random, taken(self.cluster))
        if not self._is_reserved(found.metadata.name):
            self.cluster.put_claim(found)

    def remove_claim(self) -> None:
        """Remove a claim that no pod was given."""
        name = self.random.choice(CLAIMS)
        if not self._is_reserved(name):
            self.cluster.remove_claim("default", name)

    def put_pod(self) -> None:
        """Put a pod on a node, which may not be there."""
        self._made += 1
        where, requests = self.random.choice(NODES), {"cpu": "1"}
        one = pod(f"other-{self._made % 5}", requests=requests, nodeName=where, priority=1)
        self._pods[one.metadata.uid] = one
        self.cluster.put_pod(one)

    def remove_pod(self) -> None:
        """Remove a pod that was put."""
        name = f"default/other-{self.random.randint(0, 4)}"
        if name in self._pods:
            self.cluster.remove_pod(self._pods.pop(name))

    def reserve(self) -> None:
        """Give a pod a node, if there is one; and see that this could be undone."""
        self._made += 1
        one = self.random.choice(pods(f"p-{self._made}"))
        outcome = schedule(self.cluster, one)
        if not isinstance(outcome, Placed):
            return
        before, holds = dict(self.cluster.claims), dict(self.cluster.assumed_claims)
        answer = described(outcome)
        release(self.cluster, reserve(self.cluster, outcome, self._names))
        assert self.cluster.claims == before, "claims are as they were"
        assert self.cluster.assumed_claims == holds
        again = schedule(self.cluster, one)
        assert described(again) == answer, "the pod is answered as before"
        assert isinstance(again, Placed)
        found = reserve(self.cluster, again, self._names)
        self._pods[one.metadata.uid] = found.pod
        self._reserved.append(found)
        self.counts["reserved"] += 1

    def release(self) -> None:
        """Take back what some pod was given, not only the last one."""
        if self._reserved:
            found = self._reserved.pop(self.random.randrange(len(self._reserved)))
            del self._pods[found.pod.metadata.uid]
            release(self.cluster, found)

    def _is_reserved(self, name: str) -> bool:
        return any(name == each.metadata.name for one in self._reserved for each in one.claims)


MAKERS: dict[str, Any] = {
    "node": some_node,
    "slice": some_slice,
    "class": some_class,
    "taint_rule": some_rule,
}

# Changes of classes make everything be found out anew, so they are rare here.
KINDS = (*["node", "slice", "slice", "taint_rule"] * 3, "class")

STEPS: dict[str, Any] = {
    "put": History.put,
    "put one more": History.put,
    "put another claim": History.put_claim,
    "put claim": History.put_claim,
    "put pod": History.put_pod,
    "remove": History.remove,
    "remove claim": History.remove_claim,
    "remove pod": History.remove_pod,
    "reserve": History.reserve,
    "reserve one more": History.reserve,
    "release": History.release,
}


def run_history(random: Random, *, steps: int, check_every: int) -> Counter[str]:
    """Run a history and return what there was in it."""
    history = History(random)
    for number in range(steps):
        history.step()
        if number % check_every == 0:
            history.check()
    history.check()
    return history.counts


# --- answers ------------------------------------------------------------------------------------


def taken(made: Cluster) -> set[tuple[str, str]]:
    """Return the devices that claims have."""
    return {
        (result.pool, result.device)
        for each in made.claims.values()
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    }


def described(outcome: Outcome) -> dict[str, Any]:
    """Return an answer in values that can be compared."""
    match outcome:
        case Placed(node=where, allocation=allocation):
            new = allocation.allocated
            results = () if new is None else new.results(lambda: "share")
            return {
                "node": where,
                "devices": results,
                "special": allocation.special and allocation.special.spec,
                "resources": allocation.node_resources,
            }
        case Pending(preemption=found, deallocation=gone):
            return {
                "reason": outcome.reason,
                "message": outcome.message,
                "refusals": outcome.diagnosis.node_to_status,
                "preemption": found and (found.node, [each.name for each in found.victims]),
                "deallocation": gone and (gone.claim, gone.is_deleted),
            }
