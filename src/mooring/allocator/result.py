"""Put the picks together to the AllocationResult of each claim, as Kubernetes assembles it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mooring.allocator.asks import Ask, Choice
from mooring.allocator.errors import AllocationError
from mooring.allocator.problem import Problem
from mooring.allocator.search import Pick, Solution
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

NewShareId = Callable[[], str]


def assemble(
    problem: Problem,
    claims: Sequence[ResourceClaim],
    solution: Solution,
    new_share_id: NewShareId,
) -> tuple[AllocationResult, ...]:
    """Return the result of each claim."""
    picks: list[list[Pick]] = [[] for _ in claims]
    for pick in solution.picks:
        picks[pick.ask.claim].append(pick)
    chosen: list[list[tuple[Choice, Ask]]] = [[] for _ in claims]
    for choice, ask in zip(problem.plan.choices, solution.chosen, strict=True):
        chosen[choice.claim].append((choice, ask))
    return tuple(
        [
            AllocationResult(
                devices=DeviceAllocationResult(
                    results=tuple([_device(problem, p, new_share_id) for p in picks[number]]),
                    config=_configuration(claim, chosen[number]),
                ),
                node_selector=node_selector(problem, picks[number], claim),
            )
            for number, claim in enumerate(claims)
        ]
    )


def _device(
    problem: Problem, pick: Pick, new_share_id: NewShareId
) -> DeviceRequestAllocationResult:
    ask, position = pick
    view = problem.view
    device, slice_ = view.spots[position]
    spec = slice_.spec
    share_id = consumed = None
    if view.shareable >> position & 1:
        share_id = new_share_id()
        consumed = problem.slots[ask].consumed.get(position)
    with_binding = view.features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=ask.full_name,
        driver=spec.driver,
        pool=spec.pool.name,
        device=device.name,
        admin_access=True if ask.is_admin else None,
        tolerations=ask.wish.tolerations,
        binding_conditions=device.binding_conditions if with_binding else (),
        binding_failure_conditions=device.binding_failure_conditions if with_binding else (),
        share_id=share_id,
        consumed_capacity=dict(consumed) if consumed else None,
        skip_node_operations=spec.skip_node_operations,
    )


# --- configuration ------------------------------------------------------------------------------


def _configuration(
    claim: ResourceClaim, chosen: Sequence[tuple[Choice, Ask]]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configuration of the classes, each once, then that of the claim."""
    classes: dict[str, list[str]] = {}
    for _, ask in chosen:
        if ask.device_class.spec.config:
            classes.setdefault(ask.device_class.metadata.name, []).append(ask.full_name)
    if not classes and not claim.spec.devices.config:
        return ()
    found: list[DeviceAllocationConfiguration] = []
    for _, ask in chosen:
        requests = classes.pop(ask.device_class.metadata.name, None)
        if requests is not None:
            found += [
                DeviceAllocationConfiguration(
                    source="FromClass",
                    requests=_unless_all(requests, chosen),
                    opaque=config.opaque,
                )
                for config in ask.device_class.spec.config
            ]
    found += [
        DeviceAllocationConfiguration(
            source="FromClaim",
            requests=_unless_all(config.requests, chosen),
            opaque=config.opaque,
        )
        for config in claim.spec.devices.config
        if _applies(config, chosen)
    ]
    return tuple(found)


def _applies(config: DeviceClaimConfiguration, chosen: Sequence[tuple[Choice, Ask]]) -> bool:
    return not config.requests or any(
        _is_named(choice, ask, config.requests) for choice, ask in chosen
    )


def _is_named(choice: Choice, ask: Ask, requests: Sequence[str]) -> bool:
    """Return whether the request, or the alternative that was chosen, is among the requests."""
    return choice.name in requests or ask.full_name in requests


def _unless_all(requests: Sequence[str], chosen: Sequence[tuple[Choice, Ask]]) -> tuple[str, ...]:
    """Return the requests; none if they are all there are, since none means all."""
    if all(_is_named(choice, ask, requests) for choice, ask in chosen):
        return ()
    return tuple(requests)


# --- node selector ------------------------------------------------------------------------------


def node_selector(
    problem: Problem, picks: Iterable[Pick], claim: ResourceClaim
) -> NodeSelector | None:
    """Return on which nodes the devices of a claim can be used; None for all."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pick in picks:
        device, slice_ = problem.view.spots[pick.position]
        source = device if slice_.spec.per_device_node_selection else slice_.spec
        if source.node_name is not None or device.binds_to_node:
            return problem.view.this_node
        terms = source.node_selector.node_selector_terms if source.node_selector else None
        if not terms:
            continue
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        _add(terms[0].match_fields, fields)
        _add(terms[0].match_expressions, expressions)
    if not (fields or expressions):
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add(
    requirements: Iterable[NodeSelectorRequirement], found: list[NodeSelectorRequirement]
) -> None:
    """Add the requirements that are not there yet, in whatever order of values."""
    for requirement in requirements:
        if not any(_is_same(requirement, other) for other in found):
            found.append(requirement)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and set(one.values) == set(other.values)
    )
