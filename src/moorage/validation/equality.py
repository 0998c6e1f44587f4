"""Semantic equality, and what follows from it: the stored form, and ratcheting of updates.

Kubernetes stores objects in a format that cannot tell an empty list from an absent one, so both
are equal (`apiequality.Semantic.DeepEqual`), and storage gives back the absent one.

# declared: a rule that Kubernetes states in the types (declarative validation, `+k8s:` tags). Most
#           have a handwritten twin with a slightly different message, which reports where the
#           declared rule does not: about unchanged parts of an updated object (ratcheting)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter, is_not
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from moorage.api.field_path import MapKey, Path
from moorage.api.raw_json import marshal
from moorage.api.resource.v1 import (
    AllocatedDeviceStatus,
    CounterSet,
    DeviceAttribute,
    DeviceRequest,
    DeviceSubRequest,
)
from moorage.api.structs import NULL
from moorage.validation.errors import ErrorList, ErrorType, FieldError


def semantic_equal(a: Any, b: Any) -> bool:
    """Return whether two values mean the same: absent and empty lists and maps do."""
    if a == b:
        return True
    if not a and not b and _is_collection(a) and _is_collection(b):
        return True
    if isinstance(a, Struct) and type(a) is type(b):
        return all(
            semantic_equal(getattr(a, name), getattr(b, name)) for name in a.__struct_fields__
        ) and not any(
            (getattr(a, name) is None) != (getattr(b, name) is None)
            for name in _json_fields(type(a))
        )
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(map(semantic_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(semantic_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, Raw) and isinstance(b, Raw):
        return _is_same_json(a, b)
    return False


@lru_cache(maxsize=1024)
def _json_fields(struct: type[Struct]) -> tuple[str, ...]:
    """Return the fields that hold messages as JSON: an empty message is not an absent one."""
    return tuple(name for name, hint in get_type_hints(struct).items() if hint is Any)


def _is_same_json(a: Raw, b: Raw) -> bool:
    """Return whether two texts are the same JSON: a patch may have reformatted one."""
    try:
        return marshal(a) == marshal(b)
    except (ValueError, RecursionError):
        return False


def _is_collection(value: Any) -> bool:
    return value is None or isinstance(value, tuple | dict)


# --- the stored form ----------------------------------------------------------------------

Form = Callable[[Any], Any]


def stored_form(value: Any, stored: Any = None) -> Any:
    """Return the object without empty lists and maps; itself if nothing changes.

    Members that it shares with a stored object have that form already.
    """
    struct: Any = type(value)
    changes = {}
    for name, form in _plan_of(struct):
        member = getattr(value, name)
        if member is None or (stored is not None and member is getattr(stored, name)):
            continue
        if (kept := form(member)) is not member:
            changes[name] = kept
    return replace(value, **changes) if changes else value


@lru_cache(maxsize=1024)
def _plan_of(struct: type[Struct]) -> tuple[tuple[str, Form], ...]:
    """Return the fields of a struct whose values may change, and how."""
    if struct is DeviceAttribute:
        return ()  # An empty list of values does not pass validation.
    hints = get_type_hints(struct)
    found = ((name, _form(hint)) for name, hint in hints.items())
    return tuple((name, form) for name, form in found if form is not None)


@lru_cache(maxsize=1024)
def _struct_form(struct: type[Struct]) -> Form | None:
    """Return how objects of a struct change, or None if they never do."""
    plan = _plan_of(cast("Any", struct))
    if not plan:
        return None

    def change(value: Any) -> Any:
        changes = {}
        for name, form in plan:
            member = getattr(value, name)
            if member is not None and (kept := form(member)) is not member:
                changes[name] = kept
        return replace(value, **changes) if changes else value

    return change


def _form(hint: Any) -> Form | None:
    """Return how values of a declared type change, or None if they never do."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        wanted, *others = (argument for argument in arguments if argument is not NoneType)
        if others:
            return None
        inner = _form(wanted)
        if get_origin(wanted) in (tuple, dict):
            return lambda value: (inner(value) if inner and value else value) or None
        return None if inner is None else lambda value: value and inner(value)
    if origin is tuple:
        return _tuple_form(_form(arguments[0]))
    if origin is dict:
        return _map_form(_form(arguments[1]))
    if hint is Raw:
        return lambda value: NULL if value == NULL else value
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct_form(hint)
    return None


def _tuple_form(item_form: Form | None) -> Form | None:
    if item_form is None:
        return None

    def change(value: tuple[Any, ...]) -> tuple[Any, ...]:
        items = tuple(map(item_form, value))
        return items if any(map(is_not, items, value)) else value

    return change


def _map_form(item_form: Form | None) -> Form | None:
    if item_form is None:
        return None

    def change(value: dict[str, Any]) -> dict[str, Any]:
        items = {key: item_form(item) for key, item in value.items()}
        return items if any(map(is_not, items.values(), value.values())) else value

    return change


# --- ratcheting ---------------------------------------------------------------------------


class DeclaredError(FieldError, frozen=True):
    """An error of a declared rule, with the errors of its handwritten twin, if any."""

    by_hand: tuple[FieldError, ...] = ()


def both(by_hand: ErrorList, declared: ErrorList) -> ErrorList:
    """Return the errors of a rule that is both handwritten and declared.

    Declared errors replace handwritten ones of the same type and path, and keep them.
    """
    if not by_hand and not declared:
        return []
    twins: dict[tuple[ErrorType, Path], list[FieldError]] = {
        (error.type, error.path): [] for error in declared
    }
    found: ErrorList = []
    for error in by_hand:
        twins.get((error.type, error.path), found).append(error)
    for error in declared:
        said = tuple(twins.pop((error.type, error.path), ()))
        found.append(DeclaredError(**asdict(error), by_hand=said))
    return found


def ratcheted(errors: ErrorList, new: Any, old: Any) -> ErrorList:
    """Return the errors of an update without declared ones about unchanged parts.

    Their handwritten twins take their place, unless a declared error of the same type remains at
    the same path.
    """
    found: ErrorList = []
    by_hand: ErrorList = []
    change = ObjectUpdate(new, old)
    for error in errors:
        if not error.declared or not _is_about_old(error, change):
            found.append(error)
        elif not error.alone:
            by_hand += handwritten_twins(error)
    said = {(error.type, error.path) for error in found if error.declared}
    return found + [error for error in by_hand if (error.type, error.path) not in said]


def handwritten_twins(error: FieldError) -> tuple[FieldError, ...]:
    """Return the handwritten errors that a declared error replaced."""
    if isinstance(error, DeclaredError):
        return error.by_hand
    return (replace(error, declared=False),)


def _is_about_old(error: FieldError, change: ObjectUpdate) -> bool:
    """Return whether an error is about a part that the update leaves unchanged."""
    path, value = error.path, error.bad_value
    if error.type is ErrorType.DUPLICATE and path.parent is not None:
        path = path.parent  # The list has the duplicate.
    return change.leaves(path, key=value if isinstance(value, str) else None)


# Items of other lists have no counterpart: if one changes, the whole list does.
_KEYS: dict[type[Struct], tuple[str, ...]] = {
    AllocatedDeviceStatus: ("driver", "pool", "device", "share_id"),
    CounterSet: ("name",),
    DeviceRequest: ("name",),
    DeviceSubRequest: ("name",),
}


class ObjectUpdate:
    """An update of an object; caches comparisons, because errors are often about the same parts."""

    def __init__(self, new: Any, old: Any) -> None:
        self._new = new
        self._old = old
        # By identity; the objects that hold these values outlive the change.
        self._same: dict[tuple[int, int], bool] = {}
        self._elements: dict[int, dict[Any, Any]] = {}

    def leaves(self, path: Path, *, key: str | None = None) -> bool:
        """Return whether the value at the path, or one that contains it, is unchanged.

        A value without counterpart in the old object is new. If a key is passed, it is enough that
        the map at the path had that key before.
        """
        new, old = self._new, self._old
        for segment in path.segments:
            if self._is_same(new, old):
                return True
            if old is None:
                return False
            match segment:
                case int():
                    new = new[segment]
                    old = self._counterpart(new, old)
                case MapKey(name):
                    new, old = _entry(new, name), _entry(old, name)
                case _:
                    new, old = _member(new, segment), _member(old, segment)
        return self._is_same(new, old) or (isinstance(old, dict) and key in old)

    def _is_same(self, new: Any, old: Any) -> bool:
        pair = (id(new), id(old))
        if pair not in self._same:
            self._same[pair] = semantic_equal(new, old)
        return self._same[pair]

    def _counterpart(self, item: Any, old_items: tuple[Any, ...]) -> Any:
        """Return the element of the old list that an element continues, if there is one."""
        key_of = _key_of(item)
        if key_of is None:
            return None
        if id(old_items) not in self._elements:
            # The first of several items with the same key counts, so it is put last into the map.
            elements = {key_of(old): old for old in reversed(old_items)}
            self._elements[id(old_items)] = elements
        return self._elements[id(old_items)].get(key_of(item))


def _key_of(item: Any) -> Callable[[Any], Any] | None:
    """Return the key function of the list that holds such an item, or None if it has no key."""
    if isinstance(item, str):
        return str
    names = _KEYS.get(type(item))
    return None if names is None else attrgetter(*names)


def _entry(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, Struct):
        return None
    names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    return getattr(value, names[name]) if name in names else None
