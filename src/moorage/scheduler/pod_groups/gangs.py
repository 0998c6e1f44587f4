"""Gangs: the pods of a group that look for nodes, and trees of them.

# needed: how many of the pods must get a node now
# minimum: of pods in a group, or of groups in a composite group, that must have nodes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.api.scheduling.v1beta1 import PREEMPT_LOWER_PRIORITY, PREEMPT_NEVER
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.group_forest import DEPTH_MAX, AnyGroup, GroupKey, key_of


class Gang(Struct, frozen=True):
    """The pods of one group that look for nodes, and how many others there are."""

    group: PodGroup
    pods: tuple[Pod, ...]
    scheduled: int = 0  # pods of the group that have a node
    existing: int = 0  # all pods of the group
    nodes: tuple[str, ...] = ()  # of those that have one
    placed: tuple[Pod, ...] = ()  # those that have one, in the same order

    @property
    def minimum(self) -> int:
        """How many pods of the group must have nodes for any to have one."""
        gang = self.group.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 1

    @property
    def needed(self) -> int:
        """How many of the pods must get a node now."""
        return max(self.minimum - self.scheduled, 0)

    @property
    def is_ready(self) -> bool:
        """Whether enough of its pods exist."""
        return self.existing >= self.minimum


class CompositeGang(Struct, frozen=True):
    """The groups of a composite group."""

    group: CompositePodGroup
    children: tuple[Unit, ...]

    @property
    def minimum(self) -> int:
        """How many of the groups must have nodes for any to have one."""
        gang = self.group.spec.scheduling_policy.gang
        return gang.min_group_count if gang is not None else 1

    @property
    def is_ready(self) -> bool:
        """Whether enough of its groups have enough pods."""
        return sum(child.is_ready for child in self.children) >= self.minimum

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all pods in it that have one."""
        return tuple(node for child in self.children for node in child.nodes)

    @property
    def placed(self) -> tuple[Pod, ...]:
        """All pods in it that have a node."""
        return tuple(pod for child in self.children for pod in child.placed)


Unit = Gang | CompositeGang


def unit_key(unit: Unit) -> GroupKey:
    """Return the key of the group."""
    return key_of(unit.group)


def gangs_of(unit: Unit) -> Iterator[Gang]:
    """Yield the groups with pods in a tree."""
    if isinstance(unit, Gang):
        yield unit
    else:
        for child in unit.children:
            yield from gangs_of(child)


def topology_key(group: AnyGroup) -> str | None:
    """Return the label that all nodes of a group must share, if it wants that."""
    constraints = group.spec.scheduling_constraints
    return constraints.topology[0].key if constraints and constraints.topology else None


def pods_of(unit: Unit) -> list[Pod]:
    """Return all pods in a tree that look for nodes."""
    return [pod for gang in gangs_of(unit) for pod in gang.pods]


def unit_of(cluster: Cluster, root: GroupKey, gang: Callable[[PodGroup], Gang]) -> Unit | None:
    """Return the tree of a root; None if it, or a group above it, does not exist."""
    forest = cluster.forest
    return _unit(cluster, root, gang, DEPTH_MAX) if forest.is_complete(root) else None


def _unit(
    cluster: Cluster, key: GroupKey, gang: Callable[[PodGroup], Gang], depth_left: int
) -> Unit | None:
    group = cluster.forest.get(key)
    if isinstance(group, PodGroup):
        return gang(group)
    if group is None or depth_left <= 1:
        return None
    below = (
        _unit(cluster, key_of(each), gang, depth_left - 1) for each in cluster.forest.children(key)
    )
    return CompositeGang(group, tuple(each for each in below if each is not None))


# --- priority -------------------------------------------------------------------------------------


def priority_of(unit: Unit, pods: Sequence[Pod]) -> int:
    """Return the priority of a root, or of its pods if no server has admitted it."""
    own = unit.group.spec.priority
    return (pods[0].spec.priority or 0) if own is None else own


def preemption_policy(cluster: Cluster, unit: Unit, pods: Sequence[Pod]) -> str:
    """Return whether a root preempts others: it says so itself, or else its pods do."""
    if cluster.features.group_preemption_policy:
        said = unit.group.spec.preemption_policy or pods[0].spec.preemption_policy
        return said or PREEMPT_LOWER_PRIORITY
    never = any(pod.spec.preemption_policy == PREEMPT_NEVER for pod in pods)
    return PREEMPT_NEVER if never else PREEMPT_LOWER_PRIORITY
