"""The allocation of one claim, written as its status has it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from conformance._allocation import Problem
from conformance._plain.model import Choice, Failure, Taking
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

SHARE_ID = "00000000-0000-0000-0000-000000000000"


def build_result(
    claim: ResourceClaim, chosen: list[Choice], taken: list[Taking], problem: Problem
) -> AllocationResult:
    """Return the allocation of a claim, or raise Failure."""
    results = tuple(_result(taking, problem.features) for taking in taken)
    config = tuple(_cleared(entry, chosen) for entry in _config(claim, chosen))
    try:
        selector = _node_selector(taken, problem.node.metadata.name)
    except Failure as failure:
        text = f"create NodeSelector for claim {claim.metadata.name}: {failure}"
        raise Failure(text) from None
    return AllocationResult(DeviceAllocationResult(results, config), selector)


def _result(taking: Taking, features: frozenset[str]) -> DeviceRequestAllocationResult:
    device = taking.candidate.device
    has_conditions = "DeviceBindingAndStatus" in features
    return DeviceRequestAllocationResult(
        request=taking.choice.full_name,
        driver=taking.candidate.id.driver,
        pool=taking.candidate.id.pool,
        device=taking.candidate.id.device,
        admin_access=taking.choice.is_admin or None,
        tolerations=taking.choice.ask.tolerations,
        binding_conditions=device.binding_conditions if has_conditions else (),
        binding_failure_conditions=device.binding_failure_conditions if has_conditions else (),
        share_id=None if taking.consumed is None else SHARE_ID,
        consumed_capacity=taking.consumed or None,
        skip_node_operations=taking.candidate.slice.spec.skip_node_operations,
    )


def _config(claim: ResourceClaim, chosen: list[Choice]) -> Iterable[DeviceAllocationConfiguration]:
    """Yield the configurations of classes, each once, then those of the claim."""
    classes = {choice.class_.metadata.name: choice.class_ for choice in chosen}
    for name, class_ in classes.items():
        requests = tuple(c.full_name for c in chosen if c.class_.metadata.name == name)
        for entry in class_.spec.config:
            yield DeviceAllocationConfiguration("FromClass", requests, entry.opaque)
    names = set().union(*(choice.names for choice in chosen))
    for config in claim.spec.devices.config:
        if not config.requests or names & set(config.requests):
            yield DeviceAllocationConfiguration("FromClaim", config.requests, config.opaque)


def _cleared(
    config: DeviceAllocationConfiguration, chosen: list[Choice]
) -> DeviceAllocationConfiguration:
    """Return a configuration for all requests without their names."""
    if all(choice.names & set(config.requests) for choice in chosen):
        return replace(config, requests=())
    return config


def _node_selector(taken: list[Taking], node: str) -> NodeSelector | None:
    """Return the nodes on which all devices can be used, or None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for taking in taken:
        device, slice_ = taking.candidate.device, taking.candidate.slice.spec
        selecting = device if slice_.per_device_node_selection else slice_
        if selecting.node_name is not None or device.binds_to_node:
            name = NodeSelectorRequirement("metadata.name", "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
        terms = (selecting.node_selector and selecting.node_selector.node_selector_terms) or ()
        if len(terms) > 1:
            raise Failure(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _add_new(
    requirements: Iterable[NodeSelectorRequirement], known: list[NodeSelectorRequirement]
) -> None:
    for new in requirements:
        if not any(
            (new.key, new.operator, set(new.values)) == (old.key, old.operator, set(old.values))
            for old in known
        ):
            known.append(new)
