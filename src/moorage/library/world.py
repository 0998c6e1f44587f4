"""A cluster with manifests, and the questions that it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any

from moorage.api.apps import DaemonSet
from moorage.hardware.attributes import NumaNodeForm
from moorage.insight.devices import ClaimUsage, DeviceUsage, usage_in
from moorage.insight.errors import ChangeTextError, UnknownObjectError, UnreadError
from moorage.insight.fit import REPLICAS_MAX, fit
from moorage.insight.messages import Concern, natural_order, titled
from moorage.insight.object_names import find_subject, only_subject
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import Plan as InsightPlan
from moorage.insight.plan.planner import plan, unwatched
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.stand_ins import Unused, unused_in
from moorage.insight.whatif import ClusterChange, difference
from moorage.kit.errors import MoorageError
from moorage.library import html
from moorage.library.answers import Fit, WhatIf
from moorage.library.inventory import Claims, Devices
from moorage.library.plans import Plan
from moorage.library.results import Readable, check_type
from moorage.sources.changes import CHANGES, ChangeReader
from moorage.sources.given_cluster import GivenCluster

Progress = Callable[[int, int], None]
Texts = str | Sequence[str]


class World(Readable):
    """A cluster at one moment, and manifests to plan on it. `moorage.load` returns it.

    A world never changes: each question is answered as if it were the only one. Methods with a
    parameter `progress` call it with the amount of work done, and the amount in all.
    """

    __slots__ = ("_form", "_given")

    __eq__ = object.__eq__  # to_dict() only counts the objects
    __hash__ = object.__hash__

    def __init__(self, given: GivenCluster, *, form: NumaNodeForm = NumaNodeForm.SCALAR) -> None:
        self._given = given
        self._form = form

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        names = (node.metadata.name for node in self._given.everything.nodes)
        return tuple(sorted(names, key=natural_order))

    @property
    def pods(self) -> tuple[str, ...]:
        """The existing pods, as namespace/name; `plan` adds those that controllers would create."""
        found = (each.metadata for each in self._given.everything.pods)
        return tuple(f"{each.namespace}/{each.name}" for each in found)

    @property
    def namespace(self) -> str:
        """The namespace of objects that do not name one."""
        return self._given.namespace

    @property
    def warnings(self) -> tuple[str, ...]:
        """Suspicious objects, and what they mean for the answers."""
        return tuple(map(str, self._given.warnings))

    @property
    def unread(self) -> dict[str, tuple[str, ...]]:
        """The resources that could not all be read, and the namespaces in which they were."""
        unread = self._given.everything.unread
        return {each.resource: each.namespaces for each in unread.kinds}

    @property
    def refused(self) -> tuple[str, ...]:
        """What an API server would reject, with places, if such objects were kept."""
        return self._given.refused

    # --- questions ----------------------------------------------------------------------------

    def plan(self, *, progress: Progress | None = None) -> Plan:
        """Return where pods would go, and which devices their claims would get.

        The plan contains the pods of the manifests; without manifests, all pods without a node.
        A claim or template that no pod uses is planned for a pod that requests nothing else: after
        all pods, each alone on what the pods leave.
        """
        given = self._given
        unused = unused_in(given.manifests, given.everything)
        return Plan(given, self._planned(given.everything, progress, unused), given.manifests)

    def fit(
        self,
        subject: str | None = None,
        *,
        replicas_max: int = REPLICAS_MAX,
        progress: Progress | None = None,
    ) -> Fit:
        """Return how many more replicas fit, where, and what stops the next one.

        The subject is the KIND/NAME of a pod, an object that creates pods, a claim or a template;
        it may be omitted if the manifests have only one.
        """
        given = self._given
        check_type("subject", subject, str, NoneType)
        check_type("replicas_max", replicas_max, int)
        if replicas_max < 1:
            raise MoorageError(f"replicas_max: {replicas_max}: must be at least 1")
        everything = given.everything
        chosen = (
            find_subject(everything, subject, namespace=given.namespace)
            if subject is not None
            else only_subject(given.manifests, everything)
        )
        if isinstance(chosen, DaemonSet):
            raise UnknownObjectError(f"{titled(chosen)} has one pod on each node")
        watch = progress or unwatched
        found = fit(everything, chosen, given.context, replicas_max=replicas_max, progress=watch)
        if isinstance(found, Concern):
            raise MoorageError(str(found))
        return Fit(found.fit, tuple(map(str, found.concerns)))

    def what_if(
        self,
        *,
        add: Texts = (),
        add_profile: Texts = (),
        replace_slices: Texts = (),
        rule: Texts = (),
        remove_rule: Texts = (),
        taint_device: Texts = (),
        taint_node: Texts = (),
        cordon: Texts = (),
        drain: Texts = (),
        remove_node: Texts = (),
        delete_pod: Texts = (),
        delete_claim: Texts = (),
        progress: Progress | None = None,
    ) -> WhatIf:
        """Return what changes would do to pods and devices.

        The parameters are the options of `moor whatif`: one string or several. Additions apply
        first. `add`, `replace_slices` and `rule` are files, `taint_device` is
        `DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT`, `taint_node` is `NAME=KEY[=VALUE]:EFFECT`.
        """
        given = self._given
        asked: dict[str, Texts] = {
            "add": add,
            "add_profile": add_profile,
            "replace_slices": replace_slices,
            "rule": rule,
            "remove_rule": remove_rule,
            "taint_device": taint_device,
            "taint_node": taint_node,
            "cordon": cordon,
            "drain": drain,
            "remove_node": remove_node,
            "delete_pod": delete_pod,
            "delete_claim": delete_claim,
        }
        reader = ChangeReader(
            given.context, given.everything, namespace=given.namespace, form=self._form
        )
        changes: list[ClusterChange] = []
        for name in CHANGES:
            for text in _texts(name, asked[name]):
                changes += _made(reader, name, text)
        if not changes:
            raise MoorageError(f"nothing is changed: give one of {', '.join(CHANGES)}")
        found = difference(
            given.everything,
            changes,
            given.context,
            lambda snapshot: self._planned(snapshot, progress),
        )
        concerns = (*map(str, reader.concerns), *map(str, found.concerns))
        return WhatIf(found, concerns)

    def devices(self) -> Devices:
        """Return all devices, with their states and claims."""
        given = self._given
        everything = given.everything
        found = sorted(usage_in(everything, given.context).devices, key=_names_in_order)
        if not found and (hidden := everything.unread.hidden(("ResourceSlice",))):
            raise UnreadError(hidden, "which devices there are")
        return Devices(found, everything, given.context)

    def claims(self, namespace: str | None = None) -> Claims:
        """Return all claims, or those of one namespace: their devices, nodes and consumers."""
        everything = self._given.everything
        found = usage_in(everything, self._given.context).claims
        chosen = [each for each in found if namespace in (None, each.id.namespace)]
        if not chosen and (hidden := everything.unread.hidden(("ResourceClaim",), namespace or "")):
            raise UnreadError(hidden, "which claims there are")
        return Claims(sorted(chosen, key=_names_in_order))

    # --- the whole ----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the number of objects of each kind, and the warnings about them."""
        everything = self._given.everything
        counts: dict[str, int] = {}
        for each in everything.objects():
            counts[each.kind] = counts.get(each.kind, 0) + 1
        return {
            "objects": counts,
            "warnings": list(self.warnings),
            "refused": list(self.refused),
        }

    def _rows(self) -> Iterator[dict[str, Any]]:
        for kind, number in self.to_dict()["objects"].items():
            yield {"kind": kind, "objects": number}

    def _repr_html_(self) -> str:
        tree = self.to_dict()
        parts = [html.table(("Kind", "Objects"), tree["objects"].items())]
        parts += map(html.paragraph, (*self.refused, *self.warnings))
        return html.block(*parts)

    def __str__(self) -> str:
        objects = self.to_dict()["objects"]
        texts = (f"{number:,} {kind}" for kind, number in objects.items())
        lines = [", ".join(texts) or "no objects"]
        return "\n".join((*lines, *self.refused, *self.warnings))

    def _planned(
        self, snapshot: Snapshot, progress: Progress | None, unused: Sequence[Unused] = ()
    ) -> InsightPlan:
        return plan(
            snapshot,
            self._given.context,
            unused=unused,
            progress=progress or unwatched,
            limit=EvaluationLimit(time.monotonic),
        )


def _texts(name: str, value: Texts) -> tuple[str, ...]:
    """Return the texts of a parameter, which is one string or several."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        check_type(name, value, str)
        return (value,)
    for text in (found := tuple(value)):
        check_type(name, text, str)
    return found


def _made(reader: ChangeReader, name: str, text: str) -> list[ClusterChange]:
    try:
        return list(reader.changes(name, text))
    except ChangeTextError as error:
        raise ChangeTextError(f"{name} {text}: {error}") from None


def _names_in_order(usage: DeviceUsage | ClaimUsage) -> list[Any]:
    return list(map(natural_order, usage.id))
