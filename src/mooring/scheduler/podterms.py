"""Terms about other pods: near which ones a pod must or should be, and apart from which.

# near, apart: affinity and anti-affinity
# required terms decide where a pod may go; preferred ones have a weight, negative for apart
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from mooring.api.core.placement import (
    Affinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from mooring.api.core.placement import PodAffinity as PodNearness
from mooring.api.core.pod import Pod
from mooring.api.labels import (
    EVERYTHING,
    IN,
    NOT_IN,
    NOTHING,
    Selector,
    SelectorFault,
    joined,
    read_selector,
)
from mooring.api.meta import LabelSelectorRequirement

T = TypeVar("T")


class PodTerm(Struct, frozen=True, gc=False):
    """Pods that are meant, and the topology in which to be near them or apart from them."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    weight: int = 0

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Return whether a pod with these labels in this namespace is meant."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False

    def unrolled(self, namespaces: Mapping[str, Mapping[str, str]]) -> PodTerm:
        """Return the term with names in place of a selector of namespaces.

        Only namespaces that are known are named; the empty selector stays and means all.
        """
        if self.namespace_selector in (EVERYTHING, NOTHING):
            return self
        chosen = {n for n, labels in namespaces.items() if self.namespace_selector.matches(labels)}
        return PodTerm(
            topology_key=self.topology_key,
            selector=self.selector,
            namespaces=self.namespaces | chosen,
            weight=self.weight,
        )


class PodTerms(Struct, frozen=True, gc=False):
    """All terms of one pod."""

    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether there is no term at all."""
        return not (self.near or self.apart or self.preferred)


NO_TERMS = PodTerms()


def read_terms(pod: Pod) -> PodTerms | SelectorFault:
    """Return the terms of a pod, or all faults that their selectors have."""
    affinity = pod.spec.affinity or Affinity()
    near = affinity.pod_affinity or PodNearness()
    apart = affinity.pod_anti_affinity or PodAntiAffinity()
    if near == PodNearness() and apart == PodAntiAffinity():
        return NO_TERMS
    reader = _Reader(pod)
    terms = PodTerms(
        near=reader.read(
            "requiredAffinityTerms", near.required_during_scheduling_ignored_during_execution
        ),
        apart=reader.read(
            "requiredAntiAffinityTerms", apart.required_during_scheduling_ignored_during_execution
        ),
        preferred=(
            *reader.read_weighted(
                "preferredAffinityTerms",
                near.preferred_during_scheduling_ignored_during_execution,
                sign=1,
            ),
            *reader.read_weighted(
                "preferredAntiAffinityTerms",
                apart.preferred_during_scheduling_ignored_during_execution,
                sign=-1,
            ),
        ),
    )
    return SelectorFault(joined(reader.faults)) if reader.faults else terms


class _Reader:
    """Reads lists of terms; of each list the first fault is kept."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self.faults: list[str] = []

    def read(self, place: str, terms: Iterable[PodAffinityTerm]) -> tuple[PodTerm, ...]:
        return self._read(place, terms, lambda term: _read_term(self._pod, term, 0))

    def read_weighted(
        self, place: str, terms: Iterable[WeightedPodAffinityTerm], sign: int
    ) -> tuple[PodTerm, ...]:
        return self._read(
            place,
            terms,
            lambda term: _read_term(self._pod, term.pod_affinity_term, sign * term.weight),
        )

    def _read(
        self, place: str, terms: Iterable[T], read: Callable[[T], PodTerm | SelectorFault]
    ) -> tuple[PodTerm, ...]:
        found = []
        for term in terms:
            one = read(term)
            if isinstance(one, SelectorFault):
                self.faults.append(f"{place}: {one.text}")
                return ()
            found.append(one)
        return tuple(found)


def _read_term(pod: Pod, term: PodAffinityTerm, weight: int) -> PodTerm | SelectorFault:
    selector = read_selector(term.label_selector)
    if isinstance(selector, SelectorFault):
        return selector
    namespace_selector = read_selector(term.namespace_selector)
    if isinstance(namespace_selector, SelectorFault):
        return namespace_selector
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset((pod.metadata.namespace,))
    return PodTerm(
        topology_key=term.topology_key,
        selector=_with_label_keys(selector, pod, term),
        namespaces=names,
        namespace_selector=namespace_selector,
        weight=weight,
    )


def _with_label_keys(selector: Selector, pod: Pod, term: PodAffinityTerm) -> Selector:
    """Return the selector with the pod's own values of the keys that must match, or must not.

    A cluster writes them into the selector when it creates the pod; then they stand there already.
    """
    if term.label_selector is None:
        return selector
    added = []
    for operator, keys in ((IN, term.match_label_keys), (NOT_IN, term.mismatch_label_keys)):
        for key in keys:
            value = pod.metadata.labels.get(key)
            if value is not None and not selector.asks_for(key):
                added.append(LabelSelectorRequirement(key=key, operator=operator, values=(value,)))
    return selector.and_requirements(added)
