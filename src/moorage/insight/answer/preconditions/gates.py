"""Fields that a pod's objects lost because their feature gate is off in the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.nodes.extended import container_amounts
from moorage.insight.answer.preconditions.references import claim_sources
from moorage.insight.messages import full_name
from moorage.insight.snapshot.written_objects import DroppedFields

# What users write, by gate. Without a gate for taints there are none, so tolerations do not matter.
_OF_CLAIMS: Final = {
    "DRAAdminAccess": "adminAccess",
    "DRAPrioritizedList": "firstAvailable",
    "DRAConsumableCapacity": "capacity requests",
    "DRADerivedAttributes": "derivedAttributes",
}
_OF_SLICES: Final = {"DRAConsumableCapacity": "allowMultipleAllocations"}
_OF_CLASSES: Final = {"DRAExtendedResource": "extendedResourceName"}
_NOUNS: Final = {
    "ResourceClaimTemplate": "template",
    "ResourceClaim": "claim",
    "DeviceClass": "class",
    "ResourceSlice": "slice",
}


def gate_findings(case: Case) -> Iterator[Finding]:
    """Find fields that decide about the pod and that the cluster ignores."""
    own = {(source.value.kind, full_name(source.value)) for source in claim_sources(case)}
    seen: set[str] = set()
    for each in case.dropped:
        field = _field(case, each, own)
        if field and each.gate not in seen:
            seen.add(each.gate)
            yield Finding(
                f"{field} of {_NOUNS[each.kind]} {each.name} is ignored: feature gate {each.gate} "
                "is off in this cluster",
                (
                    Proposal(
                        f"have an administrator switch feature gate {each.gate} on, and create "
                        f"{_NOUNS[each.kind]} {each.name} again",
                        FixRank.GIVE,
                    ),
                ),
            )


def _field(case: Case, dropped: DroppedFields, own: set[tuple[str, str]]) -> str:
    """Return the field that was lost, if it can decide about the pod."""
    match dropped.kind:
        case "ResourceClaimTemplate" | "ResourceClaim":
            key = (dropped.kind, f"{dropped.namespace}/{dropped.name}")
            return _OF_CLAIMS.get(dropped.gate, "") if key in own else ""
        case "DeviceClass":
            is_asked = any(
                "/" in name for _, amounts in container_amounts(case) for name in amounts
            )
            return _OF_CLASSES.get(dropped.gate, "") if is_asked else ""
        case "ResourceSlice":
            return _OF_SLICES.get(dropped.gate, "") if _is_in_use(case) else ""
    return ""


def _is_in_use(case: Case) -> bool:
    """Return whether a request finds devices that others have."""
    diagnoses = (each.diagnosis for each in case.explanation.verdicts)
    return any(
        funnel.free < funnel.selected and funnel.free < (funnel.wanted or funnel.selected)
        for diagnosis in diagnoses
        if diagnosis is not None
        for funnel in diagnosis.funnels
    )
