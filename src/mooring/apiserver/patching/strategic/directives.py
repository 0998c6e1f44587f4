"""What a strategic merge patch may say besides values, and what is wrong with it.

$patch: replace | delete | merge       of the map or item it stands in, or of the list
$retainKeys: [a, b]                    other keys of this map go
$setElementOrder/FIELD: [...]          the order of a merged list
$deleteFromPrimitiveList/FIELD: [...]  items to take out of a list of scalars
"""

from __future__ import annotations

from mooring.apiserver.patching import gotext
from mooring.apiserver.patching.errors import Refusal, bad_request, unprocessable
from mooring.apiserver.patching.values import Tree

MARKER = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

REPLACE, DELETE, MERGE = "replace", "delete", "merge"


def field_of(key: str, prefix: str) -> str:
    """Return the field that a directive is about, or raise Refusal."""
    word, slash, name = key.partition("/")
    if not slash or word != prefix:
        raise bad_list_format(prefix)
    return name


def without_directives(value: Tree) -> Tree:
    """Return a new value without items and fields that are directives."""
    if isinstance(value, dict):
        return {key: without_directives(v) for key, v in value.items() if not is_marked(v)}
    if isinstance(value, list):
        return [without_directives(item) for item in value if not is_marked(item)]
    return value


def without_nulls(value: Tree) -> Tree:
    """Return a new value without fields that are null, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def is_marked(value: Tree) -> bool:
    """Whether a map says what to do with it."""
    return isinstance(value, dict) and MARKER in value


def bad_list_format(prefix: str) -> Refusal:
    """Return the refusal of a directive that is not as it must be."""
    word = "primitive" if prefix == DELETE_FROM_LIST else "setElementOrder"
    return bad_request(f"invalid patch format of {word} list")


def bad_retain_keys() -> Refusal:
    """Return the refusal of $retainKeys that is not as it must be."""
    return bad_request("invalid patch format of retainKeys")


def no_merge_key(item: Tree, key: str) -> Refusal:
    """Return the refusal of an item that does not say which it is."""
    return bad_request(f"map: {gotext.plain(item)} does not contain declared merge key: {key}")


def bad_type(wanted: str, value: Tree) -> Refusal:
    """Return the refusal of a value of another type."""
    found = "%!s(<nil>)" if value is None else gotext.type_name(value)
    return bad_request(f"expected a {wanted}, but received a {found}")


def unknown_directive(directive: Tree, patch: Tree) -> Refusal:
    """Return the refusal of a $patch that means nothing."""
    return bad_request(
        f"unknown patch type: {gotext.plain(directive)} in map: {gotext.plain(patch)}"
    )


def list_of_lists() -> Refusal:
    """Return the refusal of what cannot be merged."""
    return unprocessable("lists of lists are not supported")
