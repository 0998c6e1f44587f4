"""Taints of devices that requests do not tolerate: who set them, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mooring.api.resource.v1 import DeviceTaintRule
from mooring.insight.answer.finding import Finding, FixRank, Proposal
from mooring.insight.answer.shortages import DeviceCase, Shortage
from mooring.insight.explain.situation import Tolerate
from mooring.insight.messages import counted, listed, taint_text

TaintKey = tuple[str, str, str]
# Words in taints that report a fault: nobody should tolerate these first of all.
_SICK: Final = (
    *("unhealth", "broken", "fail", "error", "fault", "xid", "ecc", "lost", "degraded", "bad"),
    *("repair", "maintenance", "dead", "defect", "offline", "reset", "wear"),
)


def untolerated(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find the taints that keep devices from a request."""
    taints = case.diagnosis.obstacles.taints
    if not taints:
        return
    rules = _rules(case, taints)
    names = listed([rule.metadata.name for rule in rules])
    by = f", set by DeviceTaintRule {names}" if rules else ""
    verb = "has" if short.funnel.free == 1 else "have"
    yield Finding(
        f"{counted(short.funnel.free, 'device')} of class {short.class_name} {verb} taint "
        f"{listed([taint_text(*each) for each in taints])}{by}; {short.name} does not tolerate it",
        (*_advice(taints, names), *_tolerations(case, short)),
    )


def _rules(case: DeviceCase, taints: Sequence[TaintKey]) -> list[DeviceTaintRule]:
    wanted = set(taints)
    return [
        rule
        for rule in case.case.snapshot.taint_rules
        if (rule.spec.taint.key, rule.spec.taint.value, rule.spec.taint.effect) in wanted
    ]


def _advice(taints: Sequence[TaintKey], rules: str) -> Iterator[Proposal]:
    """Yield what to do before anybody tolerates a taint that means a fault."""
    if rules:
        text = (
            f"ask an administrator why DeviceTaintRule {rules} is there, and to delete it once the "
            "devices are healthy"
        )
        yield Proposal(text, FixRank.GIVE)
    elif any(word in f"{key} {value}".lower() for key, value, _ in taints for word in _SICK):
        text = f"have the devices repaired: their driver reports {taint_text(*taints[0])}"
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
