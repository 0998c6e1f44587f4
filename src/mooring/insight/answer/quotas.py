"""Quotas that refuse a pod or its claims: what they allow, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.errors import QuantityError
from mooring.api.quantity import Quantity
from mooring.insight.answer.edits import Edit, change_of
from mooring.insight.answer.finding import Case, Finding, FixRank, Proposal
from mooring.insight.messages import full_name

DEVICES: Final = ".deviceclass.resource.k8s.io/devices"


def quota_findings(case: Case) -> Iterator[Finding]:
    """Find the quota that refuses the pod or a claim of it."""
    reason = case.over_quota.get(full_name(case.pod))
    if reason is None:
        return
    name, amounts = _parsed(reason)
    quota = next(
        (
            q
            for q in case.snapshot.quotas
            if q.metadata.name == name and q.metadata.namespace == case.namespace
        ),
        None,
    )
    if quota is None or not amounts:
        yield Finding(f"a quota refuses it: {reason}")
        return
    resource, (requested, used, limited) = next(iter(amounts.items()))
    raised = {
        each: str(Quantity.parse(before) + Quantity.parse(more))
        for each, (more, before, _) in amounts.items()
    }
    edits = (Edit(("spec", "hard", each), amount) for each, amount in raised.items())
    text = ", ".join(f"{each} {amounts[each][2]} → {amount}" for each, amount in raised.items())
    yield Finding(
        f"quota {name} allows {limited} {_noun(resource)} in namespace {case.namespace}: {used} "
        f"used, {requested} more asked for",
        (
            Proposal(
                f"raise quota {name}: {text} (an administrator's change)",
                FixRank.ADMINISTRATOR,
                (change_of(quota, *edits),),
            ),
        ),
    )


def _noun(resource: str) -> str:
    if resource.endswith(DEVICES):
        return f"devices of class {resource.removesuffix(DEVICES)}"
    return resource


def _parsed(reason: str) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """Return the quota that a message names, and requested, used and allowed amounts."""
    _, found, rest = reason.partition("exceeded quota: ")
    if not found:
        return "", {}
    name, _, texts = rest.partition(", requested: ")
    requested, _, texts = texts.partition(", used: ")
    used, _, limited = texts.partition(", limited: ")
    amounts = [_amounts(text) for text in (requested, used, limited)]
    try:
        return name, {
            key: (amount, amounts[1][key], amounts[2][key]) for key, amount in amounts[0].items()
        }
    except (KeyError, QuantityError):
        return name, {}


def _amounts(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {key: value for key, _, value in pairs}
