"""The objects around the one at hand: nodes, namespaces, claims, groups, pods and slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from mooring.allocator.errors import AllocationError
from mooring.allocator.nodes import matches_node
from mooring.allocator.pools import PoolId
from mooring.api.core import Namespace, Node
from mooring.api.gates import Gates
from mooring.api.meta import ObjectMeta
from mooring.api.nodeselector import NodeSelector
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from mooring.api.scheduling import PodGroup
from mooring.api.timestamp import NO_TIME
from mooring.claims.owners import controller_of
from mooring.insight.lint.podparts import DEFAULT_NAMESPACE, PodPart, pod_part_of
from mooring.insight.lint.pools import Pool, pools_of
from mooring.insight.lint.sightings import Sightings
from mooring.insight.objects import Object
from mooring.validation.context import Context


class Key(NamedTuple):
    """What names an object of a kind in a namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Identity(NamedTuple):
    """What tells an object from all others."""

    kind: str
    full_name: str


class Surroundings:
    """Every object given, to be found by its name."""

    def __init__(self, objects: Iterable[Object] = (), context: Context | None = None) -> None:
        self.context = context or Context(gates=Gates.parse(""), now=NO_TIME)
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.claims: dict[Key, ResourceClaim] = {}
        self.templates: dict[Key, ResourceClaimTemplate] = {}
        self.groups: dict[Key, PodGroup] = {}
        self.latest: dict[Identity, Object] = {}  # of objects with the same name
        self._pod_parts: list[PodPart] = []
        self._slices: list[ResourceSlice] = []
        self._selects: dict[NodeSelector, bool] = {}
        for each in objects:
            self._add(each)

    def _add(self, found: Object) -> None:
        metadata = found.value.metadata
        if metadata.name:
            self.latest[identity_of(found)] = found
        match found.value:
            case Node():
                self.nodes[metadata.name] = found.value
            case Namespace():
                self.namespaces[metadata.name] = found.value
            case ResourceClaim():
                self.claims[key_of(metadata)] = found.value
            case ResourceClaimTemplate():
                self.templates[key_of(metadata)] = found.value
            case PodGroup():
                self.groups[key_of(metadata)] = found.value
            case ResourceSlice():
                self._slices.append(found.stored or found.value)
            case _:
                part = pod_part_of(found.value)
                if part is not None:
                    self._pod_parts.append(part)

    def later(self, found: Object) -> Object | None:
        """Return the object of the same name that takes the place of this one, if one does."""
        latest = self.latest.get(identity_of(found))
        return None if latest is None or latest.value is found.value else latest

    # --- slices ---------------------------------------------------------------------------

    @cached_property
    def pools(self) -> dict[PoolId, Pool]:
        """The pools of all slices."""
        return pools_of(self._slices)

    @cached_property
    def sightings(self) -> Sightings:
        """What was seen of the attributes of all devices in pools."""
        return Sightings(slice_ for pool in self.pools.values() for slice_ in pool.slices)

    def selects_some_node(self, selector: NodeSelector) -> bool:
        """Whether some node matches; one that cannot be read is somebody else's business."""
        if selector not in self._selects:
            self._selects[selector] = any(
                _matches(node, selector) for node in self._candidates(selector)
            )
        return self._selects[selector]

    def _candidates(self, selector: NodeSelector) -> Iterable[Node]:
        """Return nodes among which all matching ones are, few where a label says which."""
        terms = selector.node_selector_terms or ()
        if len(terms) != 1:
            return self.nodes.values()
        for requirement in terms[0].match_expressions:
            if requirement.operator == "In":
                labels = ((requirement.key, value) for value in requirement.values)
                return [node for label in labels for node in self._nodes_by_label.get(label, ())]
        return self.nodes.values()

    @cached_property
    def _nodes_by_label(self) -> dict[tuple[str, str], list[Node]]:
        found: dict[tuple[str, str], list[Node]] = {}
        for node in self.nodes.values():
            for label in node.metadata.labels.items():
                found.setdefault(label, []).append(node)
        return found

    @cached_property
    def node_resources(self) -> Counter[str]:
        """How many nodes have some of each resource of their own."""
        return Counter(
            name
            for node in self.nodes.values()
            for name, quantity in node.status.allocatable.items()
            if not quantity.is_zero
        )

    # --- pods -----------------------------------------------------------------------------

    def is_made_by_given(self, metadata: ObjectMeta) -> bool:
        """Whether an object was made by a controller that is given, too, and speaks for it."""
        owner = controller_of(metadata)
        if owner is None:
            return False
        namespace = metadata.namespace or DEFAULT_NAMESPACE
        return Identity(owner.kind, f"{namespace}/{owner.name}") in self.latest

    @cached_property
    def pod_parts(self) -> tuple[PodPart, ...]:
        """All pods and templates of pods but those that are over or spoken for by a controller."""
        return tuple(
            part
            for part in self._pod_parts
            if not part.is_over and not self.is_made_by_given(part.metadata)
        )

    def pods_of(self, part: PodPart) -> int:
        """Return how many pods there will be."""
        return len(self.nodes) or 1 if part.pods is None else part.pods

    @cached_property
    def users(self) -> dict[Key, list[PodPart]]:
        """Who uses each claim by its name."""
        users: dict[Key, list[PodPart]] = {}
        for part in self.pod_parts:
            for name in {entry.resource_claim_name for entry in part.spec.resource_claims}:
                if name is not None:
                    users.setdefault(Key(part.namespace, name), []).append(part)
        return users

    @cached_property
    def members(self) -> Counter[Key]:
        """How many pods each group has."""
        members: Counter[Key] = Counter()
        for part in self.pod_parts:
            if part.group_name is not None:
                members[Key(part.namespace, part.group_name)] += self.pods_of(part)
        return members

    @cached_property
    def has_template_users(self) -> bool:
        """Whether some pod uses a claim from a template."""
        return any(
            entry.resource_claim_template_name
            for part in self.pod_parts
            for entry in part.spec.resource_claims
        )

    @cached_property
    def has_admin_access(self) -> bool:
        """Whether some claim asks for admin access."""
        specs = (claim.spec for claim in self.claims.values())
        template_specs = (template.spec.spec for template in self.templates.values())
        return any(
            request.exactly is not None and request.exactly.admin_access
            for spec in (*specs, *template_specs)
            for request in spec.devices.requests or ()
        )


def key_of(metadata: ObjectMeta) -> Key:
    """Return what names an object in its namespace."""
    return Key(metadata.namespace or DEFAULT_NAMESPACE, metadata.name)


def identity_of(found: Object) -> Identity:
    """Return what tells an object from all others."""
    return Identity(found.kind.name, found.full_name)


def _matches(node: Any, selector: NodeSelector) -> bool:
    try:
        return matches_node(node, node_name=None, all_nodes=None, selector=selector)
    except AllocationError:
        return True
