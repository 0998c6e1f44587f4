"""FieldManager: apply and update of objects with managedFields.

Around the merge itself, in Kubernetes' order: check the version of an applied object, honour
kubectl's annotation, give objects from before the first apply a manager, keep times where nothing
changed, take metadata of the server from managers, and keep at most ten managers that update.
"""

from __future__ import annotations

from functools import cache

from moorage.api.codec import to_tree
from moorage.api.custom_resource import is_custom
from moorage.api.errors import ApiError
from moorage.api.kinds import Kind
from moorage.apiserver.patching import field_set, updater
from moorage.apiserver.patching.errors import PatchError, PatchRefused, bad_request
from moorage.apiserver.patching.field_set import FieldSet
from moorage.apiserver.patching.json_values import Tree, same
from moorage.apiserver.patching.managed_fields import (
    APPLY,
    UPDATE,
    FieldOwner,
    ManagedFields,
    ManagedFieldsError,
    Unusual,
    VersionedSet,
    cap_updaters,
    created_fields,
    read_managed_fields,
)
from moorage.apiserver.patching.shapes import shape_in_version, shape_of_kind
from moorage.apiserver.patching.structured_compare import ShapeError, check
from moorage.apiserver.patching.structured_merge import ItemError, without_emptied
from moorage.apiserver.patching.updater import (
    KUBECTL,
    ManagerConflict,
    OwnerUpdate,
    TypedObject,
    allowed_fields,
    in_version,
    with_last_applied,
)

_STATUS, _SPEC, _METADATA = "status", "spec", "metadata"
CUSTOM = ""  # the name that stands for all custom resources

# Metadata that the status subresource cannot change; for other kinds nothing.
_METADATA_OF_STATUS: dict[str, tuple[str, ...]] = {
    CUSTOM: (_METADATA,),
    "CompositePodGroup": (_METADATA,),
    "Deployment": ("metadata.labels",),
    "DeviceTaintRule": (_METADATA,),
    "Pod": ("metadata.deletionTimestamp", "metadata.ownerReferences"),
    "PodGroup": (_METADATA,),
    "ResourceClaim": (_METADATA,),
    "ResourcePoolStatusRequest": (_METADATA,),
}


def reset_fields(kind: Kind, subresource: str) -> FieldSet:
    """Return the fields that requests to a resource or subresource never own."""
    name = CUSTOM if is_custom(kind.struct) else kind.name
    return _reset_fields(name, kind.has_status, subresource)


@cache
def _reset_fields(name: str, has_status: bool, subresource: str) -> FieldSet:
    match subresource:
        case "" if has_status:
            texts: tuple[str, ...] = (_STATUS,)
        case "finalize":
            texts = (_STATUS,)
        case "status":
            texts = (_SPEC, *_METADATA_OF_STATUS.get(name, ()))
        case _:
            texts = ()
    return FieldSet.of(*(tuple(map(field_set.field, text.split("."))) for text in texts))


# --- manager names --------------------------------------------------------------------------------

NAME_BYTES_MAX = 128


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the manager that a request names, else the name of its user agent."""
    if field_manager:
        return field_manager
    name, size = "", 0
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        size += len(character.encode(errors="replace"))
        if size > NAME_BYTES_MAX:
            break
        name += character
    return name


# --- apply and update -----------------------------------------------------------------------------

_BEFORE_FIRST_APPLY = "before-first-apply"
_SELF = FieldOwner("current-operation", UPDATE)

SERVERS_OWN = FieldSet.of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    ("f:metadata", "f:name"),
    ("f:metadata", "f:namespace"),
    ("f:metadata", "f:creationTimestamp"),
    ("f:metadata", "f:selfLink"),
    ("f:metadata", "f:uid"),
    ("f:metadata", "f:clusterName"),
    ("f:metadata", "f:generation"),
    ("f:metadata", "f:managedFields"),
    ("f:metadata", "f:resourceVersion"),
)


class FieldManager:
    """Manages the fields of one kind, in one version, through the resource or a subresource."""

    def __init__(self, kind: Kind, subresource: str = "") -> None:
        shape = shape_of_kind(kind)
        assert shape is not None, f"no table for {kind.api_version} {kind.name}"
        self._kind = kind
        self._shape = shape
        self._subresource = subresource
        self._reset = reset_fields(kind, subresource)
        self._nothing = to_tree(kind.struct(api_version=kind.api_version, kind=kind.name))

    def apply(
        self, live: Tree | None, applied: Tree, *, manager: str, force: bool, now: str
    ) -> Tree | PatchError:
        """Return the live object with the applied one merged in, or the error.

        The live object is as the codec writes it, in any version of the kind; the result is in
        this manager's, and not defaulted yet.
        """
        try:
            return self._apply(live, applied, manager, force, now)
        except ManagerConflict as conflict:
            return conflict.to_error()
        except PatchRefused as refusal:
            return refusal.error
        except (ShapeError, ItemError, ManagedFieldsError, ApiError) as error:
            return bad_request(str(error)).error
        except RecursionError:
            return bad_request("error decoding patch: nested too deeply").error

    def update(self, live: Tree | None, new: Tree, *, manager: str, now: str) -> Tree:
        """Return an object with managedFields, after it was created, replaced or patched.

        Both objects are as the codec writes them. Never fails: if managers cannot be computed, the
        live object's stay.
        """
        if live is None and (created := self._created(new, manager, now)) is not None:
            return created
        before = _entries(live)
        try:
            if (managed := self._managed_for(live, new)) is None:
                return _with_entries(new, [])
            bare = _with_entries(new, [])
            self._update(self._live(live), TypedObject(self._shape, bare), managed, manager, now)
        except (PatchRefused, ShapeError, ItemError, ManagedFieldsError, ApiError, RecursionError):
            return _with_entries(new, before)
        return _with_entries(bare, managed.to_json())

    def _created(self, new: Tree, manager: str, now: str) -> Tree | None:
        """Return a new object with its one manager; None if the slow path is needed."""
        if self._reset.children or (new.get("metadata") or {}).get("managedFields") is not None:
            return None
        left_alone = frozenset(step[2:] for step in self._reset.members)
        try:
            fields = created_fields(self._shape, self._nothing, new, left_alone=left_alone)
        except (Unusual, ItemError, RecursionError):
            return None
        if not fields:
            return new
        entry = {
            "manager": manager or "unknown",
            "operation": UPDATE,
            "apiVersion": self._kind.api_version,
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "subresource": self._subresource,
        }
        return _with_entries(new, [{key: part for key, part in entry.items() if part != ""}])

    # --- apply -----------------------------------------------------------------------------

    def _apply(self, live: Tree | None, applied: Tree, manager: str, force: bool, now: str) -> Tree:
        self._check_applied(applied)
        try:
            managed = read_managed_fields(_entries(live))
        except ManagedFieldsError as error:
            raise bad_request(f"failed to decode managed fields: {error}") from None
        here = self._live(live)
        wanted = TypedObject(self._shape, applied)
        if not managed.sets:
            empty = TypedObject(self._shape, self._nothing)
            self._update(empty, here, managed, _BEFORE_FIRST_APPLY, now)
        owner = FieldOwner(manager or "unknown", APPLY, "", self._subresource)
        request = OwnerUpdate(owner, self._kind.api_version, self._reset, force)
        after = self._merged(here, wanted, managed, request)
        if same(after.tree, here.tree):
            after = here
        elif now:
            managed.times[owner] = now
        self._strip(managed, owner)
        tree = without_emptied(self._shape, after.tree)
        if manager == KUBECTL:
            tree = with_last_applied(tree, applied)
        return _with_entries(tree, managed.to_json())

    def _merged(
        self, live: TypedObject, wanted: TypedObject, managed: ManagedFields, request: OwnerUpdate
    ) -> TypedObject:
        """Return the merged object; fields that kubectl applied itself are no conflict for it."""
        attempt = managed.copy()
        try:
            after = updater.apply(live, wanted, attempt, request)
        except ManagerConflict as conflict:
            if request.owner.manager != KUBECTL:
                raise
            allowed = allowed_fields(live, self._kind.api_version)
            if allowed is None:
                raise
            if (left := conflict.without(allowed)) is not None:
                raise left from None
            attempt = managed.copy()
            after = updater.apply(live, wanted, attempt, request._replace(force=True))
        managed.sets, managed.times = attempt.sets, attempt.times
        return after

    def _check_applied(self, applied: Tree) -> None:
        if not isinstance(applied, dict):
            raise bad_request("error decoding patch: an object must be a map")
        api_version, kind = applied.get("apiVersion"), applied.get("kind")
        if (api_version, kind) != (self._kind.api_version, self._kind.name):
            raise bad_request(f"invalid object type: {_shown_kind(api_version, kind)}")
        metadata = applied.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        try:
            check(self._shape, applied)
        except ShapeError as error:
            place = _shown_object(applied)
            raise bad_request(f"failed to create typed patch object ({place}): {error}") from None

    # --- update ----------------------------------------------------------------------------

    def _update(
        self, live: TypedObject, new: TypedObject, managed: ManagedFields, manager: str, now: str
    ) -> None:
        request = OwnerUpdate(_SELF, self._kind.api_version, self._reset)
        updater.update(live, new, managed, request)
        self._strip(managed, _SELF)
        owner = FieldOwner(manager or "unknown", UPDATE, self._kind.api_version, self._subresource)
        if (owned := managed.sets.pop(_SELF, None)) is not None:
            if (previous := managed.sets.get(owner)) is not None:
                owned = VersionedSet(owned.fields | previous.fields, owned.api_version)
            managed.sets[owner] = owned
            if now:
                managed.times[owner] = now
        cap_updaters(managed)

    def _managed_for(self, live: Tree | None, new: Tree) -> ManagedFields | None:
        """Return the current managed fields; None if the object has none."""
        managed = self._managed_sent(live, new)
        if not managed.sets and live is not None:
            return None  # They were reset, or never recorded.
        return managed

    def _managed_sent(self, live: Tree | None, new: Tree) -> ManagedFields:
        if not self._subresource:  # Subresources cannot set them.
            sent = (new.get("metadata") or {}).get("managedFields")
            if _is_reset(sent):
                return ManagedFields()
            try:
                if (managed := read_managed_fields(sent)).sets:
                    return managed
            except ManagedFieldsError:
                pass
        try:
            return read_managed_fields(_entries(live))
        except ManagedFieldsError:
            return ManagedFields()

    # --- both ------------------------------------------------------------------------------

    def _live(self, live: Tree | None) -> TypedObject:
        """Return the live object in this manager's version, without managedFields."""
        if live is None:
            return TypedObject(self._shape, self._nothing)
        bare = _with_entries(live, [])
        shape = shape_in_version(self._kind, str(bare.get("apiVersion")))
        if shape is None:
            raise bad_request(f"no corresponding type for {_shown_object(bare)}")
        here = in_version(TypedObject(shape, bare), self._kind.api_version)
        assert here is not None
        return here

    def _strip(self, managed: ManagedFields, owner: FieldOwner) -> None:
        """Remove fields that only the server sets from an owner."""
        if (owned := managed.sets.get(owner)) is None:
            return
        fields = owned.fields - SERVERS_OWN
        if fields.is_empty:
            del managed.sets[owner]
        else:
            managed.sets[owner] = owned._replace(fields=fields)


def with_times_kept(live: Tree, new: Tree) -> Tree:
    """Return the live object if the new one differs in times of managers only."""
    before, after = _entries(live), _entries(new)
    if len(before) != len(after):
        return new
    old_tree, new_tree = _with_entries(live, []), _with_entries(new, [])
    if old_tree != new_tree or not same(old_tree, new_tree):  # The first comparison is fast.
        return new
    return live if same(_timeless(before), _timeless(after)) else new


def _timeless(entries: list[Tree]) -> list[Tree]:
    """Return entries without times, in an order independent of them."""
    names = ("manager", "operation", "apiVersion", "subresource")
    timeless = [{key: part for key, part in e.items() if key != "time"} for e in entries]
    return sorted(timeless, key=lambda entry: [str(entry.get(name, "")) for name in names])


def _is_reset(entries: Tree) -> bool:
    """Return whether a client resets managedFields: an empty list, or one empty entry."""
    return isinstance(entries, list) and entries in ([], [{}])


def _entries(tree: Tree | None) -> list[Tree]:
    metadata = (tree or {}).get("metadata")
    return (metadata or {}).get("managedFields") or []


def _with_entries(tree: Tree, entries: list[Tree]) -> Tree:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    if not entries and "managedFields" not in metadata:
        return tree
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    if entries:
        kept["managedFields"] = entries
    return {**tree, "metadata": kept}


def _shown_kind(api_version: Tree, kind: Tree) -> str:
    group_version = str(api_version or "")
    group, slash, version = group_version.rpartition("/")
    shown = f"{group}/{version}" if slash else f"/{version}"
    return f"{shown}, Kind={kind or ''}"


def _shown_object(tree: Tree) -> str:
    metadata = tree.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return f"{place}; {_shown_kind(tree.get('apiVersion'), tree.get('kind'))}"
