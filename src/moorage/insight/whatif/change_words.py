"""Changes as users write them: `drain node-1`, `taint-node node-1=key=value:NoSchedule`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Final

from moorage.api.resource.v1 import ResourceSlice
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue, ProfileCount
from moorage.insight.errors import ChangeTextError
from moorage.insight.messages import counted
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


class ChangeWords:
    """Turns words into changes; those that come later can refer to what earlier ones add."""

    def __init__(
        self,
        known: Snapshot,
        context: Context,
        *,
        namespace: str = "default",
        form: NumaNodeForm = NumaNodeForm.SCALAR,
        machines_max: int | None = None,
    ) -> None:
        """Take how many machines all words together may add; None for any number."""
        self._known = known
        self._machines_left = machines_max
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
        """Let later words refer to objects that were added in another way."""
        self._known = self._known.with_objects(objects)

    def full(self, name: str) -> str:
        """Return a name with its namespace."""
        return name if "/" in name else f"{self._namespace}/{name}"

    def add_profile(self, name: str) -> Iterator[ClusterChange]:
        """Yield the machines of a profile."""
        taken = [node.metadata.name for node in self._known.nodes]
        catalogue = Catalogue()
        self._count_machines(catalogue.wanted(name))
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

    def _count_machines(self, wanted: ProfileCount) -> None:
        """Raise ChangeTextError for more machines than may be added."""
        if self._machines_left is None:
            return
        if wanted.machines > self._machines_left:
            raise ChangeTextError(
                f"{counted(wanted.machines, 'machine')} more: at most {self._machines_left:,} can "
                "be added here; `moor whatif` adds any number"
            )
        self._machines_left -= wanted.machines

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
