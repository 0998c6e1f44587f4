"""A snapshot as its cluster would complete it before anything is scheduled.

1. Controllers create the pods that they miss; claims and templates that no pod uses get stand-ins.
2. Admission gives pods what their runtime classes add, and pods and pod groups their priorities.
3. The claim controller creates claims from templates, for pod groups and then for pods.
4. Volume claims get volumes.
5. The disruption controller counts the pods of budgets that have no status yet.

Objects that cannot be created are left out: the scheduler then reports the missing ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.pod import PodResourceClaim
from moorage.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.api.scheduling import PodGroup, PriorityClass
from moorage.api.scheduling.v1beta1 import PREEMPT_LOWER_PRIORITY, SYSTEM_CRITICAL_PRIORITY
from moorage.api.timestamp import Timestamp
from moorage.claims.claim_templates import (
    claim_from_template,
    find_generated,
    group_claim_statuses,
    pod_claim_statuses,
)
from moorage.claims.pod_claims import (
    ClaimEntry,
    ClaimFeatures,
    ClaimRejection,
    NotCreated,
    Owner,
    controller_of,
    group_name,
    reference_of,
    statuses_of,
)
from moorage.claims.quotas import CLAIMS, PODS
from moorage.claims.reservations import consumer_of, is_group_consumer
from moorage.claims.runtime_classes import with_runtime
from moorage.client.indexer import Indexer
from moorage.controllers.disruption import selected_by, status_of
from moorage.controllers.pod_control import is_active
from moorage.insight.messages import Concern, full_name, listed, titled
from moorage.insight.snapshot.quotas import SnapshotQuotas, is_charged
from moorage.insight.snapshot.snapshot import Snapshot, identified
from moorage.insight.snapshot.stand_ins import Unused, stands_for, with_stand_ins
from moorage.insight.snapshot.volume_claims import with_bound_claims
from moorage.insight.snapshot.workloads import PODS_MAX, with_controlled_pods
from moorage.validation.strategy import Context

BUILT_IN: Final = {
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
    "system-node-critical": SYSTEM_CRITICAL_PRIORITY + 1000,
}

NO_PRIORITY: Final = "no PriorityClass with name {} was found"
TERMINATING: Final = "unable to create new content in namespace {} because it is being terminated"


class Completed(NamedTuple):
    """A snapshot ready to be scheduled, and what could not be completed."""

    snapshot: Snapshot
    concerns: tuple[Concern, ...]
    over_quota: Mapping[
        str, str
    ] = {}  # by the full name of a pod: why admission refuses it or its claim
    refused_objects: Mapping[tuple[str, str], str] = {}  # claims and templates, by kind and name


def complete(
    snapshot: Snapshot,
    context: Context,
    *,
    unused: Sequence[Unused] = (),
    pods_max: int = PODS_MAX,
) -> Completed:
    """Return the snapshot with pods, priorities and claims, or raise TooManyPodsError.

    The unused claims and templates get stand-ins.
    """
    expanded = with_controlled_pods(snapshot, context, pods_max=pods_max)
    admitted, of_runtimes = _with_runtimes(with_stand_ins(expanded.snapshot, unused))
    prioritised, of_priorities = _with_priorities(admitted)
    maker = ClaimMaker(
        prioritised, ClaimFeatures.of(context.gates), SnapshotQuotas(prioritised, context)
    )
    claimed, of_claims = _claimed(prioritised, maker)
    bound, of_volumes = with_bound_claims(claimed, context.now)
    concerns = (*expanded.concerns, *of_runtimes, *of_priorities, *of_claims, *of_volumes)
    refused = {**maker.over_quota, **_refused_pods(bound)}
    counted = _with_budget_statuses(bound, context.now)
    return Completed(counted, concerns, refused, maker.refused_objects)


def _refused_pods(snapshot: Snapshot) -> dict[str, str]:
    """Return the pods that admission refuses for their namespace or priority class, and why.

    Where no priority class is known at all, those of the cluster were not given.
    """
    ending = {
        each.metadata.name
        for each in snapshot.namespaces
        if each.metadata.deletion_timestamp is not None
    }
    if not snapshot.priorities and not ending:
        return {}
    priorities = Priorities(snapshot.priorities) if snapshot.priorities else None
    found: dict[str, str] = {}
    for pod in snapshot.pods:
        name, reason = pod.spec.priority_class_name, ""
        if not is_charged(pod):
            continue
        if pod.metadata.namespace in ending:
            reason = TERMINATING.format(pod.metadata.namespace)
        elif name and pod.spec.priority is None and priorities and not priorities.find(name):
            reason = NO_PRIORITY.format(name)
        if reason:
            found[full_name(pod)] = f'pods "{pod.metadata.name}" is forbidden: {reason}'
    return found


def _with_runtimes(snapshot: Snapshot) -> tuple[Snapshot, list[Concern]]:
    """Return the snapshot with what runtime classes add to the pods that have no node yet."""
    runtimes = {each.metadata.name: each for each in snapshot.runtimes}
    if not runtimes:
        return snapshot, []
    refused: dict[str, list[str]] = {}
    shared: dict[int, tuple[Any, Any]] = {}  # by id of the old spec, which is kept alive

    def admitted(pod: Pod) -> Pod:
        runtime = runtimes.get(pod.spec.runtime_class_name or "")
        if runtime is None or pod.spec.node_name:
            return pod
        if id(pod.spec) not in shared:
            result = with_runtime(pod, runtime)
            if isinstance(result, ClaimRejection):
                refused.setdefault(result.reason, []).append(titled(pod))
                return pod
            shared[id(pod.spec)] = (pod.spec, result.spec)
        return replace(pod, spec=shared[id(pod.spec)][1])

    changed = replace(snapshot, pods=tuple(map(admitted, snapshot.pods)))
    return changed, [
        Concern(
            "refused-runtime-class",
            f"{listed(users)} does not agree with its runtime class: {reason}",
            "a cluster would not take such a pod; here it goes without what the class adds",
        )
        for reason, users in sorted(refused.items())
    ]


def _with_priorities(snapshot: Snapshot) -> tuple[Snapshot, list[Concern]]:
    """Return the snapshot with the priority of every pod and group that has none yet."""
    priorities = Priorities(snapshot.priorities)
    missing: dict[str, list[str]] = {}
    shared: dict[int, tuple[Any, Any]] = {}  # by id of the old spec, which is kept alive

    def prioritised(value: Any) -> Any:
        spec = value.spec
        if spec.priority is not None:
            return value
        if (priority := priorities.find(spec.priority_class_name)) is None:
            missing.setdefault(spec.priority_class_name, []).append(titled(value))
            return value
        # Pods of one template share their spec, and keep sharing it.
        if id(spec) not in shared:
            shared[id(spec)] = (spec, _with(spec, priority, is_pod=value.kind == "Pod"))
        return replace(value, spec=shared[id(spec)][1])

    changed = replace(
        snapshot,
        pods=tuple(map(prioritised, snapshot.pods)),
        composite_groups=tuple(map(prioritised, snapshot.composite_groups)),
        groups=tuple(map(prioritised, snapshot.groups)),
    )
    return changed, [
        Concern(
            "missing-priority-class",
            f"there is no PriorityClass {name}, but {listed(users)} asks for it",
            "a cluster would not take such a pod; here it goes with priority 0",
        )
        for name, users in sorted(missing.items())
    ]


def _with_budget_statuses(snapshot: Snapshot, now: Timestamp) -> Snapshot:
    """Return the snapshot with the status of each budget that has none: it would allow nothing."""
    none = PodDisruptionBudgetStatus()
    if all(budget.status != none for budget in snapshot.budgets):
        return snapshot
    real = [pod for pod in snapshot.pods if stands_for(pod) is None]
    objects = Indexer()
    for controller in snapshot.controllers:
        objects.put(controller)

    def counted(budget: PodDisruptionBudget) -> PodDisruptionBudget:
        if budget.status != none:
            return budget
        space = budget.metadata.namespace
        pods = selected_by(budget, (p for p in real if p.metadata.namespace == space))
        status = status_of(objects, budget, pods, now)
        return budget if isinstance(status, str) else replace(budget, status=status)

    return replace(snapshot, budgets=tuple(map(counted, snapshot.budgets)))


def _with(spec: Any, priority: Priority, *, is_pod: bool) -> Any:
    spec = replace(spec, priority=priority.value, priority_class_name=priority.class_name)
    if is_pod and spec.preemption_policy is None:
        spec = replace(spec, preemption_policy=priority.preemption_policy)
    return spec


class Priority(NamedTuple):
    """The values of a priority class."""

    class_name: str
    value: int
    preemption_policy: str


class Priorities:
    """The priority classes of a cluster."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._by_name = {
            name: Priority(name, value, PREEMPT_LOWER_PRIORITY) for name, value in BUILT_IN.items()
        }
        chosen: list[Priority] = []
        for each in classes:
            policy = each.preemption_policy or PREEMPT_LOWER_PRIORITY
            found = Priority(each.metadata.name, each.value, policy)
            self._by_name[found.class_name] = found
            if each.global_default:
                chosen.append(found)
        # Of several defaults the lowest counts, so no pod gets too much.
        lowest = min(chosen, key=lambda found: found.value, default=None)
        self._default = lowest or Priority("", 0, PREEMPT_LOWER_PRIORITY)

    def find(self, class_name: str) -> Priority | None:
        """Return the priority of a class, or the default if none is named."""
        return self._by_name.get(class_name) if class_name else self._default


def with_claims(snapshot: Snapshot, features: ClaimFeatures) -> tuple[Snapshot, list[Concern]]:
    """Return the snapshot with the claims that pods and pod groups still miss."""
    return _claimed(snapshot, ClaimMaker(snapshot, features))


def _claimed(snapshot: Snapshot, maker: ClaimMaker) -> tuple[Snapshot, list[Concern]]:
    groups = snapshot.groups
    if maker.features.group_claims:
        groups = tuple(map(maker.complete_group, groups))
    # Stand-ins come after all pods, although some may stand before them.
    made = [None if stands_for(pod) else maker.complete_pod(pod) for pod in snapshot.pods]
    pods = tuple(
        maker.complete_stand_in(old) if new is None else new
        for old, new in zip(snapshot.pods, made, strict=True)
    )
    changed = replace(snapshot, groups=groups, pods=pods, claims=maker.claims)
    return changed, maker.concerns


class ClaimMaker:
    """Creates claims from templates, under unused names."""

    def __init__(
        self, snapshot: Snapshot, features: ClaimFeatures, quotas: SnapshotQuotas | None = None
    ) -> None:
        self.features = self._features = features
        self.over_quota: dict[str, str] = {}
        self._quotas = quotas
        self.refused_objects = {} if quotas is None else quotas.charge_new(snapshot)
        self._templates = {full_name(each): each for each in snapshot.templates}
        self._groups = {full_name(each): each for each in snapshot.groups}
        self._claims = {full_name(each): each for each in snapshot.claims}
        self._of_owner: dict[str, list[ResourceClaim]] = {}
        for claim in snapshot.claims:
            if (owner := controller_of(claim.metadata)) is not None:
                self._of_owner.setdefault(owner.uid, []).append(claim)
        self._numbers: Counter[str] = Counter()
        self.concerns: list[Concern] = []

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims: existing ones, then new ones."""
        return tuple(self._claims.values())

    def claim(self, namespace: str, name: str) -> ResourceClaim:
        """Return an existing or new claim."""
        return self._claims[f"{namespace}/{name}"]

    def forget(self, claim: ResourceClaim) -> None:
        """Forget a new claim that others keep; another one never gets its name."""
        self._claims.pop(full_name(claim), None)

    def complete_group(self, group: PodGroup) -> PodGroup:
        """Return the pod group with its claims, for its pods to find."""
        made = {e.name: n for e in group.spec.resource_claims if (n := self._made(group, e))}
        if not made:
            return group
        statuses = group_claim_statuses(group, made)
        group = replace(group, status=replace(group.status, resource_claim_statuses=statuses))
        self._groups[full_name(group)] = group
        return group

    def complete_pod(self, pod: Pod) -> Pod:
        """Return the pod with its claims, if it may still need any."""
        if self._quotas is not None and is_charged(pod) and is_active(pod):
            reason = self._quotas.charge(PODS, pod)
            if reason:
                self.over_quota[full_name(pod)] = (
                    f'pods "{pod.metadata.name}" is forbidden: {reason}'
                )
                return pod
        return self._with_claims(pod)

    def complete_stand_in(self, pod: Pod) -> Pod:
        """Return a stand-in with its claim; quotas are charged for nothing that others need.

        They are not charged for the pod at all: one that is written may ask for what they want.
        """
        if self._quotas is None:
            return self._with_claims(pod)
        with self._quotas.undone(pod.metadata.namespace):
            return self._with_claims(pod)

    def _with_claims(self, pod: Pod) -> Pod:
        if not pod.spec.resource_claims or not is_active(pod):
            return pod
        if reason := self._refused_reference(pod):
            self.over_quota[full_name(pod)] = reason
            return pod
        made: dict[str, str] = {}
        for entry in pod.spec.resource_claims:
            group = self._sharing_group(pod, entry)
            name = self._made(pod, entry) if group is None else self._shared(pod, entry, group)
            if name is not None:
                made[entry.name] = name
        if not made:
            return pod
        statuses = pod_claim_statuses(pod, made)
        return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))

    def _refused_reference(self, pod: Pod) -> str:
        """Return why a quota refuses a claim or template that the pod names, or ""."""
        if not self.refused_objects or pod.spec.node_name:
            return ""
        for entry in pod.spec.resource_claims:
            for kind, name in (
                ("ResourceClaim", entry.resource_claim_name),
                ("ResourceClaimTemplate", entry.resource_claim_template_name),
            ):
                reason = self.refused_objects.get((kind, f"{pod.metadata.namespace}/{name}"))
                if reason:
                    return reason
        return ""

    def _sharing_group(self, pod: Pod, entry: PodResourceClaim) -> PodGroup | None:
        """Return the pod's group, if the entry's claim belongs to the group."""
        name = group_name(pod) if self._features.group_claims else None
        group = self._groups.get(f"{pod.metadata.namespace}/{name}") if name else None
        if group is None:
            return None
        consumer = consumer_of(pod, entry, group)
        is_shared = not isinstance(consumer, ClaimRejection) and is_group_consumer(consumer)
        return group if is_shared else None

    def _shared(self, pod: Pod, entry: ClaimEntry, group: PodGroup) -> str | None:
        if not isinstance(reference_of(pod, entry), NotCreated):
            return None
        names = {status.name: status.resource_claim_name for status in statuses_of(group)}
        return names.get(entry.name)

    def _made(self, owner: Owner, entry: ClaimEntry) -> str | None:
        """Return the name of the claim that an entry waits for, creating it if necessary."""
        if not isinstance(reference_of(owner, entry), NotCreated):
            return None
        found = find_generated(owner, entry.name, self._of_owner.get(owner.metadata.uid, ()))
        if found is not None:
            return found.metadata.name
        name = f"{owner.metadata.namespace}/{entry.resource_claim_template_name}"
        template = self._templates.get(name)
        return None if template is None else self._make(owner, entry, template)

    def _make(self, owner: Owner, entry: ClaimEntry, template: ResourceClaimTemplate) -> str | None:
        wanted = claim_from_template(owner, entry.name, template, self._features)
        if isinstance(wanted, ClaimRejection):
            fact = f"no claim is made for {entry.name} of {titled(owner)}: {wanted.reason}"
            self.concerns.append(Concern("refused-claim", fact))
            return None
        claim: ResourceClaim = identified(self._named(wanted))
        reason = "" if self._quotas is None else self._quotas.charge(CLAIMS, claim)
        if reason:
            self.over_quota[full_name(owner)] = (
                f'resourceclaims.resource.k8s.io "{claim.metadata.name}" is forbidden: {reason}'
            )
            return None
        self._claims[full_name(claim)] = claim
        return claim.metadata.name

    def _named(self, claim: ResourceClaim) -> ResourceClaim:
        metadata = claim.metadata
        prefix = f"{metadata.namespace}/{metadata.generate_name}"
        while (name := f"{prefix}{self._numbers[prefix]}") in self._claims:
            self._numbers[prefix] += 1
        self._numbers[prefix] += 1
        return replace(claim, metadata=replace(metadata, name=name.partition("/")[2]))
