"""Why nodes reject a pod for a reason other than devices: the cause, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mooring.api.core.pod import Container
from mooring.claims.extended_resources import is_device_resource
from mooring.insight.answer.edits import APPEND, REMOVED, Edit, ObjectChange, change_of
from mooring.insight.answer.finding import Case, Finding, FixRank, Proposal
from mooring.insight.answer.sources import Source
from mooring.insight.explain.nodes import INSUFFICIENT, amount, quantity, shown
from mooring.insight.explain.verdicts import NodeVerdict
from mooring.insight.messages import listed, nearest, taint_text
from mooring.scheduler.plugins import node_affinity, node_filters, node_resources, taint_toleration
from mooring.scheduler.plugins.dynamic_resources import NOT_AVAILABLE

HOSTNAME: Final = "kubernetes.io/hostname"
NODES_TRIED_MAX: Final = 3


def node_findings(case: Case, verdict: NodeVerdict) -> Iterator[Finding]:
    """Find why a node rejects the pod for another reason than its devices."""
    name = verdict.nodes[0]
    status = case.explanation.pending.diagnosis.node_to_status.get(name)
    yield from claims_elsewhere(case)
    if status is None:
        return
    match status.plugin:
        case node_resources.PLUGIN:
            yield from _resources(case, name, status.reasons)
        case taint_toleration.PLUGIN:
            yield from _taints(case, name)
        case node_affinity.PLUGIN:
            yield from _labels(case, verdict.nodes)
        case node_filters.CORDONED.plugin:
            yield Finding(
                f"node {name}, which would do, is cordoned",
                (
                    Proposal(
                        f"kubectl uncordon {name}, once its administrator agrees",
                        FixRank.ADMINISTRATOR,
                    ),
                ),
            )
    yield Finding(f"{', '.join(status.reasons)} on {listed(verdict.nodes)}")


# --- claims with devices elsewhere ----------------------------------------------------------


def claims_elsewhere(case: Case) -> Iterator[Finding]:
    """Find allocated claims whose devices are on nodes that the pod cannot use."""
    for entry in case.pod.spec.resource_claims:
        name = entry.resource_claim_name
        claim = case.cluster.find_claim(case.namespace, name) if name else None
        allocation = None if claim is None else claim.status.allocation
        if claim is None or allocation is None:
            continue
        nodes = _nodes_of(allocation)
        if not nodes:
            continue
        yield from _pinned(case, name or "", nodes)


def _nodes_of(allocation: Any) -> list[str]:
    selector = allocation.node_selector
    found: list[str] = []
    for term in () if selector is None else selector.node_selector_terms or ():
        for each in term.match_fields:
            if each.key == "metadata.name" and each.operator == "In":
                found += each.values
    return found


def _pinned(case: Case, claim: str, nodes: Sequence[str]) -> Iterator[Finding]:
    status = case.explanation.pending.diagnosis.node_to_status
    here = [node for node in nodes if node in case.cluster.snapshot.nodes]
    if not here:
        yield Finding(
            f"claim {claim} is allocated on node {listed(list(nodes))}, which is gone",
            (
                Proposal(
                    f"delete the pods that use claim {claim}, so that it is allocated anew",
                    FixRank.FREE,
                ),
            ),
        )
        return
    rejection = status.get(here[0])
    why = (
        ""
        if rejection is None or rejection == NOT_AVAILABLE
        else f", which rejects the pod: {', '.join(rejection.reasons)}"
    )
    selector = case.pod.spec.node_selector.get(HOSTNAME)
    if selector is not None and selector not in here:
        why = f", but the node selector wants {selector}"
    yield Finding(
        f"claim {claim} is allocated on {listed(here)}{why}",
        tuple(_pinned_fixes(case, claim, here, selector)),
    )


def _pinned_fixes(
    case: Case, claim: str, nodes: Sequence[str], selector: str | None
) -> Iterator[Proposal]:
    source = case.sources.of_pod(case.pod)
    if source is None:
        return
    if selector is not None:
        change = source.change(Edit(("nodeSelector", HOSTNAME), nodes[0]))
        text = f"let the node selector want {nodes[0]}, where claim {claim} has its devices"
        yield Proposal(text, FixRank.REPAIR, (change,))
    elif case.pod.spec.node_selector:
        change = source.change(Edit(("nodeSelector",)))
        text = f"remove the node selector, which keeps the pod from {nodes[0]}"
        yield Proposal(text, FixRank.GIVE, (change,))


# --- amounts --------------------------------------------------------------------------------


def _resources(case: Case, node: str, reasons: Sequence[str]) -> Iterator[Finding]:
    state = case.cluster.snapshot.nodes[node]
    requested = case.cluster.signature(case.pod).requests
    for text in reasons:
        if not text.startswith(INSUFFICIENT):
            continue
        name = text.removeprefix(INSUFFICIENT)
        total = amount(state.facts.allocatable, name)
        free = total - amount(state.requested, name)
        if not total and is_device_resource(name):
            yield _unbacked(case, name)
            continue
        wanted = amount(requested, name)
        is_ever = wanted <= total
        fact = (
            f"{shown(free, name)} of {shown(total, name)} free"
            if is_ever
            else f"{shown(total, name)} in all"
        )
        yield Finding(
            f"{shown(wanted, name)} of {name} asked for, node {node} has {fact}",
            tuple(_less(case, name, wanted, free)),
        )


def _less(case: Case, name: str, wanted: int, free: int) -> Iterator[Proposal]:
    """Yield the pod with one container asking for less."""
    source = case.sources.of_pod(case.pod)
    if source is None or free <= 0:
        return
    by = wanted - free
    for index, container in enumerate(case.pod.spec.containers):
        own = container.resources.requests.get(name)
        if own is None:
            continue
        have = own.milli_value if name == "cpu" else own.value
        if have - by <= 0:
            continue
        less = str(quantity(have - by, name))
        edits = [Edit(("containers", index, "resources", "requests", name), less)]
        if name in container.resources.limits and _is_derived(container, name):
            edits = [Edit(("containers", index, "resources", "limits", name), less)]
        text = (
            f"ask for {shown(have - by, name)} of {name} instead of {shown(have, name)} in "
            f"container {container.name}"
        )
        yield Proposal(text, FixRank.LESS, (source.change(*edits),))
        return


def _is_derived(container: Container, name: str) -> bool:
    """Return whether the request may be the default that follows from the limit."""
    return container.resources.limits.get(name) == container.resources.requests.get(name)


def _unbacked(case: Case, name: str) -> Finding:
    """Return that neither a class nor a device plugin has an extended resource."""
    classes = case.snapshot.classes
    proposals: list[Proposal] = []
    known = {c.spec.extended_resource_name for c in classes if c.spec.extended_resource_name}
    meant = nearest(name, known)
    source = case.sources.of_pod(case.pod)
    if meant is not None and source is not None:
        changes = tuple(_renamed(case, source, name, meant))
        proposals.append(Proposal(f"ask for {meant} instead of {name}", FixRank.REPAIR, changes))
    for each in sorted(classes, key=lambda c: _distance(c.metadata.name, name)):
        class_name = each.metadata.name
        if each.spec.extended_resource_name is not None:
            continue
        if source is not None:
            implicit = f"deviceclass.resource.kubernetes.io/{class_name}"
            changes = tuple(_renamed(case, source, name, implicit))
            proposals.append(
                Proposal(
                    f"ask for {implicit} instead of {name}, which is class {class_name}",
                    FixRank.REPAIR,
                    changes,
                )
            )
        change = change_of(each, Edit(("spec", "extendedResourceName"), name))
        text = (
            f"map class {class_name} to it: extendedResourceName {name} (an administrator's change)"
        )
        proposals.append(Proposal(text, FixRank.ADMINISTRATOR, (change,)))
        break
    hint = f": did you mean {meant}?" if meant else ""
    return Finding(
        f"{name}: no device class has this extendedResourceName, and no device plugin offers "
        f"it{hint}",
        tuple(proposals),
    )


def _distance(class_name: str, resource: str) -> tuple[int, str]:
    words = set(resource.replace("/", ".").split("."))
    return -len(words & set(class_name.split("."))), class_name


def _renamed(case: Case, source: Source, name: str, new: str) -> Iterator[ObjectChange]:
    edits: list[Edit] = []
    for index, container in enumerate(case.pod.spec.containers):
        for field in ("requests", "limits"):
            amounts = getattr(container.resources, field)
            if name in amounts:
                path = ("containers", index, "resources", field)
                edits += [Edit((*path, new), str(amounts[name])), Edit((*path, name), REMOVED)]
    if edits:
        yield source.change(*edits)


# --- taints and labels ----------------------------------------------------------------------


def _taints(case: Case, node: str) -> Iterator[Finding]:
    signature = case.cluster.signature(case.pod)
    taints = [
        taint
        for taint in case.cluster.snapshot.nodes[node].facts.hard_taints
        if not signature.tolerations.tolerate_all((taint,))
    ]
    if not taints:
        return
    source = case.sources.of_pod(case.pod)
    proposals = []
    if source is not None:
        values = [_toleration(taint) for taint in taints]
        change = source.change(*(Edit(("tolerations", APPEND), value) for value in values))
        texts = listed([taint_text(t.key, t.value, t.effect) for t in taints])
        proposals.append(Proposal(f"tolerate {texts} in the pod", FixRank.GIVE, (change,)))
    text = taint_text(taints[0].key, taints[0].value, taints[0].effect)
    yield Finding(
        f"node {node} has taint {text}, which the pod does not tolerate", tuple(proposals)
    )


def _toleration(taint: Any) -> dict[str, str]:
    value = {"key": taint.key, "operator": "Equal" if taint.value else "Exists"}
    if taint.value:
        value["value"] = taint.value
    return value | {"effect": taint.effect}


def _labels(case: Case, nodes: Sequence[str]) -> Iterator[Finding]:
    pod, source = case.pod, case.sources.of_pod(case.pod)
    states = case.cluster.snapshot.nodes
    known: dict[str, set[str]] = {}
    for state in states.values():
        for key, value in state.facts.labels.items():
            known.setdefault(key, set()).add(value)
    for key, value in sorted(pod.spec.node_selector.items()):
        if value in known.get(key, ()) and any(
            states[n].facts.labels.get(key) == value for n in nodes
        ):
            continue
        yield Finding(
            _label_cause(key, value, known),
            tuple(_label_fixes(case, source, key, value, known, nodes)),
        )
        return
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return
    rules = [
        " ".join((each.key, each.operator, ", ".join(each.values))).strip()
        for term in required.node_selector_terms or ()
        for each in term.match_expressions
    ]
    proposals = []
    if source is not None:
        path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        proposals.append(
            Proposal(
                "remove the required node affinity", FixRank.GIVE_UP, (source.change(Edit(path)),)
            )
        )
    yield Finding(f"no node matches the required node affinity {listed(rules)}", tuple(proposals))


def _label_cause(key: str, value: str, known: dict[str, set[str]]) -> str:
    if key in known:
        return f"the node selector wants {key}={value}; nodes have {listed(sorted(known[key]))}"
    meant = nearest(key, known)
    hint = f": did you mean {meant}?" if meant else ""
    return f"the node selector wants {key}={value}, a label that no node has{hint}"


def _label_fixes(
    case: Case,
    source: Source | None,
    key: str,
    value: str,
    known: dict[str, set[str]],
    nodes: Sequence[str],
) -> Iterator[Proposal]:
    if source is None:
        return
    meant = nearest(value, known.get(key, ()))
    if meant is not None:
        change = source.change(Edit(("nodeSelector", key), meant))
        yield Proposal(f"let the node selector want {key}={meant}", FixRank.REPAIR, (change,))
    if key not in known and (other := nearest(key, known)) is not None and value in known[other]:
        change = source.change(Edit(("nodeSelector", other), value), Edit(("nodeSelector", key)))
        yield Proposal(f"let the node selector want {other}={value}", FixRank.REPAIR, (change,))
    edit = (
        Edit(("nodeSelector", key))
        if len(case.pod.spec.node_selector) > 1
        else Edit(("nodeSelector",))
    )
    text = f"remove {key} from the node selector: claims already choose nodes with the devices"
    yield Proposal(text, FixRank.GIVE, (source.change(edit),))
    node = next((n for n in case.snapshot.nodes if n.metadata.name in nodes), None)
    if node is not None:
        change = change_of(node, Edit(("metadata", "labels", key), value))
        text = f"label node {node.metadata.name} {key}={value} (an administrator's change)"
        yield Proposal(text, FixRank.ADMINISTRATOR, (change,))
