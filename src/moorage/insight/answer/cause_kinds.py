"""Kinds of causes: a small, fixed set of words for why pods wait.

A finding says its cause in a sentence, with names. Where pods are counted by cause, as in metrics,
the words must be few and must stay the same: each finder has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from moorage.insight.answer.finding import Finding


class CauseKind(StrEnum):
    """Why a pod gets no node, in a word."""

    # before any node is looked at
    INVALID = "invalid"  # the server refuses the pod, or what it is made from
    NOT_CREATED = "not-created"  # its workload is suspended, or has no replicas
    SCHEDULING_GATE = "scheduling-gate"
    OTHER_SCHEDULER = "other-scheduler"
    NAMESPACE_ENDS = "namespace-ends"
    MISSING_REFERENCE = "missing-reference"  # a priority class or runtime class
    QUOTA = "quota"
    UNREADABLE = "unreadable"  # it depends on what we may not read
    MISSING_CLAIM = "missing-claim"
    CLAIM_DELETED = "claim-deleted"
    MISSING_CLASS = "missing-class"
    VOLUME = "volume"
    CLAIM_FULL = "claim-full"  # no more pods can share it
    BINDING_FAILED = "binding-failed"
    POD_GROUP = "pod-group"
    FEATURE_GATE = "feature-gate"
    # nodes
    NO_NODE = "no-node"
    NODE_RESOURCES = "node-resources"
    NODE_TAINT = "node-taint"
    NODE_LABELS = "node-labels"
    NODE_CORDONED = "node-cordoned"
    OTHER_PODS = "other-pods"  # affinity, spreading, ports
    CLAIM_ELSEWHERE = "claim-elsewhere"
    # devices
    NO_DEVICE = "no-device"  # too few of the class, free or not
    SELECTOR = "selector"
    DEVICES_IN_USE = "devices-in-use"
    DEVICE_TAINT = "device-taint"
    DEVICE_CAPACITY = "device-capacity"
    DEVICES_APART = "devices-apart"  # on different nodes
    CONSTRAINT = "constraint"
    CONTENTION = "contention"  # requests of the pod get in each other's way
    CLAIM_LIMIT = "claim-limit"
    POOL = "pool"  # incomplete or invalid
    EXPRESSION = "expression"  # an error in CEL
    UNKNOWN = "unknown"


def of_kind(kind: CauseKind, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as of a kind, but those that know their own."""
    for each in findings:
        yield replace(each, kind=kind) if each.kind is CauseKind.UNKNOWN else each
