"""The nodes that can use a device, and the few nodes from which a pool can be evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from moorage.allocator.errors import AllocationError
from moorage.allocator.node_view import NODE_OPERATIONS
from moorage.allocator.pools import matches_node
from moorage.api.core.node import Node, NodeStatus
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.meta import ObjectMeta
from moorage.api.node_affinity import NAME_FIELD, read_node_selector
from moorage.api.resource.v1 import Device, ResourceSlice

ALL_NODES = "<all>"
NO_NODE = "<none>"


class NodeSelection(Struct, frozen=True):
    """The nodes that can use a device: one, all, or those that a selector matches."""

    node: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None

    def __str__(self) -> str:
        if self.node:
            return self.node
        if self.all_nodes:
            return ALL_NODES
        return selector_text(self.selector) if self.selector is not None else NO_NODE

    def covers(self, node: Node) -> bool:
        """Return whether the node can use the device; an unreadable selector matches none."""
        try:
            return matches_node(
                node, node_name=self.node, all_nodes=self.all_nodes, selector=self.selector
            )
        except AllocationError:
            return False


def node_selection_of(device: Device, slice_: ResourceSlice) -> NodeSelection:
    """Return the nodes that can use a device."""
    spec = slice_.spec
    source: Device | None = device if spec.per_device_node_selection else None
    if source is not None:
        return _place(source.node_name, source.all_nodes, source.node_selector)
    return _place(spec.node_name, spec.all_nodes, spec.node_selector)


def _place(
    node: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> NodeSelection:
    return NodeSelection(node or "", bool(all_nodes), selector)


def selector_text(selector: NodeSelector) -> str:
    """Return a node selector in short form; the node's name if it names one node."""
    if name := only_node(selector):
        return name
    return " or ".join(_term_text(term) for term in selector.node_selector_terms or ()) or NO_NODE


def only_node(selector: NodeSelector) -> str:
    """Return the node that a selector names, as allocations do, or ""."""
    match selector.node_selector_terms:
        case (NodeSelectorTerm(match_expressions=(), match_fields=(field,)),) if (
            field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1
        ):
            return field.values[0]
    return ""


def _term_text(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_fields, *term.match_expressions)
    return ",".join(map(_requirement_text, requirements)) or NO_NODE


def _requirement_text(requirement: NodeSelectorRequirement) -> str:
    match requirement.operator, requirement.values:
        case "In", (value,):
            return f"{requirement.key}={value}"
        case "NotIn", (value,):
            return f"{requirement.key}!={value}"
        case "Exists", _:
            return requirement.key
        case "DoesNotExist", _:
            return f"!{requirement.key}"
        case operator, values:
            return f"{requirement.key} {operator.lower()} ({','.join(values)})"


class NodeIndex:
    """The nodes of a cluster, found by name and by label."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.by_name = {node.metadata.name: node for node in nodes}
        self.are_known = bool(self.by_name)
        self._by_label: dict[tuple[str, str], list[Node]] = {}
        self._has: dict[NodeSelection, bool] = {}
        self._kinds = set(map(can_skip_operations, self.by_name.values())) or {True}
        for node in self.by_name.values():
            for label in (node.metadata.labels or {}).items():
                self._by_label.setdefault(label, []).append(node)

    def has(self, place: NodeSelection) -> bool:
        """Return whether some node can use such a device."""
        if not self.are_known:
            return True
        found = self._has.get(place)
        if found is None:
            nodes = self.by_name.values() if place.all_nodes else self._meant(place)
            found = self._has[place] = any(map(place.covers, nodes))
        return found

    def readable(self, slice_: ResourceSlice) -> ResourceSlice:
        """Return the slice; if no node is known, with selectors that match every node."""
        if self.are_known:
            return slice_
        spec = slice_.spec
        devices = spec.devices
        if devices is not None and spec.per_device_node_selection:
            devices = tuple(
                replace(device, node_selector=None, all_nodes=True)
                if device.node_selector is not None
                else device
                for device in devices
            )
        if spec.node_selector is not None:
            return replace(
                slice_, spec=replace(spec, node_selector=None, all_nodes=True, devices=devices)
            )
        return (
            slice_
            if devices is spec.devices
            else replace(slice_, spec=replace(spec, devices=devices))
        )

    def representing(self, slices: Iterable[ResourceSlice]) -> list[Node]:
        """Return nodes that together have every possible view of the slices:

        those that a slice or device names or selects, and one of each kind of all others, which see
        only what is for all nodes.
        """
        found: dict[str, Node] = {}
        places = list(dict.fromkeys(_places(slices)))
        if len(places) == 1:  # All nodes that see anything see all of it.
            return list(self._samples(self._all_of(places[0])))
        for place in places:
            if not place.all_nodes:
                found |= {node.metadata.name: node for node in self._meant(place)}
        if any(place.all_nodes for place in places):
            others = (node for name, node in self.by_name.items() if name not in found)
            samples = self._samples(others) if self.are_known else [_stand_in("")]
            found |= {node.metadata.name: node for node in samples}
        return list(found.values())

    def _all_of(self, place: NodeSelection) -> Iterable[Node]:
        """Return the nodes that can use a device; an unreadable selector may give more."""
        if not place.all_nodes:
            readable = place.selector is None or (read_node_selector(place.selector).fault is None)
            meant = self._meant(place)
            return filter(place.covers, meant) if readable else meant
        return self.by_name.values() if self.are_known else [_stand_in("")]

    def _meant(self, place: NodeSelection) -> Iterator[Node]:
        """Yield the node that is named, or a superset of those that the selector matches."""
        if place.node:
            node = self.by_name.get(place.node)
            if node is None and not self.are_known:
                node = _stand_in(place.node)
            if node is not None:
                yield node
        elif not place.all_nodes and place.selector is not None:
            for term in place.selector.node_selector_terms or ():
                yield from self._candidates(term)

    def _candidates(self, term: NodeSelectorTerm) -> Iterable[Node]:
        for field in term.match_fields:
            if field.operator == "In" and field.key == NAME_FIELD:
                return [self.by_name[name] for name in field.values if name in self.by_name]
        for rule in term.match_expressions:
            if rule.operator == "In":
                labels = ((rule.key, value) for value in rule.values)
                return [node for label in labels for node in self._by_label.get(label, ())]
        return self.by_name.values()

    def _samples(self, nodes: Iterable[Node]) -> Iterator[Node]:
        left = set(self._kinds)
        for node in nodes:
            kind = can_skip_operations(node)
            if kind in left:
                left.remove(kind)
                yield node
            if not left:
                return


def can_skip_operations(node: Node) -> bool:
    """Return whether the kubelet skips node operations where a slice allows it."""
    return NODE_OPERATIONS in node.status.declared_features


def _places(slices: Iterable[ResourceSlice]) -> Iterator[NodeSelection]:
    for slice_ in slices:
        spec = slice_.spec
        if spec.per_device_node_selection:
            yield from (node_selection_of(device, slice_) for device in spec.devices or ())
        else:
            yield _place(spec.node_name, spec.all_nodes, spec.node_selector)


def _stand_in(name: str) -> Node:
    return Node(
        metadata=ObjectMeta(name=name), status=NodeStatus(declared_features=(NODE_OPERATIONS,))
    )
