"""What a solution gives each claim, as Kubernetes writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from moorage.allocator.errors import AllocationError
from moorage.allocator.problem import Problem
from moorage.allocator.requests import PlannedRequest, SubRequest
from moorage.allocator.search import Pick, Solution
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.resource.v1 import (
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
        picks[pick.request.claim].append(pick)
    chosen: list[list[tuple[PlannedRequest, SubRequest]]] = [[] for _ in claims]
    for request, subrequest in zip(problem.plan.requests, solution.chosen, strict=True):
        chosen[request.claim].append((request, subrequest))
    return tuple(
        [
            AllocationResult(
                devices=DeviceAllocationResult(
                    results=tuple(
                        [_device_result(problem, p, new_share_id) for p in picks[number]]
                    ),
                    config=_configuration(claim, chosen[number]),
                ),
                node_selector=node_selector(problem, picks[number], claim),
            )
            for number, claim in enumerate(claims)
        ]
    )


def _device_result(
    problem: Problem, pick: Pick, new_share_id: NewShareId
) -> DeviceRequestAllocationResult:
    """Return one result; shareID and consumedCapacity only for shareable devices."""
    subrequest, position = pick
    view = problem.view
    device, spec = view.devices[position], view.slice_of(position).spec
    share_id = consumed = None
    if view.shareable >> position & 1:
        share_id = new_share_id()
        consumed = problem.slots[subrequest].consumed.get(position)
    with_binding = view.features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=subrequest.full_name,
        driver=spec.driver,
        pool=spec.pool.name,
        device=device.name,
        admin_access=True if subrequest.is_admin else None,
        tolerations=subrequest.requirements.tolerations,
        binding_conditions=device.binding_conditions if with_binding else (),
        binding_failure_conditions=device.binding_failure_conditions if with_binding else (),
        share_id=share_id,
        consumed_capacity=dict(consumed) if consumed else None,
        skip_node_operations=spec.skip_node_operations,
    )


def _configuration(
    claim: ResourceClaim, chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configuration of each class once, then the claim's own."""
    classes: dict[str, list[str]] = {}
    for _, subrequest in chosen:
        if subrequest.device_class.spec.config:
            classes.setdefault(subrequest.device_class.metadata.name, []).append(
                subrequest.full_name
            )
    if not classes and not claim.spec.devices.config:
        return ()
    found: list[DeviceAllocationConfiguration] = []
    for _, subrequest in chosen:
        requests = classes.pop(subrequest.device_class.metadata.name, None)
        if requests is not None:
            found += [
                DeviceAllocationConfiguration(
                    source="FromClass",
                    requests=_unless_all(requests, chosen),
                    opaque=config.opaque,
                )
                for config in subrequest.device_class.spec.config
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


def _applies(
    config: DeviceClaimConfiguration, chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> bool:
    return not config.requests or any(
        _is_named(request, subrequest, config.requests) for request, subrequest in chosen
    )


def _is_named(request: PlannedRequest, subrequest: SubRequest, requests: Sequence[str]) -> bool:
    """Return whether the request, or the alternative that was chosen, is among the requests."""
    return request.name in requests or subrequest.full_name in requests


def _unless_all(
    requests: Sequence[str], chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> tuple[str, ...]:
    """Return the requests; none if they are all requests, since none means all."""
    if all(_is_named(request, subrequest, requests) for request, subrequest in chosen):
        return ()
    return tuple(requests)


# --- the node selector of a result ----------------------------------------------------------------


def node_selector(
    problem: Problem, picks: Iterable[Pick], claim: ResourceClaim
) -> NodeSelector | None:
    """Return the nodes on which the devices of a claim can be used; None for all."""
    view = problem.view
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pick in picks:
        device, slice_ = view.devices[pick.position], view.slice_of(pick.position)
        source = device if slice_.spec.per_device_node_selection else slice_.spec
        if source.node_name is not None or device.binds_to_node:
            return view.this_node
        terms = source.node_selector.node_selector_terms if source.node_selector else None
        if not terms:
            continue
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        _add_requirements(terms[0].match_fields, fields)
        _add_requirements(terms[0].match_expressions, expressions)
    if not (fields or expressions):
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_requirements(
    requirements: Iterable[NodeSelectorRequirement], found: list[NodeSelectorRequirement]
) -> None:
    """Add the requirements that are not there yet, ignoring the order of values."""
    for requirement in requirements:
        if not any(_same_requirement(requirement, other) for other in found):
            found.append(requirement)


def _same_requirement(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and set(one.values) == set(other.values)
    )
