"""All nodes with their pods, and the outlooks of the shapes that were asked about.

Pods come and go by `place` and `displace`, which are exactly inverse. Each is written into a
journal that outlooks read when they are asked for, so that pods of a shape cost what changed
since the last one and not what exists. Nodes that change their labels or taints, and namespaces,
make outlooks anew: an epoch ends.

Whoever remembers something about nodes asks `touched_since` which of them to look at again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from mooring.api.core.node import Node
from mooring.scheduler.nodestate import NodeFacts, NodeState, read_facts
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.shape import Occupant, PodShape
from mooring.scheduler.world import World

OUTLOOKS_MAX = 256
JOURNAL_MAX = 4096


class Change(NamedTuple):
    """A pod that came to a node (sign 1) or left it (-1)."""

    occupant: Occupant
    node: str
    sign: int


class _Kept(NamedTuple):
    outlook: Outlook
    epoch: int
    position: int  # how much of the journal it has read


class Fleet:
    """The nodes of a cluster; the one thing here that changes."""

    def __init__(self) -> None:
        self.world = World()
        self._nodes: dict[str, Node] = {}
        self._node_of: dict[str, str] = {}
        self._journal: deque[Change] = deque(maxlen=JOURNAL_MAX)
        self._written = 0
        self._epoch = 0
        self._outlooks: OrderedDict[PodShape, _Kept] = OrderedDict()
        self.outlooks_made = 0
        self._last_with_terms = 0  # when a pod with terms about others last came or went
        self._touched: deque[str] = deque(maxlen=JOURNAL_MAX)
        self.touches = 0  # how often a node was touched
        self._eased: deque[str] = deque(maxlen=JOURNAL_MAX)
        self.easings = 0  # how often a node may have got more to give
        self.full: set[str] = set()  # nodes that were found to have no free device, and have none
        self.device_touches = 0  # how often devices changed that any node may see

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """The nodes by name, with the pods on them."""
        return self.world.nodes

    @property
    def epoch(self) -> int:
        """A number that changes with the nodes that there are, their labels and hard taints."""
        return self._epoch

    def node(self, name: str) -> Node:
        """Return a node as it was put."""
        return self._nodes[name]

    def touch(self, name: str, *, has_less: bool = False) -> None:
        """Say that something about a node changed, such as its devices.

        A node that has less than before, and nothing else changed, still refuses what it refused.
        """
        self._touched.append(name)
        self.touches += 1
        if not has_less:
            self._eased.append(name)
            self.easings += 1
            self.full.discard(name)

    def touch_devices(self) -> None:
        """Say that devices changed that any node may see."""
        self.device_touches += 1
        self.full.clear()

    def touched_since(self, touches: int) -> Collection[str] | None:
        """Return the nodes that changed since there were so many touches; None: look at all."""
        return _last(self._touched, self.touches - touches)

    def eased_since(self, easings: int) -> Collection[str] | None:
        """Return those of them that may have got more to give; None: look at all."""
        return _last(self._eased, self.easings - easings)

    # --- nodes, namespaces and classes ----------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add a node, or its newer version; pods on it stay."""
        name = node.metadata.name
        facts = read_facts(node)
        known = self.world.nodes.get(name)
        if known is None:
            self.world.nodes[name] = NodeState(facts)
            self._epoch += 1
        else:
            self._renew(known, facts)
            self._count_unwelcoming(known.facts, -1)
            self.world.images.remove(name, self._nodes[name].status.images)
        self._nodes[name] = node
        self._count_unwelcoming(facts, 1)
        self.world.images.put(name, node.status.images)
        self.touch(name)

    def remove_node(self, name: str) -> None:
        """Take away a node with all pods on it."""
        for key in tuple(self.world.nodes[name].pods):
            self.displace(key)
        self._count_unwelcoming(self.world.nodes.pop(name).facts, -1)
        self.world.images.remove(name, self._nodes.pop(name).status.images)
        self._epoch += 1

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a namespace, or its new labels."""
        if self.world.namespaces.get(name) != labels:
            self.world.namespaces[name] = labels
            self._epoch += 1

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        if self.world.namespaces.pop(name, None) is not None:
            self._epoch += 1

    def delegate(self, resources: Iterable[str]) -> None:
        """Say which extended resources device classes provide."""
        self.world.delegated = frozenset(resources)

    def _renew(self, known: NodeState, facts: NodeFacts) -> None:
        self.world.nodes[facts.name] = known.with_facts(facts)
        old = known.facts
        # The census goes by node names and stays true; places are known to outlooks alone.
        if (old.labels, old.hard_taints) != (facts.labels, facts.hard_taints):
            self._epoch += 1

    def _count_unwelcoming(self, facts: NodeFacts, sign: int) -> None:
        """Count nodes that keep pods away, so that rules about that need not be asked for none."""
        self.world.closed += sign * facts.is_unschedulable
        self.world.hard_tainted += sign * bool(facts.hard_taints)
        self.world.soft_tainted += sign * bool(facts.soft_taints)

    # --- pods -----------------------------------------------------------------------------------

    def place(self, occupant: Occupant, node: str) -> None:
        """Put a pod on a node."""
        assert occupant.key not in self._node_of, f"{occupant.key} is placed already"
        self.world.nodes[node] = self.world.nodes[node].with_pod(occupant)
        self._node_of[occupant.key] = node
        self._note(occupant, node, 1)

    def displace(self, key: str) -> None:
        """Take a pod from its node."""
        node = self._node_of.pop(key)
        state = self.world.nodes[node]
        self.world.nodes[node] = state.without_pod(key)
        self._note(state.pods[key], node, -1)

    def node_of(self, key: str) -> str | None:
        """Return where a pod is."""
        return self._node_of.get(key)

    def _note(self, occupant: Occupant, node: str, sign: int) -> None:
        self.touch(node, has_less=sign > 0)
        self.world.census.count(occupant, node, sign)
        self._journal.append(Change(occupant, node, sign))
        self._written += 1
        if not occupant.shape.terms.are_none:
            self._last_with_terms = self._written

    # --- outlooks -------------------------------------------------------------------------------

    def outlook(self, shape: PodShape) -> Outlook:
        """Return how pods of the shape see the fleet, as it is now."""
        kept = self._outlooks.pop(shape, None)
        unread = self._written - kept.position if kept else 0
        if kept is None or kept.epoch != self._epoch or unread > len(self._journal):
            outlook = Outlook(shape, self.world)
            self.outlooks_made += 1
        else:
            outlook = kept.outlook
            if not outlook.is_idle or self._last_with_terms > kept.position:
                for change in reversed([*islice(reversed(self._journal), unread)]):
                    outlook.count(change.occupant, change.node, change.sign)
        self._outlooks[shape] = _Kept(outlook, self._epoch, self._written)
        if len(self._outlooks) > OUTLOOKS_MAX:
            self._outlooks.popitem(last=False)
        return outlook


def _last(names: deque[str], count: int) -> Collection[str] | None:
    """Return the last names that were written, each once; None if so many are not there."""
    if count > len(names):
        return None
    return set(islice(reversed(names), count)) if count else ()
