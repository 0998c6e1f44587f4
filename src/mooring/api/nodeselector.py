"""Node selectors of core/v1, which slices, devices and allocations use."""

from __future__ import annotations

from mooring.api.checked_structs import Checked
from mooring.api.structs import Closed, always


class NodeSelectorRequirement(Closed, frozen=True, gc=False, metaclass=Checked):
    """One expression over a node's labels or fields."""

    key: str = always("")
    operator: str = always("")
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Closed, frozen=True, gc=False, metaclass=Checked):
    """Expressions that must all hold; the empty term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Closed, frozen=True, gc=False, metaclass=Checked):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = always(None)
