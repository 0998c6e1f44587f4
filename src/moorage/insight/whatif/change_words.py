"""Changes as users write them: `drain node-1`, `taint-node node-1=key=value:NoSchedule`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.codec import to_tree
from moorage.api.resource.v1 import ResourceSlice
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue
from moorage.insight.errors import ChangeTextError
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif.changed_cluster import (
    AddObjects,
    AddTaintRule,
    ClusterChange,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
)
from moorage.insight.whatif.taint_words import check_meant, device_taint, node_taint
from moorage.validation.strategy import Context


class Additions(NamedTuple):
    """How much changes add to a cluster, or may add."""

    devices: int = 0
    objects: int = 0
    size: int = 0  # in bytes, as JSON

    @classmethod
    def of(cls, objects: Iterable[Any]) -> Additions:
        """Return how much some objects are."""
        found = list(objects)
        devices = sum(len(e.spec.devices or ()) for e in found if isinstance(e, ResourceSlice))
        size = sum(len(msgspec.json.encode(to_tree(each))) for each in found)
        return cls(devices, len(found), size)

    def times(self, count: int) -> Additions:
        """Return how much so many of the same are."""
        return Additions(*(each * count for each in self))

    def plus(self, other: Additions) -> Additions:
        """Return how much both are together."""
        return Additions(*(one + more for one, more in zip(self, other, strict=True)))

    def check(self, most: Additions) -> None:
        """Raise ChangeTextError for the first figure above its bound."""
        for figure, bound, noun in zip(self, most, ("devices", "objects", "bytes"), strict=True):
            if figure > bound:
                raise ChangeTextError(
                    f"all changes together add {figure:,} {noun}: at most {bound:,} can be added "
                    "here; `moor whatif` adds any number"
                )


class ChangeWords:
    """Turns words into changes; those that come later can refer to what earlier ones add."""

    def __init__(
        self,
        known: Snapshot,
        context: Context,
        *,
        namespace: str = "default",
        form: NumaNodeForm = NumaNodeForm.SCALAR,
        most: Additions | None = None,
    ) -> None:
        """Take how much all words together may add; None for any amount."""
        self._known = known
        self._added, self._most = Additions(), most
        self._context = context
        self._namespace = namespace
        self._form = form

    @property
    def words(self) -> list[str]:
        """The words that a change begins with."""
        return list(_MAKERS)

    def read(self, word: str, value: str) -> Iterable[ClusterChange]:
        """Return the changes, or raise ChangeTextError or ProfileError."""
        return _MAKERS[word](self, value)

    def replace_slices(self, slices: Iterable[ResourceSlice]) -> ReplaceSlices:
        """Return the change to these slices and no others of their drivers."""
        found = tuple(slices)
        if not found:
            raise ChangeTextError("there is no ResourceSlice in it")
        self.know(found)
        return ReplaceSlices(tuple(sorted({each.spec.driver for each in found})), found)

    def know(self, objects: Iterable[Any]) -> None:
        """Let later words refer to objects."""
        self._known = self._known.with_objects(objects)

    def count(self, added: Additions) -> None:
        """Count what is added, before it is; raise ChangeTextError if it is too much."""
        if self._most is not None:
            self._added = self._added.plus(added)
            self._added.check(self._most)

    def full(self, name: str) -> str:
        """Return a name with its namespace."""
        return name if "/" in name else f"{self._namespace}/{name}"

    def add_profile(self, name: str) -> Iterator[ClusterChange]:
        """Yield the machines of a profile."""
        taken = [node.metadata.name for node in self._known.nodes]
        catalogue = Catalogue()
        if self._most is not None:
            wanted = catalogue.wanted(name)
            one = catalogue.fleet(wanted.profile.name, self._form)
            self.count(Additions.of((*one.nodes, *one.slices)).times(wanted.units))
        fleet = catalogue.fleet(name, self._form, taken=taken)
        intake = SnapshotBuilder(self._context)
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
            intake.add_object(each, f"profile {name}")
        added = intake.snapshot()
        # A class that is there may have been changed on purpose.
        classes = {each.metadata.name for each in self._known.classes}
        added = added.without([c for c in added.classes if c.metadata.name in classes])
        self.know(added.objects())
        yield AddObjects(added)

    def taint_device(self, text: str) -> Iterator[ClusterChange]:
        """Yield a rule that taints devices."""
        taken = {rule.metadata.name for rule in self._known.taint_rules}
        name = next(n for i in count(1) if (n := f"whatif-{i}") not in taken)
        rule = device_taint(text, name, self._context)
        check_meant(rule, self._known)
        self.know([rule])
        yield AddTaintRule(rule)


_MAKERS: Final[dict[str, Callable[[ChangeWords, str], Iterable[ClusterChange]]]] = {
    "add_profile": ChangeWords.add_profile,
    "remove_rule": lambda _, name: [RemoveTaintRule(name)],
    "taint_device": ChangeWords.taint_device,
    "taint_node": lambda _, text: [TaintNode(*node_taint(text))],
    "cordon": lambda _, name: [CordonNode(name)],
    "drain": lambda _, name: [DrainNode(name)],
    "remove_node": lambda _, name: [RemoveNodes((name,))],
    "delete_pod": lambda words, name: [DeletePods((words.full(name),))],
    "delete_claim": lambda words, name: [DeleteClaims((words.full(name),))],
}
