"""How many more replicas fit, and what changes to the cluster would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from moorage.insight.fit import Fit as FoundFit
from moorage.insight.fit import Lever
from moorage.insight.messages import counted, listed, natural_order
from moorage.insight.rows import Row, change_rows, fit_rows
from moorage.insight.whatif import Difference
from moorage.insight.whatif.difference import PodChange, PodPlacement, difference_tree
from moorage.library import html
from moorage.library.results import Readable, Record, plain_tree


@final
class Fit(Readable):
    """How many replicas fit, where, and what stops the next one. `World.fit` returns it."""

    __slots__ = ("_found", "_warnings")

    def __init__(self, found: FoundFit, warnings: tuple[str, ...] = ()) -> None:
        self._found = found
        self._warnings = warnings

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats that limit what the answer means."""
        return self._warnings

    @property
    def subject(self) -> str:
        """What the replicas are made from: `Deployment default/train`."""
        return self._found.subject

    @property
    def total(self) -> int:
        """How many replicas fit, those that are wanted included, those that run not."""
        return self._found.total

    @property
    def wanted(self) -> int:
        """How many replicas are asked for already and have no node: the first of `total`."""
        return self._found.wanted

    @property
    def running(self) -> int:
        """How many replicas have a node; they are not part of `total`."""
        return self._found.running

    @property
    def more(self) -> int:
        """How many replicas fit beyond those that run and those that are wanted."""
        return self._found.more

    @property
    def is_more(self) -> bool:
        """Whether more may fit, because the maximum was reached."""
        return self._found.is_more

    @property
    def by_node(self) -> dict[str, int]:
        """How many replicas each node takes, without those that take none."""
        places = sorted(self._found.places, key=lambda each: natural_order(each.node))
        return {each.node: each.replicas for each in places}

    @property
    def limits(self) -> tuple[str, ...]:
        """What stops the next replica on which nodes; the limits of most replicas come first."""
        return tuple(map(str, self._found.limits))

    @property
    def left_over(self) -> dict[str, float]:
        """For each request, the percentage of its devices that stay free but fit no replica."""
        return {each.request: each.percent for each in self._found.leftovers}

    @property
    def levers(self) -> tuple[str, ...]:
        """Changes that would let more replicas fit; Moorage has tried each of them."""
        return tuple(map(_lever_text, self._found.levers))

    @property
    def message(self) -> str:
        """Kubernetes' message about the first replica that does not fit."""
        return self._found.message

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as `moor fit -o json` prints it."""
        return plain_tree(self._found)

    def _rows(self) -> Iterator[Row]:
        return fit_rows(self._found)

    def _repr_html_(self) -> str:
        limits, shares = self._found.limits, self._found.shares
        rows = ((shares(each.nodes), ", ".join(each.nodes) or "all", str(each)) for each in limits)
        return html.block(
            html.paragraph(self._headline(), is_strong=True),
            html.table(("Replicas", "Nodes", "Why no more"), rows) if limits else "",
            html.paragraph("More would fit:") if self.levers else "",
            html.ordered_list(self.levers),
            *map(html.paragraph, (*self._found.notes, *self.warnings)),
        )

    def _headline(self) -> str:
        maybe = ", and maybe more" if self.is_more else ""
        return f"{self._found.headline}{maybe}"

    def __str__(self) -> str:
        limits = (
            f"  {self._found.shares(each.nodes)} on "
            f"{listed(each.nodes) if each.nodes else 'all nodes'}: {each}"
            for each in self._found.limits
        )
        return "\n".join((self._headline(), *limits))


def _lever_text(lever: Lever) -> str:
    then = f", then {lever.next}" if lever.next is not None else " and maybe more"
    return f"{lever.text}: {counted(lever.total, 'replica')}{then}"


@final
class ChangedPod(Record):
    """A pod that the changes affect."""

    __slots__ = ("_found",)

    def __init__(self, found: PodChange) -> None:
        self._found = found

    @property
    def full_name(self) -> str:
        """Namespace and name of the pod."""
        return self._found.pod

    @property
    def turn(self) -> str:
        """What happens: gains, loses, moves, restarts, waits, lost, gone, deleted or new."""
        return self._found.kind.value

    @property
    def is_worse(self) -> bool:
        """Whether the pod loses its node, is lost, or would have to leave again."""
        return self._found.is_worse

    @property
    def node_before(self) -> str | None:
        """The pod's node without the changes."""
        return None if self._found.before is None else self._found.before.node

    @property
    def node_after(self) -> str | None:
        """The pod's node with the changes."""
        return None if self._found.after is None else self._found.after.node

    @property
    def devices_before(self) -> tuple[str, ...]:
        """The pod's devices without the changes, as driver/pool/device."""
        return _devices(self._found.before)

    @property
    def devices_after(self) -> tuple[str, ...]:
        """The pod's devices with the changes, as driver/pool/device."""
        return _devices(self._found.after)

    @property
    def why(self) -> str:
        """Why the pod leaves its node, or gets none."""
        found = self._found
        texts = (found.why, "" if found.after is None else found.after.message)
        return "; ".join(filter(None, texts))

    def to_dict(self) -> dict[str, Any]:
        """Return the pod as `moor whatif -o json` prints it."""
        return plain_tree(self._found)

    def _rows(self) -> Iterator[Row]:
        return change_rows([self._found])

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(self))

    def __str__(self) -> str:
        places = f"{self.node_before or '<none>'} → {self.node_after or '<none>'}"
        if self._found.is_on_same_node and self.devices_before != self.devices_after:
            places = f"to other devices on {self.node_after or '<none>'}"
        why = f": {self.why}" if self.why else ""
        return f"pod {self.full_name} {self.turn}, {places}{why}"


def _devices(placement: PodPlacement | None) -> tuple[str, ...]:
    return () if placement is None else placement.devices


@final
class WhatIf(Readable):
    """What changes would do to pods and devices. `World.what_if` returns it."""

    __slots__ = ("_found", "_warnings")

    def __init__(self, found: Difference, warnings: tuple[str, ...] = ()) -> None:
        self._found = found
        self._warnings = warnings

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats that limit what the answer means."""
        return self._warnings

    @property
    def pods(self) -> tuple[ChangedPod, ...]:
        """The pods that the changes affect."""
        return tuple(map(ChangedPod, self._found.pods))

    @property
    def worse(self) -> tuple[ChangedPod, ...]:
        """The pods that are worse off."""
        return tuple(each for each in self.pods if each.is_worse)

    @property
    def is_worse(self) -> bool:
        """Whether any pod is worse off."""
        return self._found.is_worse

    @property
    def unaffected(self) -> int:
        """How many pods the changes do not affect."""
        return self._found.same

    @property
    def free_before(self) -> int | None:
        """How many devices are free without the changes; None if that is not known."""
        return self._found.free_before

    @property
    def free_after(self) -> int | None:
        """How many devices are free with the changes; None if that is not known."""
        return self._found.free_after

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as `moor whatif -o json` prints it."""
        return plain_tree(difference_tree(self._found))

    def _rows(self) -> Iterator[Row]:
        return change_rows(self._found.pods)

    def _repr_html_(self) -> str:
        rows = (
            (each.full_name, each.turn, each.node_before, each.node_after, each.why)
            for each in self.pods
        )
        return html.block(
            html.paragraph(self._summary(), is_strong=True),
            html.table(("Pod", "Turn", "Before", "After", "Why"), rows) if self.pods else "",
            *map(html.paragraph, self.warnings),
        )

    def _summary(self) -> str:
        before, after = self.free_before, self.free_after
        known = before is not None and after is not None
        free = f"free devices: {f'{before:,} → {after:,}' if known else 'unknown'}"
        return f"{self._found.pods_text}; {free}"

    def __str__(self) -> str:
        return "\n".join((self._summary(), *map(str, self.pods)))
