"""Changes to a cluster, written as text: what `moor whatif` and the library's `what_if` take.

    ("drain", "node-1")                                  DrainNode
    ("taint_device", "gpu.example.com/*/gpu-0=sick:NoExecute")   AddTaintRule
    ("add", "more-nodes.yaml")                           AddObjects

Additions come first in `CHANGES`, so that others can refer to what they add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from moorage.hardware.attributes import NumaNodeForm
from moorage.insight.errors import ChangeTextError
from moorage.insight.messages import Concern
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import AddObjects, AddTaintRule, ClusterChange
from moorage.insight.whatif.change_words import ChangeWords
from moorage.sources.cluster_sources import FileSource, give_all
from moorage.sources.errors import ObjectsRefusedError, UnreadableError
from moorage.validation.strategy import Context

# In the order in which they are applied.
CHANGES: Final = (
    "add",
    "add_profile",
    "replace_slices",
    "rule",
    "remove_rule",
    "taint_device",
    "taint_node",
    "cordon",
    "drain",
    "remove_node",
    "delete_pod",
    "delete_claim",
)


class ChangeReader:
    """Parses changes; later ones can refer to what earlier ones add.

    Invalid text raises ChangeTextError or ProfileError; files raise UnreadableError and
    ObjectsRefusedError, because the question needs all of their objects.
    """

    def __init__(
        self,
        context: Context,
        known: Snapshot,
        *,
        namespace: str = "default",
        recursive: bool = False,
        form: NumaNodeForm = NumaNodeForm.SCALAR,
    ) -> None:
        self.concerns: list[Concern] = []  # about the objects in files
        self._context = context
        self._namespace = namespace
        self._recursive = recursive
        self._words = ChangeWords(known, context, namespace=namespace, form=form)

    def changes(self, name: str, text: str) -> Iterable[ClusterChange]:
        """Return the changes that a text describes; `name` is one of CHANGES."""
        of_files: Mapping[str, Callable[[str], Iterable[ClusterChange]]] = {
            "add": self._add,
            "replace_slices": self._replace_slices,
            "rule": self._rules,
        }
        make = of_files.get(name)
        return self._words.read(name, text) if make is None else make(text)

    def _add(self, name: str) -> Iterator[ClusterChange]:
        objects = self._read(name)
        if not any(objects.objects()):
            raise ChangeTextError("it contains no objects that matter here")
        self._words.know(objects.objects())
        yield AddObjects(objects)

    def _replace_slices(self, name: str) -> Iterator[ClusterChange]:
        yield self._words.replace_slices(self._read(name).slices)

    def _rules(self, name: str) -> Iterator[ClusterChange]:
        rules = self._read(name).taint_rules
        if not rules:
            raise ChangeTextError("there is no DeviceTaintRule in it")
        self._words.know(rules)
        for rule in rules:
            yield AddTaintRule(rule)

    def _read(self, name: str) -> Snapshot:
        intake = SnapshotBuilder(self._context, namespace=self._namespace)
        source = FileSource((name,), self._recursive, self._context.yaml_schema)
        give_all([source], intake)
        if intake.unreadable:
            raise UnreadableError("\n".join((*intake.unreadable, *intake.refused)))
        if intake.refused:
            raise ObjectsRefusedError(intake.refused)
        self.concerns += intake.concerns()
        return intake.snapshot()
