"""Rules that several kinds share.

Each returns the errors it finds. Functions named `declared_…` state rules of declarative
validation; `equality` says how they differ from handwritten ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from moorage.api import names
from moorage.api.field_path import Path
from moorage.api.names import BYTES, byte_length
from moorage.kit.remembered import remembered
from moorage.validation.equality import both, semantic_equal
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

T = TypeVar("T")

DRIVER_NAME_MAX = 63
POOL_NAME_MAX = 253
IDENTIFIER_MAX = 32
LABEL_NAME_MAX = names.SUBDOMAIN_MAX + 1 + names.LABEL_MAX


def each_invalid(
    path: Path, value: str, messages: Iterable[str], *, declared: bool = False
) -> ErrorList:
    """Return one error for each message."""
    return [invalid(path, value, message, declared=declared) for message in messages]


def label(value: str, path: Path) -> ErrorList:
    """Validate a DNS label."""
    if is_good_label(value):
        return []
    return each_invalid(path, value, names.dns1123_label(value))


def is_good_label(value: str) -> bool:
    """Return whether `label` finds no error; cached, because names of devices repeat."""
    return len(value) <= names.LABEL_MAX and _is_label(value)


@lru_cache(maxsize=4096)
def _is_label(value: str) -> bool:
    return not names.dns1123_label(value)


def subdomain(value: str, path: Path) -> ErrorList:
    """Validate a DNS subdomain."""
    if is_good_subdomain(value):
        return []
    return each_invalid(path, value, names.dns1123_subdomain(value))


def is_good_subdomain(value: str) -> bool:
    """Return whether `subdomain` finds no error; cached, because drivers and nodes repeat."""
    return len(value) <= names.SUBDOMAIN_MAX and _is_subdomain(value)


@lru_cache(maxsize=4096)
def _is_subdomain(value: str) -> bool:
    return not names.dns1123_subdomain(value)


def label_name(value: str, path: Path) -> ErrorList:
    """Validate a label key."""
    if is_good_label_name(value):
        return []
    return each_invalid(path, value, names.label_name(value))


def is_good_label_name(value: str) -> bool:
    """Return whether `label_name` finds no error; cached, because keys repeat."""
    return len(value) <= LABEL_NAME_MAX and _is_label_name(value)


@lru_cache(maxsize=4096)
def _is_label_name(value: str) -> bool:
    return not names.label_name(value)


def label_value(value: str, path: Path) -> ErrorList:
    """Validate a label value."""
    return each_invalid(path, value, names.label_value(value))


def validate_labels(labels: dict[str, str], path: Path) -> ErrorList:
    """Validate the keys and values of labels."""
    found: ErrorList = []
    for key, value in labels.items():
        found += label_name(key, path)
        found += label_value(value, path)
    return found


def declared_short_name(value: str, path: Path) -> ErrorList:
    """Validate a required DNS label."""
    if not value:
        return [required(path, declared=True)]
    return declared_label(value, path)


def declared_label(value: str, path: Path) -> ErrorList:
    """Validate a DNS label."""
    messages = names.dns1123_label(value, unit=BYTES)
    return both(label(value, path), each_invalid(path, value, messages, declared=True))


def declared_subdomain(value: str, path: Path) -> ErrorList:
    """Validate a required DNS subdomain."""
    if not value:
        return [required(path, declared=True)]
    messages = names.dns1123_subdomain(value, unit=BYTES)
    return both(subdomain(value, path), each_invalid(path, value, messages, declared=True))


def declared_enum(value: str, supported: Sequence[str], path: Path) -> ErrorList:
    """Validate that the value is one of the supported ones."""
    return [] if value in supported else [not_supported(path, value, supported, declared=True)]


def declared_bytes(value: str, length_max: int, path: Path) -> ErrorList:
    """Validate the length of a text."""
    return [too_long(path, length_max, declared=True)] if byte_length(value) > length_max else []


def declared_union(members: Mapping[str, object], path: Path) -> ErrorList:
    """Validate that exactly one member is set; an empty list is not."""
    given = [name for name, value in members.items() if value is not None and value != ()]
    shown = ", ".join(f"`{name}`" for name in members)
    if not given:
        return [invalid(path, "", f"must specify one of: {shown}", declared=True)]
    if len(given) > 1:
        detail = f"must specify exactly one of: {shown}"
        return [invalid(path, f"{{{', '.join(given)}}}", detail, declared=True)]
    return []


# --- names of devices' homes --------------------------------------------------------------


def driver_name(value: str, path: Path) -> ErrorList:
    """Validate a driver name."""
    if not value:
        return [required(path)]
    found: ErrorList = []
    if byte_length(value) > DRIVER_NAME_MAX:
        found.append(too_long(path, DRIVER_NAME_MAX))
    if is_good_subdomain(lowered := names.lowered(value)):
        return found
    return found + each_invalid(path, value, names.dns1123_subdomain(lowered))


def declared_driver_name(
    value: str, path: Path, *, length_max: int | None = DRIVER_NAME_MAX
) -> ErrorList:
    """Validate a required driver name."""
    if not value:
        return [required(path, declared=True)]
    found = each_invalid(path, value, names.dns1123_subdomain_caseless(value), declared=True)
    if length_max is not None and len(value) > length_max:
        found.append(too_long(path, length_max, unit="character", declared=True))
    return both(driver_name(value, path), found)


def pool_name(value: str, path: Path) -> ErrorList:
    """Validate a pool name: subdomains joined by slashes."""
    if not value:
        return [required(path)]
    found: ErrorList = []
    if byte_length(value) > POOL_NAME_MAX:
        found.append(too_long(path, POOL_NAME_MAX))
    for part in value.split("/"):
        found += subdomain(part, path)
    return found


def declared_pool_name(value: str, path: Path) -> ErrorList:
    """Validate a required pool name."""
    if not value:
        return [required(path, declared=True)]
    return declared_pool_format(value, path)


def declared_pool_format(value: str, path: Path) -> ErrorList:
    """Validate the form of a pool name."""
    found = declared_bytes(value, POOL_NAME_MAX, path)
    for index, part in enumerate(value.split("/")):
        if not part:
            found.append(invalid(path, value, f"segment {index}: must not be empty", declared=True))
            continue
        messages = names.dns1123_subdomain(part, unit=BYTES)
        prefixed = (f"segment {index}: {message}" for message in messages)
        found += each_invalid(path, part, prefixed, declared=True)
    return both(pool_name(value, path), found)


def node_name(value: str, path: Path) -> ErrorList:
    """Validate the name of a node."""
    return subdomain(value, path)


# --- qualified names ----------------------------------------------------------------------


def qualified_name(value: str, path: Path) -> ErrorList:
    """Validate the key of an attribute or capacity: an identifier, with or without a domain."""
    return [] if is_good_qualified_name(value) else _qualified_name(value, path)


@remembered(4096, LABEL_NAME_MAX)
def is_good_qualified_name(value: str) -> bool:
    """Return whether `qualified_name` finds no error; cached, because keys repeat."""
    return not _qualified_name(value, Path(""))


def _qualified_name(value: str, path: Path) -> ErrorList:
    parts = value.split("/")
    if len(parts) > 2:
        return []  # Kubernetes accepts several slashes, so we do.
    found: ErrorList = []
    if len(parts) == 2:
        if parts[0]:
            found += driver_name(parts[0], path)
        else:
            found.append(invalid(path, "", "the domain must not be empty"))
        if not parts[1]:
            return [*found, invalid(path, "", "the name must not be empty")]
    return found + _identifier(parts[-1], path)


_NOT_FULLY_QUALIFIED = "a fully qualified name must be a domain and a name separated by a slash"


def fully_qualified_name(value: str, path: Path) -> ErrorList:
    """Validate the name of an attribute in a constraint: a domain and an identifier."""
    found = qualified_name(value, path)
    return found if "/" in value else [*found, invalid(path, value, _NOT_FULLY_QUALIFIED)]


def declared_fully_qualified_name(value: str, path: Path) -> ErrorList:
    """Validate the name of an attribute in a constraint: a domain and an identifier."""
    parts = value.split("/")
    found: ErrorList = []
    if len(parts) == 2:
        found += _declared_prefix(parts[0], path)
        if parts[1]:
            found += _identifier(parts[1], path, declared=True)
        else:
            found.append(invalid(path, "", "name must not be empty", declared=True))
    elif len(parts) == 1:
        found += _identifier(value, path, declared=True)
        found.append(invalid(path, value, _NOT_FULLY_QUALIFIED, declared=True))
    return both(fully_qualified_name(value, path), found)


def _declared_prefix(prefix: str, path: Path) -> ErrorList:
    if not prefix:
        return [invalid(path, "", "prefix must not be empty", declared=True)]
    found = declared_bytes(prefix, DRIVER_NAME_MAX, path)
    messages = (f"prefix: {message}" for message in names.dns1123_subdomain(prefix, unit=BYTES))
    return found + each_invalid(path, prefix, messages, declared=True)


def _identifier(value: str, path: Path, *, declared: bool = False) -> ErrorList:
    found: ErrorList = []
    if byte_length(value) > IDENTIFIER_MAX:
        found.append(too_long(path, IDENTIFIER_MAX, declared=declared))
    return found + each_invalid(path, value, names.c_identifier(value), declared=declared)


# --- lists --------------------------------------------------------------------------------


def declared_list(
    items: Sequence[T],
    items_max: int,
    check: Callable[[T, Path], ErrorList],
    path: Path,
) -> ErrorList:
    """Validate the length of a list, and if it is valid every item."""
    if len(items) > items_max:
        return [too_many(path, len(items), items_max, declared=True)]
    return each(items, check, path)


def declared_set(
    items: Sequence[T],
    items_max: int,
    check: Callable[[T, Path], ErrorList],
    key: Callable[[T], Any],
    path: Path,
) -> ErrorList:
    """Validate the length of a list, and if it is valid every item and that all differ."""
    if len(items) > items_max:
        return [too_many(path, len(items), items_max, declared=True)]
    return each(items, check, path) + duplicates(items, key, path, declared=True)


def each(items: Sequence[T], check: Callable[[T, Path], ErrorList], path: Path) -> ErrorList:
    """Validate every item."""
    found: ErrorList = []
    for position, item in enumerate(items):
        found += check(item, path.index(position))
    return found


def duplicates(
    items: Sequence[T], key: Callable[[T], Any], path: Path, *, declared: bool = False
) -> ErrorList:
    """Return an error for each item whose key an earlier one has.

    A declared rule prints the whole item, a handwritten one its key.
    """
    seen: set[Any] = set()
    found: ErrorList = []
    for position, item in enumerate(items):
        item_key = key(item)
        if item_key in seen:
            shown = item if declared else item_key
            found.append(duplicate(path.index(position), shown, declared=declared))
        seen.add(item_key)
    return found


def identity(item: T) -> T:
    """Return the item: the key function of lists of scalars."""
    return item


# --- plain fields -------------------------------------------------------------------------

NEGATIVE = "must be greater than or equal to 0"


def not_negative(value: int | None, path: Path) -> ErrorList:
    """Validate a number, if there is one."""
    return [] if value is None or value >= 0 else [invalid(path, value, NEGATIVE)]


def unchanged(new: Any, old: Any, path: Path) -> ErrorList:
    """Validate that an immutable field is unchanged."""
    return [] if semantic_equal(new, old) else [invalid(path, new, "field is immutable")]


def value_or(value: Any, default: Any) -> Any:
    """Return the value, or the default if it is None."""
    return default if value is None else value
