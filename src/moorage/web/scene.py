"""The objects of a cluster and their fleet, updated with every change.

    change ─► objects ─► pool_usages ─► rows ─► Fleet

The states of devices come from `moorage.insight.devices`, which `moor devices` prints as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.insight.devices.model import ClaimId
from moorage.insight.snapshot.snapshot import FIELDS, Snapshot, key_of
from moorage.insight.snapshot.unread import NOTHING_UNREAD, Unread
from moorage.kit.checkpoints import checkpoint
from moorage.validation.strategy import Context
from moorage.web.columns import Strings
from moorage.web.device_rows import DeviceRows
from moorage.web.fleet import Fleet, Group
from moorage.web.owner_rows import PENDING, OwnerRows, PodKey, pod_state
from moorage.web.pending import Cause, grouped
from moorage.web.pool_usages import PoolUsages

ObjectKey = tuple[str, str, str]
STRINGS_SPARE: Final = 20_000  # strings that are no longer used


class Scene:
    """The objects of a cluster, and its fleet."""

    def __init__(
        self,
        context: Context,
        objects: Iterable[Any] = (),
        unread: Unread = NOTHING_UNREAD,
    ) -> None:
        self.context, self._unread = context, unread
        self._objects: dict[ObjectKey, Any] = {}
        self._usages = PoolUsages(context, unread)
        self._waiting: dict[PodKey, Pod] = {}
        self._causes: Mapping[PodKey, Cause] = {}
        self._groups: tuple[Group, ...] = ()
        self._snapshot: Snapshot | None = None
        self._begin_rows()
        self.change(objects)

    def _begin_rows(self) -> None:
        self._strings = Strings()
        self._strings_begun = 0
        self._devices = DeviceRows(self._strings)
        self._owners = OwnerRows(self._strings)

    def copy(self) -> Scene:
        """Return an independent copy."""
        found = Scene(self.context, unread=self._unread)
        found._objects, found._usages = dict(self._objects), self._usages.copy()
        found._waiting, found._causes = dict(self._waiting), self._causes
        found._groups, found._snapshot = self._groups, self._snapshot
        found._strings, found._strings_begun = self._strings.copy(), self._strings_begun
        found._devices = self._devices.copy(found._strings)
        found._owners = self._owners.copy(found._strings)
        return found

    # --- what is asked ------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """All objects."""
        if self._snapshot is None:
            self._snapshot = Snapshot.of(self._objects.values(), self._unread)
        return self._snapshot

    @property
    def rows(self) -> DeviceRows:
        """The rows of devices."""
        return self._devices

    @property
    def pending(self) -> Collection[Pod]:
        """The pods that wait for a node."""
        return self._waiting.values()

    def pod_row(self, pod: Pod) -> int:
        """Return the row of a pod, or -1 if it has none."""
        return self._owners.pods.row((pod.metadata.namespace, pod.metadata.name))

    def find(self, kind: str, namespace: str, name: str) -> Any:
        """Return an object, or None if it does not exist."""
        return self._objects.get((kind, namespace, name))

    def fleet(self, revision: int, time: str) -> Fleet:
        """Return the current fleet."""
        tables = {
            "nodes": self._devices.nodes,
            "devices": self._devices.devices,
            "holdings": self._devices.holdings.columns,
            "claims": self._owners.claims.columns,
            "pods": self._owners.pods.columns,
        }
        copied = {
            name: {column: list(values) for column, values in table.items()}
            for name, table in tables.items()
        }
        return Fleet(revision, time, tuple(self._strings.names), copied, self._groups)

    # --- changes ------------------------------------------------------------------------------

    def change(self, written: Iterable[Any], removed: Iterable[ObjectKey] = ()) -> None:
        """Apply written objects, and the keys of removed ones."""
        self._snapshot = None
        changed: dict[ObjectKey, Any] = {}
        for key in removed:
            if key in self._objects:
                self._usages.note(self._objects.pop(key), None)
                changed[key] = None
        for value in written:
            checkpoint()
            if type(value) in FIELDS:
                key = key_of(value)
                self._usages.note(self._objects.get(key), value)
                self._objects[key] = changed[key] = value
        self._follow(changed)

    def move_to(self, snapshot: Snapshot) -> None:
        """Change to another moment; unchanged objects are recognized by identity."""
        now = {key_of(each): each for each in snapshot.objects()}
        known = self._objects
        removed = [key for key in known if key not in now]
        self.change([each for key, each in now.items() if known.get(key) is not each], removed)
        self._snapshot = snapshot

    def explain(self, causes: Mapping[PodKey, Cause]) -> None:
        """Record the causes that were found for pending pods."""
        if causes != self._causes:
            self._causes = causes
            self._group()

    def _follow(self, changed: Mapping[ObjectKey, Any]) -> None:
        for value in changed.values():
            if isinstance(value, ResourceClaim):
                self._owners.put_claim(value)
        evaluated = self._usages.evaluate()
        is_in_order = (
            evaluated.are_same
            and self._follow_nodes(changed)
            and self._devices.put_devices(evaluated.devices, self._owners.claims.row)
        )
        for kind, namespace, name in (key for key, value in changed.items() if value is None):
            if kind == "ResourceClaim":
                self._owners.remove_claim(ClaimId(namespace, name))
        if not is_in_order:
            self._arrange()
        self._follow_pods(changed)

    def _follow_nodes(self, changed: Mapping[ObjectKey, Any]) -> bool:
        """Update the states of nodes; return whether all rows keep their places."""
        nodes = [value for key, value in changed.items() if key[0] == "Node"]
        return all(node is not None and self._devices.put_node(node) for node in nodes)

    def _follow_pods(self, changed: Mapping[ObjectKey, Any]) -> None:
        is_group_changed = False
        for (kind, *key), value in changed.items():
            if kind != "Pod":
                is_group_changed |= bool(self._waiting) and kind in _WANTS
                continue
            name = (key[0], key[1])
            was_waiting = self._waiting.pop(name, None) is not None
            if value is None:
                self._owners.remove_pod(name)
            else:
                self._owners.put_pod(value, self._devices.node_row(value.spec.node_name))
                if pod_state(value) == PENDING:
                    self._waiting[name] = value
            is_group_changed |= was_waiting or name in self._waiting
        if is_group_changed:
            self._group()

    def _arrange(self) -> None:
        """Put everything into a new order, and drop unused strings."""
        if len(self._strings) > 2 * self._strings_begun + STRINGS_SPARE:
            self._begin_rows()
            for value in self._objects.values():
                if isinstance(value, ResourceClaim):
                    self._owners.put_claim(value)
        self._devices.arrange(self._usages.nodes, self._usages.devices(), self._owners.claims.row)
        for value in self._objects.values():
            if isinstance(value, Pod):
                self._owners.put_pod(value, self._devices.node_row(value.spec.node_name))
        self._strings_begun = len(self._strings)

    def _group(self) -> None:
        self._groups, of_pod = grouped(
            self._waiting.values(), self._causes, self.spec_of, self._owners.pods.row
        )
        self._owners.put_groups(of_pod)

    def spec_of(self, kind: str, namespace: str, name: str) -> Any:
        """Return the claim spec of a claim or template, or None if it does not exist."""
        found = self.find(kind, namespace, name)
        if found is None:
            return None
        return found.spec.spec if kind == "ResourceClaimTemplate" else found.spec


_WANTS: Final = ("ResourceClaim", "ResourceClaimTemplate")
