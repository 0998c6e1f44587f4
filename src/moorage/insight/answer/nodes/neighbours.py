"""Rules about other pods that keep a pod from a node: ports, affinity, spreading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.api.codec import to_tree
from moorage.api.core.placement import PodAffinityTerm
from moorage.insight.answer.changes.edits import APPEND, Edit, EditPath, change_of
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_pods
from moorage.insight.answer.nodes.labels import HOSTNAME, near_label
from moorage.insight.answer.nodes.replicas import fewer_pods, of_workload
from moorage.insight.messages import CAUSE_LENGTH_MAX, listed, nearest
from moorage.scheduler.affinity import AffinityTerm
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import inter_pod_affinity, node_filters, pod_topology_spread
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.resources import ALL_ADDRESSES, TCP, is_port_free, with_ports
from moorage.scheduler.topology_state import DomainCounts

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHT: Final = 100
NODES_SHOWN_MAX: Final = 2
Domains = dict[str, list[str]]  # the pods in each


def neighbour_findings(case: Case, node: str, status: Unschedulable) -> Iterator[Finding]:
    """Find the rule about other pods by which a node rejects the pod."""
    if status == node_filters.PORTS_USED:
        yield from _ports(case, case.cluster.snapshot.nodes[node])
    elif status == inter_pod_affinity.NO_AFFINITY:
        yield from _affinity(case, node)
    elif status == inter_pod_affinity.ANTI_AFFINITY:
        yield from _anti_affinity(case, node)
    elif status == inter_pod_affinity.EXISTING_ANTI_AFFINITY:
        yield from _kept_away(case, node)
    elif status.plugin == pod_topology_spread.PLUGIN:
        yield from _spread(case, node, is_labelled=status != pod_topology_spread.NO_DOMAIN)


# --- ports ----------------------------------------------------------------------------------


def _ports(case: Case, state: NodeInfo) -> Iterator[Finding]:
    node, source = state.facts.name, case.sources.of_pod(case.pod)
    spec = case.pod.spec
    lasting = [("containers", *each) for each in enumerate(spec.containers)]
    lasting += [("initContainers", *e) for e in enumerate(spec.init_containers) if e[1].is_sidecar]
    for field, index, container in lasting:
        for number, port in enumerate(container.ports):
            wanted = (port.host_ip or ALL_ADDRESSES, (port.protocol or TCP, port.host_port))
            users = [
                pod
                for pod in state.pods.values()
                if not is_port_free(wanted, with_ports({}, pod.signature.host_ports))
            ]
            if not port.host_port or not users:
                continue
            edit = Edit((field, index, "ports", number, "hostPort"))
            proposals = list(waits_for_pods(case, users, node))
            if source is not None:
                text = f"do without host port {port.host_port} in container {container.name}"
                proposals.append(Proposal(text, FixRank.LESS, (source.change(edit),)))
            yield Finding(
                f"host port {port.host_port} is in use on node {node} by pod "
                f"{listed([pod.name for pod in users])}",
                tuple(proposals),
            )


# --- affinity -------------------------------------------------------------------------------


def _affinity(case: Case, node: str) -> Iterator[Finding]:
    """Find pods that the pod wants to be near, and that are not there."""
    affinity = case.pod.spec.affinity and case.pod.spec.affinity.pod_affinity
    written = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    terms = case.cluster.signature(case.pod).affinity_terms.affinity
    for index, (term, rule) in enumerate(zip(terms, written, strict=False)):
        where, wanted = _nodes_with(case, term), _pods_text(rule)
        near = f"the pod affinity wants {wanted} on the same {term.topology_key}"
        path = ("affinity", "podAffinity", REQUIRED, index)
        given_up = _softened(case, "podAffinity", index, wanted, near=True)
        if where:
            if node in where:
                continue
            cause = f"{near}: they are on {listed(where)}"
            yield Finding(cause, tuple(given_up))
            continue
        meant = _meant(case, _match_labels(rule))
        hint = f": did you mean {_labels_text(meant)}?" if meant else ""
        cause = f"{near}, no pod with a node is such a pod{hint}"
        yield Finding(cause, (*_renamed(case, path, meant), *given_up))


def _renamed(case: Case, path: EditPath, meant: Mapping[str, str]) -> Iterator[Proposal]:
    source = case.sources.of_pod(case.pod)
    if source is None or not meant:
        return
    base = (*path, "labelSelector", "matchLabels")
    change = source.change(*(Edit((*base, key), value) for key, value in meant.items()))
    text = f"let the pod affinity want {_labels_text(meant)}"
    yield Proposal(text, FixRank.REPAIR, (change,))


def _meant(case: Case, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the values that labels of placed pods have, where they are similar."""
    known: dict[str, set[str]] = {}
    for _, pod in _placed(case):
        for key, value in pod.signature.labels.items():
            known.setdefault(key, set()).add(value)
    return {
        key: meant
        for key, value in labels.items()
        if value not in known.get(key, ()) and (meant := nearest(value, known.get(key, ())))
    }


def _anti_affinity(case: Case, node: str) -> Iterator[Finding]:
    """Find the pods that the pod does not want to be near, and that are in every domain."""
    affinity = case.pod.spec.affinity and case.pod.spec.affinity.pod_anti_affinity
    written = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    terms = case.cluster.signature(case.pod).affinity_terms.anti_affinity
    for index, (term, rule) in enumerate(zip(terms, written, strict=False)):
        domains = _pods_of_domains(case, term)
        own = case.cluster.snapshot.nodes[node].facts.labels.get(term.topology_key)
        here = domains.get(own or "")
        if not here:
            continue
        key = term.topology_key
        cause = (
            _everywhere(case, key, rule, domains)
            if len(domains) > 1 and all(domains.values())
            else f"the pod's anti-affinity keeps it from {node}: pod "
            f"{listed(here, shown_max=NODES_SHOWN_MAX)} has the same {key}"
        )
        another = f"like {node}" if key == HOSTNAME else f"in another {key}"
        proposals = (
            *fewer_pods(case),
            *waits_for_pods(case, _pods_about(case, term)),
            *_softened(case, "podAntiAffinity", index, f"another {key}"),
            Proposal(f"add a node {another}", FixRank.HARDWARE),
        )
        yield Finding(cause, proposals)


def _everywhere(case: Case, key: str, rule: PodAffinityTerm, domains: Domains) -> str:
    """Return the cause where every domain has pods that the pod does not want to be near."""
    cause = of_workload(
        case,
        f"the pod's anti-affinity wants no {_pods_text(rule)} on the same {key}, and all "
        f"{len(domains)} have some",
    )
    there = [f"{name} ({listed(pods, shown_max=1)})" for name, pods in sorted(domains.items())]
    full = f"{cause}: {listed(there, shown_max=NODES_SHOWN_MAX)}"
    return full if len(full) <= CAUSE_LENGTH_MAX else cause


def _pods_of_domains(case: Case, term: AffinityTerm) -> Domains:
    """Return the pods that a term is about, by topology domain; nodes without label are in none."""
    found: Domains = {}
    for state in case.cluster.snapshot.nodes.values():
        domain = state.facts.labels.get(term.topology_key)
        if domain is not None:
            found.setdefault(domain, []).extend(
                pod.name for pod in state.pods.values() if _is_about(term, pod)
            )
    return found


def _pods_about(case: Case, term: AffinityTerm) -> Iterator[PodInfo]:
    """Yield the placed pods that a term is about."""
    yield from (pod for _, pod in _placed(case) if _is_about(term, pod))


def _kept_away(case: Case, node: str) -> Iterator[Finding]:
    labels, nodes = case.pod.metadata.labels, case.cluster.snapshot.nodes
    keepers = [
        pod
        for state, pod in _placed(case)
        for term in pod.signature.affinity_terms.anti_affinity
        if _is_together(state, nodes[node], term) and term.matches(case.namespace, labels, {})
    ]
    if keepers:
        yield Finding(
            f"the anti-affinity of pod {keepers[0].name} keeps pods with {_labels_text(labels)} "
            f"from {node}",
            tuple(waits_for_pods(case, keepers)),
        )


def _softened(
    case: Case, kind: str, index: int, what: str, *, near: bool = False
) -> Iterator[Proposal]:
    """Yield a required term as a preferred one."""
    source = case.sources.of_pod(case.pod)
    affinity: Any = case.pod.spec.affinity
    if source is None or affinity is None:
        return
    rules = affinity.pod_affinity if near else affinity.pod_anti_affinity
    term = to_tree(rules.required_during_scheduling_ignored_during_execution[index])
    base = ("affinity", kind)
    value = {"weight": WEIGHT, "podAffinityTerm": term}
    edits = (Edit((*base, PREFERRED, APPEND), value), Edit((*base, REQUIRED, index)))
    text = f"prefer {what} instead of requiring it: {PREFERRED}"
    yield Proposal(text, FixRank.LESS, (source.change(*edits),))


# --- spreading ------------------------------------------------------------------------------


def _spread(case: Case, node: str, *, is_labelled: bool) -> Iterator[Finding]:
    source = case.sources.of_pod(case.pod)
    labels = case.cluster.snapshot.nodes[node].facts.labels
    written = enumerate(case.pod.spec.topology_spread_constraints)
    hard = [each for each in written if each[1].when_unsatisfiable == "DoNotSchedule"]
    state = case.cluster.snapshot.topology_state(case.cluster.signature(case.pod))
    for (index, rule), counts in zip(hard, state.hard_spread, strict=False):
        key = rule.topology_key
        if key in labels if not is_labelled else not _is_uneven(counts, labels):
            continue
        proposals: list[Proposal] = []
        if source is not None:
            edit = Edit(("topologySpreadConstraints", index, "whenUnsatisfiable"), "ScheduleAnyway")
            text = f"prefer an even spread over {key}: whenUnsatisfiable ScheduleAnyway"
            proposals.append(Proposal(text, FixRank.LESS, (source.change(edit),)))
        if is_labelled:
            cause = (
                f"the topology spread constraint over {key} (maxSkew {rule.max_skew}) keeps the "
                f"pod from {node}: too many of its pods are there already"
            )
            yield Finding(cause, tuple(proposals))
            return
        yield _unlabelled(case, node, index, key, proposals)
        return


def _is_uneven(counts: DomainCounts, labels: Mapping[str, str]) -> bool:
    """Return whether one pod more on a node with these labels would be too many."""
    constraint = counts.constraint
    pods = counts.pods_in.get(labels.get(constraint.topology_key, ""), 0)
    return pods + constraint.counts_itself - counts.minimum > constraint.max_skew


def _unlabelled(
    case: Case, node: str, index: int, key: str, proposals: Sequence[Proposal]
) -> Finding:
    source, nodes = case.sources.of_pod(case.pod), case.cluster.snapshot.nodes
    known = {label for state in nodes.values() for label in state.facts.labels}
    meant = None if key in known else near_label(key, known)
    found = list(proposals)
    if meant is not None and source is not None:
        edit = Edit(("topologySpreadConstraints", index, "topologyKey"), meant)
        text = f"spread over {meant} instead of {key}"
        found.append(Proposal(text, FixRank.REPAIR, (source.change(edit),)))
    for each in case.snapshot.nodes:
        if each.metadata.name == node:
            change = change_of(each, Edit(("metadata", "labels", key), node))
            text = f"label node {node} {key}={node} (an administrator's change)"
            found.append(Proposal(text, FixRank.ADMINISTRATOR, (change,)))
    lacking = f"node {node} lacks" if key in known or len(nodes) == 1 else "no node has"
    hint = f": did you mean {meant}?" if meant else ""
    cause = f"the topology spread constraint needs label {key}, which {lacking}{hint}"
    return Finding(cause, tuple(found))


# --- other pods -----------------------------------------------------------------------------


def _placed(case: Case) -> Iterator[tuple[NodeInfo, PodInfo]]:
    for state in case.cluster.snapshot.nodes.values():
        for pod in state.pods.values():
            yield state, pod


def _nodes_with(case: Case, term: AffinityTerm) -> list[str]:
    return [
        name
        for name, state in case.cluster.snapshot.nodes.items()
        if any(_is_about(term, pod) for pod in state.pods.values())
    ]


def _is_together(one: NodeInfo, other: NodeInfo, term: AffinityTerm) -> bool:
    """Return whether nodes share a topology domain; without the label a node is in none."""
    value = one.facts.labels.get(term.topology_key)
    return value is not None and value == other.facts.labels.get(term.topology_key)


def _is_about(term: AffinityTerm, pod: PodInfo) -> bool:
    return term.matches(pod.signature.namespace, pod.signature.labels, {})


def _match_labels(rule: PodAffinityTerm) -> Mapping[str, str]:
    return rule.label_selector.match_labels if rule.label_selector is not None else {}


def _pods_text(rule: PodAffinityTerm) -> str:
    """Return the pods that a term is about."""
    labels = _labels_text(_match_labels(rule))
    return f"pods with {labels}" if labels else "other pods"


def _labels_text(labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    return listed([f"{key}={value}" for key, value in pairs])
