"""What may be changed about a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mooring.api.core.placement import Taint
from mooring.api.resource.v1 import DeviceTaintRule, ResourceSlice
from mooring.insight.nearness import nearest
from mooring.insight.snapshot.snapshot import Snapshot


class AddObjects(Struct, frozen=True):
    """Objects are applied, as kubectl would: nodes, slices, classes, claims, pods …"""

    objects: Snapshot


class RemoveNodes(Struct, frozen=True):
    """Nodes go for good, with their slices and pods."""

    names: tuple[str, ...]


class CordonNode(Struct, frozen=True):
    """No more pods get the node."""

    name: str


class DrainNode(Struct, frozen=True):
    """The node is cordoned, and its pods leave; daemons and static pods stay."""

    name: str


class TaintNode(Struct, frozen=True):
    """The node gets a taint, instead of one with the same key and effect."""

    name: str
    taint: Taint


class DeletePods(Struct, frozen=True):
    """Pods are deleted, each by its namespace and name."""

    names: tuple[str, ...]


class DeleteClaims(Struct, frozen=True):
    """Claims are deleted, each by its namespace and name; those in use stay until they are not."""

    names: tuple[str, ...]


class ReplaceSlices(Struct, frozen=True):
    """Drivers publish these slices and no others, as after an upgrade."""

    drivers: tuple[str, ...]
    slices: tuple[ResourceSlice, ...]


class AddTaintRule(Struct, frozen=True):
    """A rule taints devices, instead of one of the same name."""

    rule: DeviceTaintRule


class RemoveTaintRule(Struct, frozen=True):
    """A rule goes, and its taints with it."""

    name: str


Change = (
    AddObjects
    | RemoveNodes
    | CordonNode
    | DrainNode
    | TaintNode
    | DeletePods
    | DeleteClaims
    | ReplaceSlices
    | AddTaintRule
    | RemoveTaintRule
)


class UnknownNameError(ValueError):
    """A change of something that is not there; the message names it and what is like it."""

    def __init__(self, change: Change, noun: str, name: str, known: Iterable[str]) -> None:
        near = nearest(name, known)
        remedy = f"; did you mean {near}?" if near is not None else ""
        super().__init__(f"there is no {noun} {name}{remedy}")
        self.change = change
