"""Problems of allocation and their answers, and how cases describe both.

# problem: all that one attempt on one node depends on
# answer: what became of the attempt
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.node import Node
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

S = TypeVar("S", bound=msgspec.Struct)
Named = TypeVar("Named", ResourceSlice, ResourceClaim)


@dataclass(frozen=True)
class Problem:
    """One attempt to allocate: claims, a node, and the cluster around them."""

    features: frozenset[str]
    node: Node
    classes: tuple[DeviceClass, ...]
    slices: tuple[ResourceSlice, ...]
    allocated: tuple[ResourceClaim, ...]
    claims: tuple[ResourceClaim, ...]


@dataclass(frozen=True)
class Answer:
    """What became of an attempt."""

    outcome: Literal["allocated", "none", "error"]
    results: tuple[AllocationResult, ...] = ()
    error: str = ""
    node_only: bool = False
    steps: int = 0


Answering = Callable[[Problem], Answer]


# --- reading a case -----------------------------------------------------------------------


def read_problem(fields: Mapping[str, Any]) -> Problem:
    """Return the problem of a case; its objects are read unchanged, valid or not."""
    return Problem(
        features=frozenset(fields["features"]),
        node=decode_tree(fields["node"], Node).value,
        classes=_read(fields["classes"], DeviceClass),
        slices=_named_apart(_read(fields["slices"], ResourceSlice)),
        allocated=_named_apart(_read(fields["allocatedClaims"], ResourceClaim)),
        claims=_read(fields["claims"], ResourceClaim),
    )


def read_expected(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded outcome that one algorithm for all features should have."""
    expected: dict[str, Any] = fields.get("expectExperimental") or fields["expect"]
    if expected["outcome"] == "timeout":
        return {**expected, "outcome": expected["trueOutcome"]}
    return expected


def _read(trees: Iterable[Any] | None, struct: type[S]) -> tuple[S, ...]:
    return tuple(decode_tree(tree, struct).value for tree in trees or ())


def _named_apart(objects: Sequence[Named]) -> tuple[Named, ...]:
    """Return the objects with no name twice, as in any cluster; some cases were made by hand.

    The new name sorts right behind the old one: slices are taken in the order of their names.
    """
    seen: set[tuple[str, str]] = set()
    apart = []
    for found in objects:
        metadata = found.metadata
        while (metadata.namespace, metadata.name) in seen:
            metadata = replace(metadata, name=metadata.name + "\0")
        seen.add((metadata.namespace, metadata.name))
        apart.append(found if metadata is found.metadata else replace(found, metadata=metadata))
    return tuple(apart)


# --- comparing ----------------------------------------------------------------------------

_RESULT_FIELDS = (
    "request",
    "driver",
    "pool",
    "device",
    "tolerations",
    "bindingConditions",
    "bindingFailureConditions",
    "skipNodeOperations",
)


def recorded_essence(expected: dict[str, Any]) -> dict[str, Any]:
    """Return the compared part of a recorded outcome."""
    return {
        "outcome": expected["outcome"],
        "claim": _numbered(map(_allocation, expected.get("results") or ())),
    }


def essence(answer: Answer) -> dict[str, Any]:
    """Return the compared part of our answer."""
    return {
        "outcome": answer.outcome,
        "claim": _numbered(_allocation(to_tree(result)) for result in answer.results),
    }


def _numbered(values: Iterable[Any]) -> dict[str, Any]:
    """Return an ordered list as a map, of which a difference names the place."""
    return {str(number): value for number, value in enumerate(values)}


def _allocation(tree: dict[str, Any]) -> dict[str, Any]:
    devices = tree.get("devices") or {}
    return {
        "result": _numbered(map(_result, devices.get("results") or ())),
        "config": _numbered(map(_config, devices.get("config") or ())),
        "nodeSelector": tree.get("nodeSelector"),
    }


def _result(tree: dict[str, Any]) -> dict[str, Any]:
    return {
        **{field: tree.get(field) or None for field in _RESULT_FIELDS},
        "adminAccess": bool(tree.get("adminAccess")),
        "has shareID": bool(tree.get("shareID")),
        "consumedCapacity": {
            name: Quantity.from_json(str(amount))  # equal by value
            for name, amount in (tree.get("consumedCapacity") or {}).items()
        },
    }


def _config(tree: dict[str, Any]) -> dict[str, Any]:
    return {field: tree.get(field) or None for field in ("source", "requests", "opaque")}
