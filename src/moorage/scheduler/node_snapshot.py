"""The snapshot of all nodes with their pods, and the topology states of scheduled signatures.

`add_pod` and `remove_pod` are exactly inverse. Each is written into a journal that topology states
read when they are used, so that pods of a signature cost what changed since the last one and not
what exists. When labels or taints of a node change, or a namespace changes, topology states are
rebuilt: a generation ends.

Whoever remembers something about nodes asks `touched_since` which of them to look at again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from moorage.api.core.node import Node
from moorage.kit.lru import LRU
from moorage.scheduler.node_info import NO_READERS, NodeFacts, NodeInfo, NodeReaders, read_facts
from moorage.scheduler.pod_signature import PodInfo, PodSignature
from moorage.scheduler.topology_state import TopologyInputs, TopologyState

if TYPE_CHECKING:
    from moorage.scheduler.size_ranking import SizeScores

STATES_MAX = 256
STATES_BYTES_MAX = 4 * 2**20  # of the fields that their signatures are made of
JOURNAL_MAX = 4096
NOTHING_HELD: AbstractContextManager[None] = nullcontext()


class PodMove(NamedTuple):
    """A pod that came to a node (sign 1) or left it (-1)."""

    pod: PodInfo
    node: str
    sign: int


class NodePlaces(NamedTuple):
    """The nodes in the order of their names; the place of a node is its index."""

    generation: int
    names: Sequence[str]
    place_of: Mapping[str, int]


class _CachedState(NamedTuple):
    state: TopologyState
    generation: int
    position: int  # how much of the journal it has read


class NodeSnapshot:
    """The nodes of a cluster with the pods on them."""

    def __init__(self, readers: NodeReaders = NO_READERS) -> None:
        self.inputs = TopologyInputs()
        self._readers = readers
        self._nodes: dict[str, Node] = {}
        self._node_of: dict[str, str] = {}
        self._journal: deque[PodMove] = deque(maxlen=JOURNAL_MAX)
        self._written = 0
        self.generation = 0  # changes with the set of nodes, their labels and hard taints
        self._states: LRU[PodSignature, _CachedState] = LRU(STATES_MAX, STATES_BYTES_MAX)
        self.states_built = 0
        self._last_with_terms = 0  # when a pod with affinity terms last came or went
        self._node_changes = 0  # how often a node or namespace changed
        self._touched: deque[str] = deque(maxlen=JOURNAL_MAX)
        self.touches = 0  # how often a node was touched
        self._eased: deque[str] = deque(maxlen=JOURNAL_MAX)
        self.easings = 0  # how often a node may have more free than before
        self.size_scores: LRU[Hashable, SizeScores] = LRU(STATES_MAX, STATES_BYTES_MAX)
        self._places = NodePlaces(0, (), {})
        self._filled: deque[str] = deque(maxlen=JOURNAL_MAX)
        self.fillings = 0  # how often a node was found to be full
        self.full: set[str] = set()  # nodes that were found to have no free device, and have none
        self.device_touches = 0  # how often devices changed that any node may see

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """The nodes by name, with the pods on them."""
        return self.inputs.nodes

    @property
    def places(self) -> NodePlaces:
        """The nodes in the order of their names, the same object for a generation."""
        if self._places.generation != self.generation:
            names = sorted(self.nodes)
            place_of = {name: place for place, name in enumerate(names)}
            self._places = NodePlaces(self.generation, names, place_of)
        return self._places

    @property
    def objects(self) -> Mapping[str, Node]:
        """The API objects of the nodes by name, the same mapping for as long as this exists."""
        return self._nodes

    def node(self, name: str) -> Node:
        """Return the API object of a node."""
        return self._nodes[name]

    def touch(self, name: str, *, has_less: bool = False) -> None:
        """Record that something about a node changed, such as its devices.

        A node that has less free than before, and is otherwise the same, still rejects the pods
        that it rejected.
        """
        self._touched.append(name)
        self.touches += 1
        if not has_less:
            self._eased.append(name)
            self.easings += 1
            self.full.discard(name)

    def mark_full(self, name: str) -> None:
        """Record that a node has no free device."""
        if name not in self.full:
            self.full.add(name)
            self._filled.append(name)
            self.fillings += 1

    def touch_devices(self) -> None:
        """Record that devices changed that any node may see."""
        self.device_touches += 1
        self.full.clear()

    @property
    def terms_version(self) -> tuple[int, int]:
        """What changes with the nodes, and with pods that have terms about other pods."""
        return self._node_changes, self._last_with_terms

    def touched_since(self, touches: int) -> Collection[str] | None:
        """Return the nodes that changed since this number of touches; None: all may have."""
        return _last(self._touched, self.touches - touches)

    def eased_since(self, easings: int) -> Collection[str] | None:
        """Return the nodes that may have more free since then; None: all may have."""
        return _last(self._eased, self.easings - easings)

    def filled_since(self, fillings: int) -> Collection[str] | None:
        """Return the nodes that were found to be full since then; None: all may have been."""
        return _last(self._filled, self.fillings - fillings)

    # --- nodes, namespaces and classes ----------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add a node, or its newer version; pods on it stay."""
        name = node.metadata.name
        self._node_changes += 1
        facts = read_facts(node, self._readers)
        old = self.inputs.nodes.get(name)
        if old is None:
            self.inputs.nodes[name] = NodeInfo(facts)
            self.generation += 1
        else:
            self.inputs.nodes[name] = old.with_facts(facts)
            # The pod index uses node names and stays valid; topology states depend on labels.
            if (old.facts.labels, old.facts.hard_taints) != (facts.labels, facts.hard_taints):
                self.generation += 1
            self._count_unwelcoming(old.facts, -1)
            self.inputs.images.remove(name, self._nodes[name].status.images)
        self._nodes[name] = node
        self._count_unwelcoming(facts, 1)
        self.inputs.images.put(name, node.status.images)
        self.touch(name)

    def remove_node(self, name: str) -> None:
        """Remove a node with all pods on it."""
        for key in tuple(self.inputs.nodes[name].pods):
            self.remove_pod(key)
        self._count_unwelcoming(self.inputs.nodes.pop(name).facts, -1)
        self.inputs.images.remove(name, self._nodes.pop(name).status.images)
        self._node_changes += 1
        self.generation += 1

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a namespace, or its new labels."""
        if self.inputs.namespaces.get(name) != labels:
            self.inputs.namespaces[name] = labels
            self._node_changes += 1
            self.generation += 1

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        if self.inputs.namespaces.pop(name, None) is not None:
            self._node_changes += 1
            self.generation += 1

    def set_class_resources(self, resources: Iterable[str]) -> None:
        """Set the extended resources that device classes provide."""
        self.inputs.class_resources = frozenset(resources)

    def _count_unwelcoming(self, facts: NodeFacts, sign: int) -> None:
        """Count nodes that keep pods away, so that plugins about that can be skipped for none."""
        self.inputs.unschedulable_nodes += sign * facts.is_unschedulable
        self.inputs.hard_tainted_nodes += sign * bool(facts.hard_taints)
        self.inputs.soft_tainted_nodes += sign * bool(facts.soft_taints)

    # --- pods -----------------------------------------------------------------------------------

    def add_pod(self, pod: PodInfo, node: str) -> None:
        """Put a pod on a node."""
        assert pod.key not in self._node_of, f"{pod.key} is on a node already"
        self.inputs.nodes[node] = self.inputs.nodes[node].with_pod(pod)
        self._node_of[pod.key] = node
        self._record(pod, node, 1)

    def remove_pod(self, key: str) -> None:
        """Take a pod from its node."""
        node = self._node_of.pop(key)
        info = self.inputs.nodes[node]
        self.inputs.nodes[node] = info.without_pod(key)
        self._record(info.pods[key], node, -1)

    def update_pod(self, pod: PodInfo) -> None:
        """Note what only preemption reads of a pod on a node, such as when it started."""
        node = self._node_of[pod.key]
        self.inputs.nodes[node] = self.inputs.nodes[node].with_newer_pod(pod)

    def node_of(self, key: str) -> str | None:
        """Return the node that a pod is on."""
        return self._node_of.get(key)

    def _record(self, pod: PodInfo, node: str, sign: int) -> None:
        self.touch(node, has_less=sign > 0)
        self.inputs.pod_index.count(pod, node, sign)
        self._journal.append(PodMove(pod, node, sign))
        self._written += 1
        if not pod.signature.affinity_terms.are_none:
            self._last_with_terms = self._written

    # --- topology states ------------------------------------------------------------------------

    def topology_state(self, signature: PodSignature) -> TopologyState:
        """Return the topology state of a signature, as of now."""
        cached = self._states.get(signature)
        unread = self._written - cached.position if cached else 0
        if cached is None or cached.generation != self.generation or unread > len(self._journal):
            state = TopologyState(signature, self.inputs)
            self.states_built += 1
        else:
            state = cached.state
            if not state.is_idle or self._last_with_terms > cached.position:
                for move in reversed([*islice(reversed(self._journal), unread)]):
                    state.count(move.pod, move.node, move.sign)
        found = _CachedState(state, self.generation, self._written)
        self._states.put(signature, found, signature.text_bytes)
        return state


def _last(names: deque[str], count: int) -> Collection[str] | None:
    """Return the last names that were written, each once; None if the journal is too short."""
    if count > len(names):
        return None
    return set(islice(reversed(names), count)) if count else ()


# --- nominated pods -----------------------------------------------------------------------------


class NominatedPods:
    """The pods that wait until others have left a node for them, by key.

    Whoever is scheduled meanwhile finds nodes as if these pods were there already, unless it has a
    higher priority. They may never come: whoever wants to be near others must also find its node
    without them (`set_aside`).
    """

    def __init__(self, snapshot: NodeSnapshot) -> None:
        # Called with a node where room was held for a pod that is not there now.
        self.released: Callable[[str], object] = lambda _: None
        self._snapshot = snapshot
        self._pods: dict[str, tuple[PodInfo, str]] = {}
        self._held_now: list[tuple[PodInfo, str]] = []  # those that nodes have

    def put(self, pod: PodInfo, node: str) -> None:
        """Nominate a pod for a node."""
        self.discard(pod.key, node)
        self._pods[pod.key] = pod, node

    def discard(self, key: str, place: str = "") -> None:
        """Forget the nomination of a pod; if it is at a place now, it keeps the room there."""
        found = self._pods.pop(key, None)
        if found is not None and found[1] != place:
            self.released(found[1])

    def node_of(self, key: str) -> str | None:
        """Return the node that a pod is nominated for."""
        found = self._pods.get(key)
        return None if found is None else found[1]

    def lower_on(self, node: str, priority: int) -> list[str]:
        """Return the pods of lower priority that are nominated for a node, by their keys."""
        found = self._pods.items()
        return [key for key, (pod, at) in found if at == node and pod.priority < priority]

    def held(self, priority: int, besides: Container[str]) -> AbstractContextManager[None]:
        """Hold room during a block for nominated pods of this priority or a higher one."""
        return self._held(priority, besides) if self._pods else NOTHING_HELD

    @contextmanager
    def _held(self, priority: int, besides: Container[str]) -> Iterator[None]:
        added: list[tuple[PodInfo, str]] = []
        for key, (pod, node) in self._pods.items():
            is_there = self._snapshot.node_of(key) is not None
            if is_there or key in besides or pod.priority < priority:
                continue
            if node in self._snapshot.nodes:
                self._snapshot.add_pod(pod, node)
                added.append((pod, node))
        around = self._held_now
        self._held_now = [*around, *added]
        try:
            yield
        finally:
            self._held_now = around
            for pod, _ in reversed(added):
                self._snapshot.remove_pod(pod.key)

    @property
    def are_held(self) -> bool:
        """Whether nodes have pods now that are only nominated."""
        return bool(self._held_now)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Have nodes as they are during a block, without nominated pods."""
        for pod, _ in reversed(self._held_now):
            self._snapshot.remove_pod(pod.key)
        try:
            yield
        finally:
            for pod, node in self._held_now:
                self._snapshot.add_pod(pod, node)
