"""Quotas that refuse a pod or its claims: what they allow, and what to do.

exceeded quota: NAME, requested: …, used: …, limited: …   ─► ask for less, or raise the quota
failed quota: NAME: must specify …                         ─► specify it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity
from moorage.insight.answer.changes.edits import Edit, change_of, merged
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.nodes.amounts import askers, base_amount, less_amount
from moorage.insight.answer.nodes.replicas import fewer_pods
from moorage.insight.answer.preconditions.references import claim_sources
from moorage.insight.messages import full_name, listed

DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
# What a container gets that must ask for something and says nothing.
_MODEST: Final = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
_OBJECTS: Final = {
    "count/resourceclaims.resource.k8s.io": "claim",
    "count/resourceclaimtemplates.resource.k8s.io": "claim template",
    "count/pods": "pod",
    "pods": "pod",
}
_FIELDS: Final = ("requests", "limits")
_MISSING: Final = re.compile(r"failed quota: ([^:]+): must specify (.+)")


class _Amounts(NamedTuple):
    """What is asked for, in use and allowed of one resource."""

    requested: Quantity
    used: Quantity
    limited: Quantity

    @property
    def left(self) -> int:
        return max(self.limited.value - self.used.value, 0)


def quota_findings(case: Case) -> Iterator[Finding]:
    """Find the quota that refuses the pod or a claim of it."""
    reason = case.over_quota.get(full_name(case.pod))
    if reason is None or "quota: " not in reason:
        return
    if (missing := _MISSING.search(reason)) is not None:
        yield _unspecified(case, missing[1], missing[2])
        return
    name, amounts = _parsed(reason)
    quota = _quota(case, name)
    if quota is None or not amounts:
        yield Finding(f"a quota refuses it: {reason}")
        return
    resource, first = next(iter(amounts.items()))
    more = f" and {len(amounts) - 1} more" if len(amounts) > 1 else ""
    scope = _scope(quota)
    yield Finding(
        f"quota {name} allows {_said(resource, first.limited)}{more} in namespace {case.namespace}"
        f"{scope}: {first.used} used, {first.requested} more asked for",
        (
            *_less(case, name, amounts),
            *_raised(case, quota, amounts),
            *_freed(case, name, resource, first),
        ),
    )


def _quota(case: Case, name: str) -> Any | None:
    for quota in case.snapshot.quotas:
        if quota.metadata.name == name and quota.metadata.namespace == case.namespace:
            return quota
    return None


def _scope(quota: Any) -> str:
    """Return to which pods a quota is limited: `, scope PriorityClass In high`."""
    selector = quota.spec.scope_selector
    rules = () if selector is None else selector.match_expressions
    texts = [
        *quota.spec.scopes,
        *(" ".join((r.scope_name, r.operator, ", ".join(r.values))).strip() for r in rules),
    ]
    return f" (scope {listed(texts)})" if texts else ""


# --- words ----------------------------------------------------------------------------------


def _noun(resource: str) -> str:
    if resource.endswith(DEVICES):
        return f"devices of class {resource.removesuffix(DEVICES)}"
    if resource in _OBJECTS:
        return f"{_OBJECTS[resource]}s"
    return resource


def _said(resource: str, amount: Quantity) -> str:
    """Return an amount of a resource: `1 device of class x`, `1 claim (count/…)`."""
    noun = _noun(resource)
    if resource.endswith(DEVICES) and amount == Quantity.from_int(1):
        noun = noun.replace("devices", "device", 1)
    if resource in _OBJECTS:
        plural = noun if amount != Quantity.from_int(1) else noun[:-1]
        noun = plural if resource == "pods" else f"{plural} ({resource})"
    return f"{amount} {noun}"


# --- what to do -----------------------------------------------------------------------------


def _less(case: Case, name: str, amounts: Mapping[str, _Amounts]) -> Iterator[Proposal]:
    """Yield the pod, or its claims, asking for what the quota leaves."""
    hint = f", as quota {name} allows"
    yield from fewer_pods(case, hint=hint)
    if len(amounts) > 1:
        yield from _less_of_all(case, amounts, hint)
        return
    (resource, found), *_ = amounts.items()
    if resource.endswith(DEVICES):
        yield from _fewer_devices(case, resource.removesuffix(DEVICES), found, hint)
        return
    yield from _less_of_all(case, amounts, hint)


def _less_of_all(case: Case, amounts: Mapping[str, _Amounts], hint: str) -> Iterator[Proposal]:
    """Yield the pod asking for as much of every resource as the quota leaves."""
    found: list[Proposal] = []
    for resource, each in amounts.items():
        kind, dot, rest = resource.partition(".")
        field, asked = (kind, rest) if dot and kind in _FIELDS else ("requests", resource)
        left = base_amount(each.limited, asked) - base_amount(each.used, asked)
        by = base_amount(each.requested, asked) - left
        less = next(less_amount(case, asked, by, field=field), None) if left > 0 else None
        if less is None:
            return
        found.append(less)
    changes = merged(change for each in found for change in each.changes)
    text = ", ".join(each.text for each in found)
    yield Proposal(f"{text}{hint}", FixRank.LESS, changes)


def _fewer_devices(case: Case, class_name: str, found: _Amounts, hint: str) -> Iterator[Proposal]:
    """Yield the claims asking for as many devices of a class as are left."""
    for source in claim_sources(case):
        spec = source.value.spec
        devices = (spec.spec if hasattr(spec, "spec") else spec).devices
        for index, request in enumerate(devices.requests or ()):
            exactly = request.exactly
            if exactly is None or exactly.device_class_name != class_name:
                continue
            count = (exactly.count or found.requested.value) - (found.requested.value - found.left)
            if count <= 0:
                continue
            path = ("devices", "requests", index, "exactly")
            edits = [Edit((*path, "count"), count)]
            before: object = exactly.count
            if exactly.allocation_mode == "All":
                edits.append(Edit((*path, "allocationMode"), "ExactCount"))
                before = "all"
            text = f"ask for {count} instead of {before} in request {request.name}{hint}"
            yield Proposal(text, FixRank.LESS, (source.change(*edits),))
            return


def _raised(case: Case, quota: Any, amounts: Mapping[str, _Amounts]) -> Iterator[Proposal]:
    """Yield the quota with room for everything in the namespace that it refuses."""
    name = quota.metadata.name
    asked = {each: Quantity.from_int(0) for each in amounts}
    for reason in _reasons(case):
        by, theirs = _parsed(reason)
        if by == name:
            for each in amounts.keys() & theirs.keys():
                asked[each] = asked[each] + theirs[each].requested
    raised = {each: str(found.used + asked[each]) for each, found in amounts.items()}
    edits = (Edit(("spec", "hard", each), amount) for each, amount in raised.items())
    text = ", ".join(f"{each} {amounts[each].limited} → {now}" for each, now in raised.items())
    yield Proposal(
        f"raise quota {name}: {text} (an administrator's change)",
        FixRank.ADMINISTRATOR,
        (change_of(quota, *edits),),
    )


def _reasons(case: Case) -> Iterable[str]:
    """Return why pods, claims and templates of the namespace are refused, each once.

    No pod is created for a template that nobody uses, so only its own answer counts it.
    """
    plan, own = case.around.plan, full_name(case.pod)
    stand_ins = {full_name(each.pod) for each in plan.stand_ins} - {own}
    refused = [(name, why) for name, why in case.over_quota.items() if name not in stand_ins]
    refused += ((name, why) for (_, name), why in plan.refused_objects.items())
    here = f"{case.namespace}/"
    return dict.fromkeys(why for name, why in refused if name.startswith(here))


def _freed(case: Case, name: str, resource: str, found: _Amounts) -> Iterator[Proposal]:
    if not found.used.is_zero:
        text = f"free what counts in quota {name}: {_noun(resource)} that others in namespace "
        yield Proposal(f"{text}{case.namespace} have and do not need", FixRank.FREE)


# --- pods that do not say what they need ----------------------------------------------------


def _unspecified(case: Case, name: str, missing: str) -> Finding:
    """Return that a quota needs requests or limits which containers do not have."""
    resources = [part.partition(" for: ")[0].strip() for part in missing.split(";")]
    containers = list(
        dict.fromkeys(
            each.strip()
            for part in missing.split(";")
            for each in part.partition(" for: ")[2].split(",")
        )
    )
    source = case.sources.of_pod(case.pod)
    edits: list[Edit] = []
    texts: list[str] = []
    for resource in resources:
        kind, dot, rest = resource.partition(".")
        field, asked = (
            (kind, rest) if dot and kind in ("requests", "limits") else ("requests", kind)
        )
        for asker in askers(case):
            if asker.title.removeprefix("container ") not in containers:
                continue
            value = str(asker.resources.requests.get(asked) or _MODEST.get(asked, "1"))
            edits.append(Edit((*asker.path, field, asked), value))
            texts.append(f"{field} {asked} {value}")
    proposals: list[Proposal] = []
    if source is not None and edits:
        text = (
            f"let container {listed(containers)} say {listed(list(dict.fromkeys(texts)))}, or more"
        )
        proposals.append(Proposal(text, FixRank.GIVE, (source.change(*edits),)))
    return Finding(
        f"quota {name} in namespace {case.namespace} limits {listed(resources)}, so containers "
        f"must specify it: {listed(containers)} does not",
        tuple(proposals),
    )


# --- messages of admission ------------------------------------------------------------------


def _parsed(reason: str) -> tuple[str, dict[str, _Amounts]]:
    """Return the quota that a message names, and requested, used and allowed amounts."""
    _, found, rest = reason.partition("exceeded quota: ")
    if not found:
        return "", {}
    name, _, texts = rest.partition(", requested: ")
    requested, _, texts = texts.partition(", used: ")
    used, _, limited = texts.partition(", limited: ")
    try:
        of_kind = [_amounts(text) for text in (requested, used, limited)]
        return name, {key: _Amounts(*(each[key] for each in of_kind)) for key in of_kind[0]}
    except (KeyError, QuantityError):
        return name, {}


def _amounts(text: str) -> dict[str, Quantity]:
    pairs = (part.partition("=") for part in text.split(","))
    return {key: Quantity.parse(value) for key, _, value in pairs}
