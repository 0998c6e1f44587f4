"""Pools and classes without usable devices: drivers that do not run, slices that are missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from moorage.insight.answer.changes.edits import Edit, change_of
from moorage.insight.answer.devices.selectors import class_mistake
from moorage.insight.answer.devices.shortages import DeviceCase, Shortage
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.explain.diagnosis import UnusablePool
from moorage.insight.messages import CAUSE_LENGTH_MAX, counted, listed

_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*['"]([^'"]+)['"]""")
_DOMAIN: Final = re.compile(r"""device\.attributes\[['"]([^'"]+)['"]\]""")


def unusable_pools(case: DeviceCase) -> Iterator[Finding]:
    """Find pools whose driver has not published all slices, or published wrong ones."""
    for pool in case.diagnosis.pools:
        driver, _, name = pool.pool.partition("/")
        if pool.reason:
            advice = f"see what driver {driver} publishes for pool {name}: {pool.reason}"
        else:
            advice = (
                f"see whether driver {driver} runs, and why it has not published all slices of "
                f"pool {name}; the pod is tried again when it has"
            )
        fact = pool.reason or _published(case, pool)
        yield Finding(
            f"pool {name} of driver {driver} is {pool.state}: {fact}, so none of its devices is "
            "given away",
            (Proposal(advice, FixRank.ADVICE),),
        )


def _published(case: DeviceCase, pool: UnusablePool) -> str:
    driver, _, name = pool.pool.partition("/")
    slices = [
        each.spec.pool
        for each in case.case.snapshot.slices
        if (each.spec.driver, each.spec.pool.name) == (driver, name)
    ]
    newest = max((each.generation for each in slices), default=0)
    current = [each for each in slices if each.generation == newest]
    announced = max((each.resource_slice_count for each in current), default=0)
    older = f" in generation {newest}" if len(current) < len(slices) else ""
    return f"{len(current)} of {announced} slices are published{older}"


def too_few_of_class(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find that a node, or every node, has too few devices of a class."""
    name, on_node = short.class_name, short.funnel.of_class
    if not on_node:
        yield from _elsewhere(case, name)
        return
    counts = Counter(device.node for device in case.of_class(name) if device.node)
    is_most = max(counts.values(), default=0) <= on_node  # Other nodes may be unwell.
    others = len(case.case.cluster.snapshot.nodes) > 1 and is_most
    most = f"no node has more than {on_node}" if others else f"node {case.node} has {on_node}"
    yield Finding(
        f"{short.name} asks for {short.wanted} devices of class {name}, {most}",
        (
            *case.fewer(short, on_node),
            Proposal(f"add a node with {short.wanted} devices of class {name}", FixRank.HARDWARE),
        ),
    )


def _elsewhere(case: DeviceCase, name: str) -> Iterator[Finding]:
    """Yield on which nodes the devices of a class can be used."""
    everywhere = case.of_class(name)
    if not everywhere:
        yield _unpublished(case, name)
        return
    nodes = sorted({device.node for device in everywhere if device.node})
    if nodes:
        verb = "has" if len(nodes) == 1 else "have"
        advice = f"let the pod run where devices of class {name} are: {listed(nodes)}"
        cause = f"node {case.node} has no device of class {name}: only {listed(nodes)} {verb} such"
        yield Finding(f"{cause} devices", (Proposal(advice, FixRank.ADVICE),))
        return
    slices = {device.slice_name for device in everywhere}
    for each in case.case.snapshot.slices:
        if each.metadata.name in slices and each.spec.node_selector is not None:
            yield _for_other_nodes(case, name, each)
            return
    cause = f"node {case.node} has no device of class {name}"
    yield Finding(cause, (Proposal(f"see which nodes have class {name}", FixRank.ADVICE),))


def _for_other_nodes(case: DeviceCase, name: str, published: Any) -> Finding:
    """Return that slices are for nodes with labels that none has."""
    terms = published.spec.node_selector.node_selector_terms or ()
    rules = [rule for term in terms[:1] for rule in term.match_expressions]
    wanted = {rule.key: rule.values[0] for rule in rules if rule.operator == "In" and rule.values}
    texts = [" ".join((r.key, r.operator, ", ".join(r.values))).strip() for r in rules]
    proposals: list[Proposal] = []
    node = next((n for n in case.case.snapshot.nodes if n.metadata.name == case.node), None)
    if node is not None and len(wanted) == len(rules) and wanted:
        edits = (Edit(("metadata", "labels", key), value) for key, value in wanted.items())
        said = listed([f"{key}={value}" for key, value in wanted.items()])
        text = f"label node {case.node} {said}, if it reaches pool {published.spec.pool.name} "
        change = change_of(node, *edits)
        proposals.append(
            Proposal(f"{text}(an administrator's change)", FixRank.ADMINISTRATOR, (change,))
        )
    proposals.append(
        Proposal(f"see the node selector of slice {published.metadata.name}", FixRank.ADVICE)
    )
    return Finding(
        f"devices of class {name} in pool {published.spec.pool.name} are for nodes with "
        f"{listed(texts)}; no node has that",
        tuple(proposals),
    )


def _unpublished(case: DeviceCase, name: str) -> Finding:
    """Return that no driver publishes devices of a class."""
    mistake = class_mistake(case, name)
    if mistake is not None:
        return mistake
    driver = driver_of_class(case, name)
    devices = [device for device in case.case.fleet.devices if device.driver == driver]
    if devices:
        advice = f"see the selectors of class {name}: moor cel shows which devices match"
        published = counted(len(devices), "device")
        cause = f"driver {driver} publishes {published}, but none matches class {name}"
        rule = _selectors_text(case, name)
        if rule and len(cause) + len(rule) + 3 <= CAUSE_LENGTH_MAX:
            cause = f"{cause}: {rule}"
        return Finding(cause, (Proposal(advice, FixRank.ADVICE),))
    return Finding(
        f"no driver publishes devices of class {name} on any node: is driver {driver} running?",
        (Proposal(f"start driver {driver} on the nodes with such devices", FixRank.ADVICE),),
    )


def _selectors_text(case: DeviceCase, name: str) -> str:
    return " && ".join(" ".join(each.split()) for each in case.class_expressions(name))


def driver_of_class(case: DeviceCase, name: str) -> str:
    """Return the driver that the selectors of a class name; else the class name itself."""
    text = _selectors_text(case, name)
    named = _DRIVER.search(text) or _DOMAIN.search(text)
    return name if named is None else named[1]
