"""Random histories of a live cluster: what comes, changes and goes, and a scheduler that follows.

At rest, no pod waits that the pure cycle would place, and no device has two owners.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from msgspec.structs import replace

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from moorage.api.scheduling import PodGroup
from moorage.client.writes import Write
from moorage.scheduler.live import Backoff, SchedulerConfig
from moorage.scheduler.scheduling_cycle import Placed, schedule
from tests.scheduler.histories import (
    CLAIMS,
    RESOURCE,
    pods,
    some_class,
    some_node,
    some_rule,
    some_slice,
)
from tests.scheduler.live.fakeserver import FakeServer, ServerError
from tests.scheduler.live.harness import Rig, check_bound, check_devices
from tests.scheduler.makers import pod
from tests.scheduler.scenes import claim, device_class, group, user, wanting

NEVER_S = 1e9
MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}


class LiveHistory:
    """A server, a scheduler, and what happens to them."""

    def __init__(self, random: Random, *, faults: float = 0.0, schedulers: int = 1) -> None:
        self.random = random
        self.counts: Counter[str] = Counter()
        self.server = FakeServer()
        self.server.put(device_class(extendedResourceName=RESOURCE))
        for _ in range(4):
            self.server.put(some_node(random), some_slice(random))
        for name in CLAIMS:
            self.server.put(claim(name, wanting(random.choice([1, 1, 2]))))
        self._faults = faults
        self._made = 0
        self.rigs = [self._new_rig() for _ in range(schedulers)]

    def _new_rig(self) -> Rig:
        # Nothing is tried only because it waited long: what can help it must wake it.
        rig = Rig(self.server, SchedulerConfig(backoff=Backoff(parked_most_s=NEVER_S)))
        rig.trouble = self._trouble
        return rig

    def _trouble(self, write: Write) -> tuple[ServerError, bool] | None:
        del write
        if self.random.random() >= self._faults:
            return None
        code = self.random.choice([403, 409, 503])
        reason = {403: "Forbidden", 409: "Conflict", 503: ""}[code]
        return ServerError(code, reason, "trouble"), code == 503 and self.random.random() < 0.5

    def step(self) -> None:
        """Change something, and let the scheduler do a part of what follows, or all."""
        self.random.choice(STEPS)(self)
        if self.random.random() < 0.5:
            for _ in range(self.random.randint(0, 12) * len(self.rigs)):
                rig = self.random.choice(self.rigs)
                self.random.choice([rig.hear, rig.decide, rig.write])()
        else:
            self.rest()

    def rest(self) -> None:
        """Let everything come to rest, and look at it."""
        faults, self._faults = self._faults, 0.0
        for _ in range(1 if len(self.rigs) == 1 else 4):
            for rig in self.rigs:
                rig.run(for_s=30)
        self._faults = faults
        for rig in self.rigs:
            rig.check()
            self._check_waiting(rig)

    def _check_waiting(self, rig: Rig) -> None:
        live = rig.scheduler.cache
        for key, each in live.pods.items():
            if live.is_unscheduled(key) and each.spec.scheduling_group is None:
                outcome = schedule(live.cluster, each)
                place = rig.scheduler.queue.find(("pod", key))
                assert not isinstance(outcome, Placed), (each.metadata.name, outcome.node, place)
                self.counts["waiting"] += 1
            elif live.has_node(key):
                self.counts["on nodes"] += 1

    # --- steps ------------------------------------------------------------------------------------

    def put(self) -> None:
        """Put a node, slice, class or rule."""
        maker: Any = self.random.choice([some_node, some_slice, some_slice, some_class, some_rule])
        self.server.put(maker(self.random))

    def remove(self) -> None:
        """Remove one of these."""
        struct: Any = self.random.choice([Node, ResourceSlice, DeviceClass, DeviceTaintRule])
        found = list(self.server.all(struct))
        if found:
            self.server.drop(self.random.choice(found))

    def put_claim(self) -> None:
        """Create a claim that is missing."""
        name = self.random.choice(CLAIMS)
        if self.server.get(ResourceClaim, name) is None:
            found = claim(name, wanting(self.random.choice([1, 2])))
            self._made += 1
            metadata = replace(found.metadata, uid=f"claim-{name}-{self._made}")
            self.server.put(replace(found, metadata=metadata))

    def remove_claim(self) -> None:
        """Remove a claim, whoever uses it."""
        found = list(self.server.all(ResourceClaim))
        if found and self.random.random() < 0.3:
            self.server.drop(self.random.choice(found))

    def put_pod(self) -> None:
        """Create a pod."""
        self._made += 1
        one = self.random.choice(pods(f"p-{self._made}"))
        is_special = RESOURCE in one.spec.containers[0].resources.requests
        if not one.spec.node_name and not (is_special and len(self.rigs) > 1):
            self.server.put(one)

    def put_many(self) -> None:
        """Create pods of one kind, each with a claim of its own."""
        for _ in range(self.random.randint(2, 6)):
            self._made += 1
            name = f"k-{self._made}"
            self.server.put(claim(f"of-{name}"), user(name, f"of-{name}"))

    def put_member(self) -> None:
        """Create a pod of a group, or the group."""
        self._made += 1
        if self.server.get(PodGroup, "gang") is None and self.random.random() < 0.5:
            self.server.put(group(least=2))
        self.server.put(pod(f"m-{self._made}", requests={"cpu": "1"}, **MEMBER))

    def remove_pod(self) -> None:
        """Remove a pod."""
        found = list(self.server.all(Pod))
        if found:
            self.server.drop(self.random.choice(found))

    def release(self) -> None:
        """Do what the claim controller does: claims lose consumers that are gone, then devices."""
        uids = {each.metadata.uid for each in self.server.all(Pod)}
        for each in self.server.all(ResourceClaim):
            owners = each.metadata.owner_references
            if owners and owners[0].uid not in uids:
                self.server.drop(each)
                continue
            kept = tuple(c for c in each.status.reserved_for if c.uid in uids)
            if kept != each.status.reserved_for:
                status = replace(each.status, reserved_for=kept) if kept else ResourceClaimStatus()
                self.server.put(replace(each, status=status))

    def restart(self) -> None:
        """Let the scheduler be killed, and start anew."""
        if self.random.random() < 0.2:
            self.server.forget_watchers()
            self.rigs = [self._new_rig() for _ in self.rigs]
            self.counts["restarts"] += 1


STEPS = (
    LiveHistory.put,
    LiveHistory.put,
    LiveHistory.remove,
    LiveHistory.put_claim,
    LiveHistory.remove_claim,
    LiveHistory.put_pod,
    LiveHistory.put_pod,
    LiveHistory.put_pod,
    LiveHistory.put_many,
    LiveHistory.put_member,
    LiveHistory.remove_pod,
    LiveHistory.remove_pod,
    LiveHistory.release,
    LiveHistory.release,
    LiveHistory.restart,
)


def run_live_history(
    random: Random, *, steps: int, faults: float = 0.0, schedulers: int = 1
) -> Counter[str]:
    """Run a history, see that all is free in the end when all pods have gone; return counts."""
    history = LiveHistory(random, faults=faults, schedulers=schedulers)
    for _ in range(steps):
        history.step()
        check_bound(history.server)
        if schedulers == 1:
            check_devices(history.server)
    history.rest()
    check_devices(history.server)
    history.counts["writes"] = len(history.server.writes)
    for each in list(history.server.all(Pod)):
        history.server.drop(each)
    history.release()
    history.rest()
    for each in history.server.all(ResourceClaim):
        assert each.status == ResourceClaimStatus(), each
    for rig in history.rigs:
        assert rig.scheduler.cache.cluster.inventory.ledger.is_clean
        assert not rig.scheduler.cache.cluster.snapshot.inputs.pod_index.priorities
    return history.counts
