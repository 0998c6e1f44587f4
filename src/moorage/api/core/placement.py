"""Where pods may go (core/v1): node selectors, affinity, taints, tolerations and spreading."""

from __future__ import annotations

from moorage.api.meta import LabelSelector
from moorage.api.structs import Checked, Closed, Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp


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


NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(Open, frozen=True, gc=False):
    """A mark that keeps pods without a toleration away from a node."""

    key: str = always("")
    value: str = ""
    effect: str = always("")
    time_added: Timestamp | None = None


class Toleration(Open, frozen=True, gc=False):
    """Taints of nodes that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class PreferredSchedulingTerm(Open, frozen=True, gc=False):
    """Nodes that are better by some weight."""

    weight: Int32 = always(0)
    preference: NodeSelectorTerm = always(NodeSelectorTerm())


class NodeAffinity(Open, frozen=True, gc=False):
    """Nodes that a pod must or should go to."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Open, frozen=True, gc=False):
    """Other pods, and the topology in which to be near them or apart from them."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = always("")
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Open, frozen=True, gc=False):
    """A term that counts by some weight."""

    weight: Int32 = always(0)
    pod_affinity_term: PodAffinityTerm = always(PodAffinityTerm())


class PodAffinity(Open, frozen=True, gc=False):
    """Pods that a pod must or should be near."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(Open, frozen=True, gc=False):
    """Pods that a pod must or should be apart from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Open, frozen=True, gc=False):
    """All rules on the company that a pod keeps."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Open, frozen=True, gc=False):
    """How evenly matching pods must be spread over the domains of a topology."""

    max_skew: Int32 = always(0)
    topology_key: str = always("")
    when_unsatisfiable: str = always("")
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
