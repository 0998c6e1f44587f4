"""The shape of a pod: everything that decides where it goes, prepared once.

Pods of one template have one shape, so a thousand of them are read once (`Shapes`). A shape holds
what depends on the pod alone: sums of requests, sets in place of lists, selectors that were read.
What depends on other pods is in the outlook of the shape.

    # occupant: a pod on a node
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod
from mooring.api.labels import EVERYTHING, Selector, SelectorFault
from mooring.api.nodeneeds import NodeNeed, read_need
from mooring.api.tolerations import Tolerations
from mooring.scheduler.amounts import Amounts, Weights
from mooring.scheduler.nodeneeds import NodeTaste, read_features, read_tastes
from mooring.scheduler.obstacles import named_nodes, unreadable, waiting
from mooring.scheduler.podports import HostPort, host_ports
from mooring.scheduler.podrequests import asked_by, asked_in_scores, held_by, held_in_scores
from mooring.scheduler.podterms import NO_TERMS, PodTerms, read_terms
from mooring.scheduler.refusals import Obstacle, Refusal
from mooring.scheduler.spreading import NO_SPREADING, Spreading, read_spreading
from mooring.scheduler.unmodelled import unmodelled

LabelsKey = tuple[tuple[str, str], ...]


class Settings(Struct, frozen=True):
    """Which scheduler this is, and what it knows."""

    scheduler_name: str = DEFAULT_SCHEDULER
    other_names: frozenset[str] = frozenset()  # of profiles besides, whose pods it places too
    is_admitted: bool = False  # pods come from a cluster, whose admission has completed them
    compares_tolerations: bool = False  # gate TaintTolerationComparisonOperators
    counts_claims: bool = True  # gate DRANodeAllocatableResources


DEFAULT_SETTINGS = Settings()


class PodShape(Struct, frozen=True, gc=False, eq=False):
    """What decides where pods of this shape go, and what they mean for others."""

    namespace: str
    labels: Mapping[str, str]
    labels_key: LabelsKey
    # What it needs of a node.
    asked: Amounts
    asked_in_scores: Weights
    ports: tuple[HostPort, ...]
    need: NodeNeed | None
    node_name: str
    node_names: frozenset[str] | None  # the only nodes that can be meant
    elsewhere: Refusal | None  # what is said of all others
    tolerations: Tolerations
    features: frozenset[str]
    # What it likes.
    tastes: tuple[NodeTaste, ...]
    soft_tolerations: Tolerations
    images: tuple[str, ...]
    # What it thinks of other pods.
    terms: PodTerms
    spreading: Spreading
    # What it takes where it is.
    held: Amounts
    held_in_scores: Weights
    # Why it cannot go anywhere, whatever the nodes are.
    obstacle: Obstacle | None


class Occupant(Struct, frozen=True, gc=False):
    """A pod on a node."""

    key: str
    shape: PodShape
    is_terminating: bool = False
    name: str = ""
    priority: int = 0
    started: datetime | None = None
    group: str | None = None  # that it is scheduled with

    @property
    def full_name(self) -> str:
        """Its namespace and name."""
        return f"{self.shape.namespace}/{self.name}"


def prepare(
    pod: Pod, settings: Settings = DEFAULT_SETTINGS, *, spread_selector: Selector = EVERYTHING
) -> PodShape:
    """Return the shape of a pod, which has its defaults: limits stand for missing requests.

    `spread_selector` tells what it is spread with if it does not say: see `default_selector`.
    """
    spec, labels = pod.spec, pod.metadata.labels
    terms = read_terms(pod)
    spreading = read_spreading(pod, spread_selector)
    tastes = read_tastes(pod)
    tolerations = Tolerations(spec.tolerations, settings.compares_tolerations)
    naming = named_nodes(pod)
    return PodShape(
        namespace=pod.metadata.namespace,
        labels=labels,
        labels_key=tuple(sorted(labels.items())),
        asked=asked_by(pod),
        asked_in_scores=asked_in_scores(pod),
        ports=host_ports(pod),
        need=read_need(pod),
        node_name=spec.node_name,
        node_names=naming.nodes,
        elsewhere=naming.elsewhere,
        tolerations=tolerations,
        features=read_features(pod),
        tastes=() if isinstance(tastes, SelectorFault) else tastes,
        soft_tolerations=tolerations.soft(),
        images=_images(pod),
        terms=NO_TERMS if isinstance(terms, SelectorFault) else terms,
        spreading=NO_SPREADING if isinstance(spreading, SelectorFault) else spreading,
        held=held_by(pod, with_claims=settings.counts_claims),
        held_in_scores=held_in_scores(pod, with_claims=settings.counts_claims),
        obstacle=waiting(pod)
        or unmodelled(
            pod,
            scheduler_name=settings.scheduler_name,
            other_names=settings.other_names,
            is_admitted=settings.is_admitted,
        )
        or naming.conflict
        or unreadable(terms, spreading, tastes),
    )


def _images(pod: Pod) -> tuple[str, ...]:
    """Return the images of containers and volumes, each with its tag."""
    spec = pod.spec
    named = [container.image for container in (*spec.init_containers, *spec.containers)]
    for volume in spec.volumes:
        image = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(image, dict):
            named.append(str(image.get("reference") or ""))
    return tuple(map(_with_tag, named))


def _with_tag(image: str) -> str:
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
