"""Changes of a cluster, written as text: what `moor whatif` and the library's `what_if` take.

    ("drain", "node-1")                                  DrainNode
    ("taint_device", "gpu.example.com/*/gpu-0=sick:NoExecute")   AddTaintRule
    ("add", "more-nodes.yaml")                           AddObjects

Additions come first in `CHANGES`, so that the others can refer to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Final

from mooring.api import names
from mooring.api.catalogue import CATALOGUE
from mooring.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from mooring.api.documents import CORE, KUBERNETES
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    API_VERSION,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from mooring.hardware.attributes import NumaNodeForm
from mooring.hardware.catalogue import Catalogue
from mooring.insight.messages import Concern, similar_hint
from mooring.insight.snapshot.builder import SnapshotBuilder
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif import (
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
from mooring.sources.cluster_sources import FileSource, give_all
from mooring.sources.errors import ChangeTextError, ObjectsRefusedError, UnreadableError
from mooring.validation.registry import before_create
from mooring.validation.strategy import Context

# In the order in which they apply.
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
    """Turns texts into changes; later ones know what earlier ones add.

    A wrong text raises ChangeTextError or ProfileError; files raise UnreadableError and
    ObjectsRefusedError, because without some of their objects the question cannot be answered.
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
        self.concerns: list[Concern] = []  # about the objects of files
        self._context = context
        self._known = known
        self._namespace = namespace
        self._recursive = recursive
        self._form = form

    def changes(self, name: str, text: str) -> Iterable[ClusterChange]:
        """Return the changes that one text asks for; `name` is one of CHANGES."""
        makers: Mapping[str, Callable[[str], Iterable[ClusterChange]]] = {
            "add": self._add,
            "add_profile": self._add_profile,
            "replace_slices": self._replace_slices,
            "rule": self._rules,
            "remove_rule": lambda name: [RemoveTaintRule(name)],
            "taint_device": self._taint_device,
            "taint_node": lambda text: [TaintNode(*node_taint(text))],
            "cordon": lambda name: [CordonNode(name)],
            "drain": lambda name: [DrainNode(name)],
            "remove_node": lambda name: [RemoveNodes((name,))],
            "delete_pod": lambda name: [DeletePods((self._full(name),))],
            "delete_claim": lambda name: [DeleteClaims((self._full(name),))],
        }
        return makers[name](text)

    def _full(self, name: str) -> str:
        return name if "/" in name else f"{self._namespace}/{name}"

    # --- files --------------------------------------------------------------------------------

    def _add(self, name: str) -> Iterator[ClusterChange]:
        objects = self._read(name)
        if not any(objects.objects()):
            raise ChangeTextError("there is nothing in it that decides anything")
        self._known = self._known.with_objects(objects.objects())
        yield AddObjects(objects)

    def _replace_slices(self, name: str) -> Iterator[ClusterChange]:
        slices = self._read(name).slices
        if not slices:
            raise ChangeTextError("there is no ResourceSlice in it")
        drivers = tuple(sorted({each.spec.driver for each in slices}))
        self._known = self._known.with_objects(slices)
        yield ReplaceSlices(drivers, slices)

    def _rules(self, name: str) -> Iterator[ClusterChange]:
        rules = self._read(name).taint_rules
        if not rules:
            raise ChangeTextError("there is no DeviceTaintRule in it")
        self._known = self._known.with_objects(rules)
        for rule in rules:
            yield AddTaintRule(rule)

    def _read(self, name: str) -> Snapshot:
        schema = CORE if self._context.extensions else KUBERNETES
        intake = SnapshotBuilder(self._context, namespace=self._namespace)
        give_all([FileSource((name,), self._recursive, schema)], intake)
        if intake.unreadable:
            raise UnreadableError("\n".join((*intake.unreadable, *intake.refused)))
        if intake.refused:
            raise ObjectsRefusedError(intake.refused)
        self.concerns += intake.concerns()
        return intake.snapshot()

    # --- the rest -----------------------------------------------------------------------------

    def _add_profile(self, name: str) -> Iterator[ClusterChange]:
        taken = [node.metadata.name for node in self._known.nodes]
        fleet = Catalogue().fleet(name, self._form, taken=taken)
        intake = SnapshotBuilder(self._context)
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
            intake.add_object(each, f"profile {name}")
        added = intake.snapshot()
        # A class that is there may have been changed on purpose.
        classes = {each.metadata.name for each in self._known.classes}
        added = added.without([c for c in added.classes if c.metadata.name in classes])
        self._known = self._known.with_objects(added.objects())
        yield AddObjects(added)

    def _taint_device(self, text: str) -> Iterator[ClusterChange]:
        taken = {rule.metadata.name for rule in self._known.taint_rules}
        name = next(n for i in count(1) if (n := f"whatif-{i}") not in taken)
        rule = device_taint(text, name, self._context)
        self._check_meant(rule)
        self._known = self._known.with_objects([rule])
        yield AddTaintRule(rule)

    def _check_meant(self, rule: DeviceTaintRule) -> None:
        """Refuse a text that means no device that is there."""
        selector = rule.spec.device_selector
        assert selector is not None
        wanted = (selector.driver, selector.pool, selector.device)
        known: list[str] = []
        for each in self._known.slices:
            for device in each.spec.devices or ():
                parts = (each.spec.driver, each.spec.pool.name, device.name)
                if all(want in (None, part) for want, part in zip(wanted, parts, strict=True)):
                    return
                known.append("/".join(parts))
        name = "/".join("*" if part is None else part for part in wanted)
        remedy = similar_hint(name, known)
        raise ChangeTextError(f"there is no device {name}{remedy}")


# --- taints: TARGET=KEY[=VALUE]:EFFECT, the taint as kubectl writes it ----------------------------

ANY = "*"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
LENGTH_MAX = 2000

_TAINT = r"(?P<key>[^=:]+)(?:=(?P<value>[^=:]*))?:(?P<effect>[A-Za-z]+)"
_NODE = re.compile(rf"(?P<node>[^=]+)={_TAINT}")
_DEVICE = re.compile(rf"(?P<driver>[^/=]+)/(?P<pool>[^=]+)/(?P<device>[^/=]+)={_TAINT}")
_KIND = CATALOGUE.find(API_VERSION, "DeviceTaintRule")


def node_taint(text: str) -> tuple[str, Taint]:
    """Return the node and its taint, or raise ChangeTextError."""
    found = _NODE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise ChangeTextError("must be of the form NODE=KEY[=VALUE]:EFFECT")
    key, value, effect = found["key"], found["value"] or "", found["effect"]
    if effect not in EFFECTS:
        raise ChangeTextError(f"effect {effect}: must be one of {', '.join(EFFECTS)}")
    for wrong in (*names.label_name(key), *names.label_value(value)):
        raise ChangeTextError(wrong)
    return found["node"], Taint(key=key, value=value, effect=effect)


def device_taint(text: str, name: str, context: Context) -> DeviceTaintRule:
    """Return a rule of this name with the taint, or raise ChangeTextError."""
    found = _DEVICE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise ChangeTextError("must be of the form DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT")
    driver, pool, device = (
        None if found[part] == ANY else found[part] for part in ("driver", "pool", "device")
    )
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=driver, pool=pool, device=device),
            taint=DeviceTaint(key=found["key"], value=found["value"] or "", effect=found["effect"]),
        ),
    )
    admission = before_create(rule, _KIND, context)
    if admission.stored is None:
        wrong = admission.refused or "; ".join(map(str, admission.errors))
        raise ChangeTextError(wrong)
    stored: DeviceTaintRule = admission.stored
    return stored
