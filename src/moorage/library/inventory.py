"""Devices and claims, as sequences that can be filtered."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final, overload

from moorage.insight.devices import ClaimUsage, DeviceState, DeviceUsage
from moorage.insight.devices.document import claim_tree, counts_tree, device_tree
from moorage.insight.devices.model import by_node, count_states
from moorage.insight.errors import UnknownObjectError, UnreadError
from moorage.insight.expressions.evaluation import (
    InvalidExpression,
    Selected,
    compiler_for,
    selected_by_class,
    selected_by_expression,
)
from moorage.insight.messages import counted, similar_hint
from moorage.insight.rows import Row, claim_rows, device_rows
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.errors import MoorageError, MoorageWarning
from moorage.library import html
from moorage.library.results import Readable, Record, check_type, plain_tree
from moorage.validation.strategy import Context


@final
class Device(Record):
    """A device, its state, and the claims that have it."""

    __slots__ = ("_tree", "_usage")

    def __init__(self, usage: DeviceUsage) -> None:
        self._usage = usage
        self._tree: dict[str, Any] | None = None  # made when it is first used

    @property
    def driver(self) -> str:
        """The name of the device's driver."""
        return self._usage.id.driver

    @property
    def pool(self) -> str:
        """The name of the device's pool."""
        return self._usage.id.pool

    @property
    def name(self) -> str:
        """The name of the device in its pool."""
        return self._usage.id.device

    @property
    def id(self) -> str:
        """The full name: driver/pool/device."""
        return str(self._usage.id)

    @property
    def node(self) -> str:
        """The node that can use the device, or a description of several."""
        return str(self._usage.node_selection)

    @property
    def state(self) -> str:
        """Free, shared, taken, blocked, tainted, unusable or missing, as in `moor devices`."""
        return self._usage.state.value

    @property
    def is_free(self) -> bool:
        """Whether no claim has the device, and a new claim would get it now."""
        return self._usage.state is DeviceState.FREE

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that have the device, as namespace/name."""
        return tuple(dict.fromkeys(str(each.claim) for each in self._usage.holders))

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes in its slice, by name: strings, integers, booleans or lists."""
        found: dict[str, Any] = self.to_dict()["attributes"]
        return dict(found)

    @property
    def capacity(self) -> dict[str, str]:
        """The capacities in its slice, by name, as quantities such as `80Gi`."""
        found: dict[str, str] = self.to_dict()["capacity"]
        return dict(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the device as `moor devices -o json` prints it."""
        if self._tree is None:
            self._tree = plain_tree(device_tree(self._usage))
        return self._tree

    def _rows(self) -> Iterator[Row]:
        return device_rows([self._usage])

    def _repr_html_(self) -> str:
        return html.block(html.table(_DEVICE_HEADER, [_device_row(self)]))

    def __str__(self) -> str:
        has = f", {', '.join(self.claims)}" if self.claims else ""
        return f"{self.id} on {self.node}: {self.state}{has}"


_DEVICE_HEADER = ("Driver", "Pool", "Device", "Node", "State", "Claims")


def _device_row(each: Device) -> tuple[str, ...]:
    return each.driver, each.pool, each.name, each.node, each.state, ", ".join(each.claims)


@final
class Devices(Readable, Sequence[Device]):
    """Devices, sorted by name. Filters return the devices that match."""

    __slots__ = ("_context", "_snapshot", "_usages")

    def __init__(self, usages: Iterable[DeviceUsage], snapshot: Snapshot, context: Context) -> None:
        self._usages = tuple(usages)
        self._snapshot = snapshot
        self._context = context

    def where(self, expression: str) -> Devices:
        """Return the devices for which a CEL expression is true, as in a claim's selector.

        Raises MoorageError for an expression that an API server would reject. Issues MoorageWarning
        if it gives an error for some device: scheduling aborts when it looks at that device.
        """
        check_type("expression", expression, str)
        compiler = compiler_for(self._context.gates, extensions=self._context.extensions)
        found = selected_by_expression(self._snapshot.slices, expression, compiler)
        return self._selected(found)

    def of_class(self, name: str) -> Devices:
        """Return the devices that a DeviceClass selects."""
        classes = {each.metadata.name: each for each in self._snapshot.classes}
        if name not in classes:
            if hidden := self._snapshot.unread.hidden(("DeviceClass",)):
                raise UnreadError(hidden, f"whether DeviceClass {name} exists")
            raise UnknownObjectError(f"there is no DeviceClass {name}{similar_hint(name, classes)}")
        compiler = compiler_for(self._context.gates, extensions=self._context.extensions)
        return self._selected(selected_by_class(self._snapshot.slices, classes[name], compiler))

    def in_state(self, *states: str) -> Devices:
        """Return the devices in any of these states, such as "free" or "taken"."""
        for state in states:
            if state not in set(DeviceState):
                raise MoorageError(f"{state}: must be one of {', '.join(DeviceState)}")
        return self._only(each for each in self._usages if each.state in states)

    @property
    def free(self) -> Devices:
        """The devices that are free."""
        return self.in_state(DeviceState.FREE)

    def counts(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return the number of devices in each state, by node and driver."""
        found = count_states(self._usages, by_node)
        return {(key[0], key[1]): counts_tree(each) for key, each in found.items()}

    def _selected(self, found: Selected | InvalidExpression) -> Devices:
        if isinstance(found, InvalidExpression):
            raise MoorageError(found.error)
        if found.concern:
            warnings.warn(found.concern, MoorageWarning, stacklevel=3)
        return self._only(
            each
            for each in self._usages
            if each.id in found.names and each.state is not DeviceState.MISSING
        )

    def _only(self, usages: Iterable[DeviceUsage]) -> Devices:
        return Devices(usages, self._snapshot, self._context)

    @overload
    def __getitem__(self, index: int) -> Device: ...
    @overload
    def __getitem__(self, index: slice) -> Devices: ...
    def __getitem__(self, index: int | slice) -> Device | Devices:
        if isinstance(index, slice):
            return self._only(self._usages[index])
        return Device(self._usages[index])

    def __len__(self) -> int:
        return len(self._usages)

    def __iter__(self) -> Iterator[Device]:
        return map(Device, self._usages)

    def to_dict(self) -> dict[str, Any]:
        """Return the devices as `moor devices -o json` prints them."""
        counts = count_states(self._usages, lambda _: ()).get(())
        summary = {"total": 0} if counts is None else counts_tree(counts)
        return {"devices": [each.to_dict() for each in self], "summary": summary}

    def _rows(self) -> Iterator[Row]:
        return device_rows(self._usages)

    def _repr_html_(self) -> str:
        rows = (_device_row(each) for each in self)
        return html.block(html.table(_DEVICE_HEADER, rows), html.paragraph(self._summary()))

    def _summary(self) -> str:
        free = sum(each.state is DeviceState.FREE for each in self._usages)
        return f"{counted(len(self), 'device')}, {free:,} free"

    def __repr__(self) -> str:
        return f"<Devices: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join((self._summary(), *map(str, self)))


@final
class Claim(Record):
    """A claim, its devices and its consumers."""

    __slots__ = ("_usage",)

    def __init__(self, usage: ClaimUsage) -> None:
        self._usage = usage

    @property
    def name(self) -> str:
        """The name of the claim."""
        return self._usage.id.name

    @property
    def namespace(self) -> str:
        """The namespace of the claim."""
        return self._usage.id.namespace

    @property
    def state(self) -> str:
        """Pending, allocated, reserved or deleting, as in `moor claims`."""
        return self._usage.state.value

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the claim's devices and consumers."""
        return self._usage.nodes

    @property
    def devices(self) -> tuple[str, ...]:
        """The claim's devices, as driver/pool/device."""
        return tuple(str(each.id) for each in self._usage.devices)

    @property
    def consumers(self) -> tuple[str, ...]:
        """The pods and pod groups that may use the claim, such as `pod/NAME`."""
        return tuple(map(str, self._usage.consumers))

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as `moor claims -o json` prints it."""
        return plain_tree(claim_tree(self._usage))

    def _rows(self) -> Iterator[Row]:
        return claim_rows([self._usage])

    def _repr_html_(self) -> str:
        return html.block(html.table(_CLAIM_HEADER, [_claim_row(self)]))

    def __str__(self) -> str:
        has = ", ".join(self.devices) or "no devices"
        return f"claim {self._usage.id}: {self.state}, {has}"


_CLAIM_HEADER = ("Namespace", "Claim", "State", "Nodes", "Devices", "Consumers")


def _claim_row(each: Claim) -> tuple[str, ...]:
    lists = (each.nodes, each.devices, each.consumers)
    return each.namespace, each.name, each.state, *(", ".join(names) for names in lists)


@final
class Claims(Readable, Sequence[Claim]):
    """Claims, sorted by name."""

    __slots__ = ("_usages",)

    def __init__(self, usages: Iterable[ClaimUsage]) -> None:
        self._usages = tuple(usages)

    @overload
    def __getitem__(self, index: int) -> Claim: ...
    @overload
    def __getitem__(self, index: slice) -> Claims: ...
    def __getitem__(self, index: int | slice) -> Claim | Claims:
        if isinstance(index, slice):
            return Claims(self._usages[index])
        return Claim(self._usages[index])

    def __len__(self) -> int:
        return len(self._usages)

    def to_dict(self) -> dict[str, Any]:
        """Return the claims as `moor claims -o json` prints them."""
        return {"claims": [each.to_dict() for each in self]}

    def _rows(self) -> Iterator[Row]:
        return claim_rows(self._usages)

    def _repr_html_(self) -> str:
        return html.block(html.table(_CLAIM_HEADER, map(_claim_row, self)))

    def __repr__(self) -> str:
        return f"<Claims: {counted(len(self), 'claim')}>"

    def __str__(self) -> str:
        return "\n".join((counted(len(self), "claim"), *map(str, self)))
