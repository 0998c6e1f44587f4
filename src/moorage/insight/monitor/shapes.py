"""Shapes: what most claims request, and how many more such claims get devices.

The shapes of a cluster are the templates that most pods use. Templates with the same requests are
one shape, which has the first of their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from moorage.api.codec import encode_json
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.controllers.pod_control import is_active
from moorage.insight.fit import Fit, fit_planned
from moorage.insight.messages import Concern, full_name
from moorage.insight.monitor.figures import RequestRoom, ShapeRoom
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context


class Shape(Struct, frozen=True):
    """A name, and a claim or template with the requests."""

    name: str
    model: ResourceClaim | ResourceClaimTemplate


def common_shapes(snapshot: Snapshot, most: int) -> tuple[list[Shape], int]:
    """Return the shapes that most pods use, by name, and how many others there are."""
    uses: Counter[str] = Counter()
    for pod in snapshot.pods:
        if is_active(pod):
            names = {entry.resource_claim_template_name for entry in pod.spec.resource_claims}
            uses.update(f"{pod.metadata.namespace}/{name}" for name in names if name)
    by_content: dict[bytes, tuple[Shape, int]] = {}
    for template in sorted(snapshot.templates, key=full_name):
        name = full_name(template)
        if uses[name]:
            content = encode_json(template.spec.spec)
            shape, pods = by_content.get(content, (Shape(name, template), 0))
            by_content[content] = (shape, pods + uses[name])
    ranked = sorted(by_content.values(), key=lambda each: (-each[1], each[0].name))
    kept = sorted((shape for shape, _ in ranked[:most]), key=lambda shape: shape.name)
    return kept, len(ranked) - len(kept)


def room_for(
    shapes: Iterable[Shape], planned: Plan, context: Context, *, claims_max: int
) -> tuple[ShapeRoom, ...]:
    """Return how many more claims of each shape get devices, once all pods are planned."""
    found = (
        (shape.name, fit_planned(planned, shape.model, context, replicas_max=claims_max))
        for shape in shapes
    )
    return tuple(_room(name, each) for name, each in found if not isinstance(each, Concern))


def _room(name: str, found: Fit) -> ShapeRoom:
    return ShapeRoom(name, found.total, found.is_more, tuple(_requests(found)))


def _requests(found: Fit) -> Sequence[RequestRoom]:
    left = {each.request: each.free for each in found.leftovers}
    return [
        RequestRoom(each.request, each.matching, each.free, left.get(each.request))
        for each in found.supplies
        if each.is_countable
    ]
