"""Does a node selector match a node? Unreadable selectors are a fault, as in Kubernetes."""

from __future__ import annotations

from functools import lru_cache

from mooring.allocator.errors import AllocationError
from mooring.api.core.node import Node
from mooring.api.nodequery import NodeQuery, read_node_selector
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement


def matches_node(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Return whether devices with this node selection can be used on the node."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    query, fault = _read(selector)
    if fault is not None:
        raise AllocationError(f"failed to parse node selector {_go_text(selector)}: {fault}")
    return query.matches(node.metadata.name, node.metadata.labels or {})


@lru_cache(maxsize=1024)
def _read(selector: NodeSelector) -> tuple[NodeQuery, str | None]:
    query = read_node_selector(selector)
    return query, query.fault


def _go_text(selector: NodeSelector) -> str:
    """Return the selector as Kubernetes prints it in its messages."""
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_go_requirements(term.match_expressions)},"
        f"MatchFields:{_go_requirements(term.match_fields)},}},"
        for term in selector.node_selector_terms or ()
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _go_requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> str:
    shown = "".join(
        f"NodeSelectorRequirement{{Key:{requirement.key},Operator:{requirement.operator},"
        f"Values:[{' '.join(requirement.values)}],}},"
        for requirement in requirements
    )
    return f"[]NodeSelectorRequirement{{{shown}}}"
