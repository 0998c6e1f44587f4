"""The shape of a pod: everything that decides where it goes, prepared once.

Pods of one template have one shape, so a thousand of them are read once (`Shapes`). A shape holds
what depends on the pod alone: sums of requests, sets in place of lists, selectors that were read.
What depends on other pods is in the outlook of the shape.

    # occupant: a pod on a node
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod
from mooring.api.labels import EVERYTHING, Selector, SelectorFault
from mooring.scheduler.amounts import Amounts, Weights
from mooring.scheduler.nodeneeds import (
    NodeNeed,
    NodeTaste,
    read_features,
    read_need,
    read_node_names,
    read_tastes,
)
from mooring.scheduler.podports import HostPort, host_ports
from mooring.scheduler.podrequests import asked_by, asked_in_scores, held_by, held_in_scores
from mooring.scheduler.podterms import NO_TERMS, PodTerms, read_terms
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.spreading import NO_SPREADING, Spreading, read_spreading
from mooring.scheduler.tolerations import Tolerations
from mooring.scheduler.unmodelled import unmodelled

SCHEDULING_GATES = "SchedulingGates"
NODE_NAME = "NodeName"
NODE_AFFINITY = "NodeAffinity"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"

LabelsKey = tuple[tuple[str, str], ...]


class Settings(Struct, frozen=True):
    """Which scheduler this is, and what it knows."""

    scheduler_name: str = DEFAULT_SCHEDULER
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
    images_count: int
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


def prepare(
    pod: Pod, settings: Settings = DEFAULT_SETTINGS, *, spread_selector: Selector = EVERYTHING
) -> PodShape:
    """Return the shape of a pod.

    `spread_selector` tells what it is spread with if it does not say: see `default_selector`.
    """
    spec, labels = pod.spec, pod.metadata.labels
    terms = read_terms(pod)
    spreading = read_spreading(pod, spread_selector)
    tastes = read_tastes(pod)
    tolerations = Tolerations(spec.tolerations, settings.compares_tolerations)
    node_names, elsewhere, conflict = _named_nodes(pod)
    images = _images(pod)
    return PodShape(
        namespace=pod.metadata.namespace,
        labels=labels,
        labels_key=tuple(sorted(labels.items())),
        asked=asked_by(pod),
        asked_in_scores=asked_in_scores(pod),
        ports=host_ports(pod),
        need=read_need(pod),
        node_name=spec.node_name,
        node_names=node_names,
        elsewhere=elsewhere,
        tolerations=tolerations,
        features=read_features(pod),
        tastes=() if isinstance(tastes, SelectorFault) else tastes,
        soft_tolerations=tolerations.soft(),
        images=images,
        images_count=len(images),
        terms=NO_TERMS if isinstance(terms, SelectorFault) else terms,
        spreading=NO_SPREADING if isinstance(spreading, SelectorFault) else spreading,
        held=held_by(pod, with_claims=settings.counts_claims),
        held_in_scores=held_in_scores(pod, with_claims=settings.counts_claims),
        obstacle=_gates(pod)
        or unmodelled(pod, scheduler_name=settings.scheduler_name, is_admitted=settings.is_admitted)
        or conflict
        or _unreadable(terms, spreading, tastes),
    )


def _gates(pod: Pod) -> Refusal | None:
    if not pod.spec.scheduling_gates:
        return None
    listed = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    text = f"waiting for scheduling gates: [{listed}]"
    return Refusal(SCHEDULING_GATES, (text,), is_unresolvable=True)


def _named_nodes(pod: Pod) -> tuple[frozenset[str] | None, Refusal | None, Refusal | None]:
    """Return the nodes that the pod names, what is said of others, and why there can be none."""
    by_affinity = read_node_names(pod)
    if by_affinity is not None and not by_affinity:
        text = "pod affinity terms conflict"
        return None, None, Refusal(NODE_AFFINITY, (text,), is_unresolvable=True)
    named = {NODE_NAME: frozenset((pod.spec.node_name,))} if pod.spec.node_name else {}
    if by_affinity is not None:
        named[NODE_AFFINITY] = by_affinity
    if not named:
        return None, None, None
    plugins = " ".join(sorted(named))
    said = f"node(s) didn't satisfy plugin(s) [{plugins}]"
    nodes = frozenset.intersection(*named.values())
    if not nodes:
        return None, None, Refusal("", (f"{said} simultaneously",), is_unresolvable=True)
    return nodes, Refusal("", (said,), is_unresolvable=True), None


def _unreadable(
    terms: PodTerms | SelectorFault,
    spreading: Spreading | SelectorFault,
    tastes: tuple[NodeTaste, ...] | SelectorFault,
) -> Obstacle | None:
    if isinstance(spreading, SelectorFault):
        text = f'running PreFilter plugin "{POD_TOPOLOGY_SPREAD}": get constraints from pod: '
        return Fault(POD_TOPOLOGY_SPREAD, text + spreading.text)
    if isinstance(terms, SelectorFault):
        text = f"parsing pod: {terms.text}"
        return Refusal(INTER_POD_AFFINITY, (text,), is_unresolvable=True)
    if isinstance(tastes, SelectorFault):
        return Fault(NODE_AFFINITY, f'running PreScore plugin "{NODE_AFFINITY}": {tastes.text}')
    return None


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
