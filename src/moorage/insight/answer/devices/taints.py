"""Taints of devices that requests do not tolerate: who set them, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from moorage.api.resource.v1 import DeviceTaint, DeviceTaintRule
from moorage.api.tolerations import tolerates
from moorage.insight.answer.changes.edits import Edit
from moorage.insight.answer.devices.shortages import COUNTED_MAX, DeviceCase, Shortage
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.answer.nodes.rejections import (
    near_toleration,
    toleration_of,
    written_toleration,
)
from moorage.insight.explain.funnel import Funnel
from moorage.insight.explain.situation import Tolerate
from moorage.insight.expressions.published_devices import PublishedDevice
from moorage.insight.messages import fitting, listed, taint_text

# Words in taints that report a fault: nobody should tolerate these first of all.
_SICK: Final = (
    *("unhealth", "broken", "fail", "error", "fault", "xid", "ecc", "lost", "degraded", "bad"),
    *("repair", "maintenance", "dead", "defect", "offline", "reset", "wear"),
)


class _Taints(NamedTuple):
    """The taints that keep devices from a request, and the rules that set them."""

    taints: Sequence[DeviceTaint]
    rules: Sequence[DeviceTaintRule]

    @property
    def text(self) -> str:
        return listed([taint_text(t.key, t.value, t.effect) for t in self.taints], shown_max=2)

    @property
    def rule_names(self) -> str:
        return listed([rule.metadata.name for rule in self.rules])


def untolerated(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find the taints that keep devices from a request."""
    found = _blocking(case, short)
    if not found.taints:
        return
    funnel = short.funnel
    tainted = funnel.free - funnel.tolerated
    devices = f"{tainted} of {funnel.free} devices" if funnel.free > 1 else _only(funnel)
    if tainted == funnel.free and tainted > 1:
        devices = "both devices" if tainted == 2 else f"all {tainted} devices"
    verb = "has" if tainted == 1 else "have"
    near = near_toleration(short.details.tolerations, found.taints[0].key, _all_taints(case))
    ends = [f"; {short.name} does not tolerate it", "; it is not tolerated", ""]
    if near is not None:
        written = written_toleration(short.details.tolerations[near])
        ends = [f"; {short.name} tolerates {written}", f"; {written} is tolerated"]
    elif near_toleration(case.case.pod.spec.tolerations, found.taints[0].key) is not None:
        ends = [f"; the pod tolerates it, but {short.name} must"]
    by = f", set by DeviceTaintRule {found.rule_names}" if found.rules else ""
    of_class = f" of class {short.class_name}"
    is_large = case.case.cluster.inventory.devices_count > COUNTED_MAX
    if is_large or len(case.of_class(short.class_name)) > funnel.of_class:
        of_class += f" on node {case.node}"
    causes = [
        f"{devices}{c} {verb} taint {found.text}{by}{e}" for c in (of_class, "") for e in ends
    ]
    causes.append(f"{devices} {verb} taint {found.taints[0].key}{by}")
    cause = fitting(*causes)
    yield Finding(
        cause,
        (
            *_corrected(case, short, near, found),
            *_advice(found),
            *(() if near is not None else _tolerations(case, short)),
            *case.fewer(short, funnel.tolerated),
        ),
    )


def _only(funnel: Funnel) -> str:
    return "the only device" if funnel.selected == 1 else "the only free device"


def _blocking(case: DeviceCase, short: Shortage) -> _Taints:
    """Return the taints on the node that the request does not tolerate."""
    devices = case.chosen_nearby(short.details)
    theirs = set(_taints_of(case, devices))
    found = [
        taint
        for taint in _all_taints(case)
        if (taint.key, taint.value, taint.effect) in theirs
        and not any(tolerates(each, taint) for each in short.details.tolerations)
    ]
    nearest = short.funnel.nearest
    named = getattr(nearest.refusal, "taint", "") if nearest is not None else ""
    found.sort(key=lambda taint: taint_text(taint.key, taint.value, taint.effect) != named)
    wanted = {(taint.key, taint.value, taint.effect) for taint in found}
    rules = [
        rule
        for rule in case.case.snapshot.taint_rules
        if (rule.spec.taint.key, rule.spec.taint.value, rule.spec.taint.effect) in wanted
        and any(_may_select(rule, device) for device in devices)
    ]
    return _Taints(found, rules)


def _all_taints(case: DeviceCase) -> list[DeviceTaint]:
    """Return the taints of the devices that the node may see."""
    return [
        DeviceTaint(key=key, value=value, effect=effect)
        for key, value, effect in case.diagnosis.obstacles.taints
    ]


def _taints_of(
    case: DeviceCase, devices: Sequence[PublishedDevice]
) -> Iterator[tuple[str, str, str]]:
    """Yield the taints that devices have of their driver, or may have of a rule."""
    names = {str(device) for device in devices}
    for published in case.diagnosis.situation.slices:
        spec = published.spec
        for device in spec.devices or ():
            if f"{spec.driver}/{spec.pool.name}/{device.name}" in names:
                yield from ((t.key, t.value, t.effect) for t in device.taints)
    for rule in case.case.snapshot.taint_rules:
        if any(_may_select(rule, device) for device in devices):
            taint = rule.spec.taint
            yield taint.key, taint.value, taint.effect


def _may_select(rule: DeviceTaintRule, device: PublishedDevice) -> bool:
    """Return whether the names that a rule gives are those of a device."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    pairs = (
        (selector.driver, device.driver),
        (selector.pool, device.pool),
        (selector.device, device.name),
    )
    return all(wanted in (None, "", name) for wanted, name in pairs)


def _corrected(
    case: DeviceCase, short: Shortage, near: int | None, found: _Taints
) -> Iterator[Proposal]:
    """Yield the toleration that was meant in place of the one that is there."""
    source = case.edits.source(short.place.claim)
    if near is None or source is None:
        return
    taint, written = found.taints[0], written_toleration(short.details.tolerations[near])
    value: dict[str, Any] = dict(toleration_of(taint))
    path = (*case.edits.request(short.place), "tolerations", near)
    text = taint_text(taint.key, taint.value, taint.effect)
    yield Proposal(
        f"tolerate {text} instead of {written} in {short.name}",
        FixRank.REPAIR,
        (source.change(Edit(path, value)),),
    )


def _advice(found: _Taints) -> Iterator[Proposal]:
    """Yield what to do before anybody tolerates a taint that means a fault."""
    if found.rules:
        text = (
            f"ask an administrator why DeviceTaintRule {found.rule_names} is there, and to delete "
            "it once the devices are healthy"
        )
        yield Proposal(text, FixRank.GIVE)
        return
    words = [f"{taint.key} {taint.value}".lower() for taint in found.taints]
    if any(word in text for text in words for word in _SICK):
        text = f"have the devices repaired or replaced: their driver reports {found.text}"
        yield Proposal(text, FixRank.GIVE)


def _tolerations(case: DeviceCase, short: Shortage) -> Iterator[Proposal]:
    for fix in case.diagnosis.fixes:
        tolerations = [c.toleration for c in fix.changes if isinstance(c, Tolerate)]
        changes = case.edits.changes(fix.changes) if len(tolerations) == len(fix.changes) else None
        if changes:
            first = tolerations[0]
            taint = taint_text(first.key or "every taint", first.value or "", first.effect or "")
            text = f"tolerate {taint.rstrip(':')} in {short.name}"
            yield Proposal(text, FixRank.GIVE, changes)
