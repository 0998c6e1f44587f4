"""JSON Patch (RFC 6902), as Kubernetes' library applies it.

It differs from the RFC where that library does: an index may count from the end, `replace` adds
a key that a map does not have, `test` takes a missing key for null, and text before the first slash
of a path is ignored.

A patch changes a draft in place. The draft begins as the current document; it copies a list or map
when it is first changed, and from then on owns the copy. So the current document stays as it is,
and a patch of many operations costs as much as one copy of what it touches, and its steps.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from moorage.api.go_type_names import json_type, type_name
from moorage.apiserver.patching.errors import bad_request, too_large, unprocessable
from moorage.apiserver.patching.json_values import ABSENT, Tree

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024  # what `copy` may add, all together
# What all operations together may cost: 10,000 insertions at the front of a list of 40,000 items.
# Kubernetes has no such bound; no object that is in use comes near it.
STEPS_MAX = 2**23
MOVED_AT_ONCE = 64  # items of a list that one step moves

_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)

_MISSING = "missing value"
_INVALID_INDEX = "invalid index referenced"


class _NoApply(Exception):  # noqa: N818  # turned into PatchRefused where it is caught
    """An operation that does not apply."""


class _Missing(_NoApply):
    """The list or map that an operation would change is not there."""


def json_patch(current: Tree, operations: Tree) -> Tree:
    """Return the document after all operations, or raise PatchRefused."""
    if operations is None:
        return current
    _check(operations)
    if len(operations) > OPERATIONS_MAX:
        raise too_large(
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX},"
            f" got {len(operations)}"
        )
    draft = Draft(current)
    for operation in operations:
        try:
            draft.do(operation)
        except _NoApply as error:
            raise unprocessable(str(error)) from None
    return draft.tree


def _check(operations: Tree) -> None:
    """Raise PatchRefused unless the patch is a list of maps with strings in op, path and from."""
    if not isinstance(operations, list):
        raise bad_request(unmarshal_error(operations, "value of type []handlers.jsonPatchOp"))
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request(unmarshal_error(operation, "value of type handlers.jsonPatchOp"))
        for name in ("op", "path", "from"):
            text = operation.get(name)
            if text is not None and not isinstance(text, str):
                place = f"struct field jsonPatchOp.{name} of type string"
                raise bad_request(unmarshal_error(text, place))


def unmarshal_error(value: Tree, wanted: str) -> str:
    """Return Go's error for a JSON value of the wrong type."""
    return f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go {wanted}"


class Draft:
    """A document that is being patched; `steps` counts the items that were read, moved or copied.

    # owned: the lists and maps that the draft alone has, by identity
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.steps = 0
        self._owned: dict[int, Tree] = {}
        self._copied_bytes = 0

    def do(self, operation: dict[str, Any]) -> None:
        """Apply one operation."""
        match operation.get("op"):
            case "add":
                path = _text(operation, "path", f"add operation failed to decode path: {_MISSING}")
                where = f'add operation does not apply: doc is missing path: "{path}": {_MISSING}'
                self._add(path, operation.get("value"), where, f"error in add for path: '{path}'")
            case "remove":
                fault = f"remove operation failed to decode path: {_MISSING}"
                path = _text(operation, "path", fault)
                where = (
                    f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}'
                )
                self._remove(path, where, f"error in remove for path: '{path}'")
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "copy":
                self._copy(operation)
            case "test":
                self._test(operation)
            case kind:
                raise _NoApply(f"Unexpected kind: {'unknown' if kind is None else kind}")

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", f"replace operation failed to decode path: {_no('path')}")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise _NoApply("replace operation value must be object or array: %!w(<nil>)")
            self.tree = value
            return
        where = f"replace operation does not apply: doc is missing path: {path}: {_MISSING}"
        try:
            _get(*self._find(path, where))
        except _Missing:
            raise
        except _NoApply:
            raise _NoApply(
                f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            ) from None
        container, key = self._own(path, where)
        container[key if isinstance(container, dict) else _index(key)] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source = _text(operation, "from", f"move operation failed to decode from: {_no('from')}")
        where = f"move operation does not apply: doc is missing from path: {source}: {_MISSING}"
        container, key = self._find(source, where)
        fault = f"error in move for path: '{key}'"
        value = _named_error(fault, _get, container, key)
        self._remove(source, where, fault)
        path = _text(operation, "path", f"move operation failed to decode path: {_no('path')}")
        where = (
            f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}"
        )
        self._add(path, value, where, f"error in move for path: '{path}'")

    def _copy(self, operation: dict[str, Any]) -> None:
        self._count_copied(operation)
        source = _text(operation, "from", f"copy operation failed to decode from: {_no('from')}")
        where = f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}"
        value = _named_error(
            f"error in copy for from: '{source}'", _get, *self._find(source, where)
        )
        path = _text(operation, "path", f"copy operation failed to decode path: {_MISSING}")
        where = (
            f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}"
        )
        # A copy of its own: changing one must not change the other.
        self._add(path, copied(value), where, "error while adding value during copy")

    def _count_copied(self, operation: dict[str, Any]) -> None:
        """Raise if copies become too large, all together; what is not there costs nothing."""
        try:
            value = _get(*self._find(operation.get("from") or "", ""))
        except _NoApply:
            return  # The operation reports the error.
        size = len(msgspec.json.encode(value))
        self._count(size)
        self._copied_bytes += size
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise _NoApply(
                "Unable to complete the copy, the accumulated size increase of copy is"
                f" {self._copied_bytes}, exceeding the limit {COPIED_BYTES_MAX}"
            )

    def _test(self, operation: dict[str, Any]) -> None:
        path = _text(operation, "path", f"test operation failed to decode path: {_no('path')}")
        value = self.tree
        if path != "":
            where = f"test operation does not apply: is missing path: {path}: {_MISSING}"
            value = _named_error(
                f"error in test for path: '{path}'", _get, *self._find(path, where)
            )
        if not _is_identical(value, operation.get("value")):
            raise _NoApply(f"testing value {path} failed: test failed")

    # --- changes

    def _add(self, path: str, value: Tree, where: str, fault: str) -> None:
        container, key = self._own(path, where)
        if isinstance(container, dict):
            container[key] = value
            return
        place = len(container) if key == "-" else _named_error(fault, _new_index, container, key)
        self._count((len(container) - place) // MOVED_AT_ONCE)
        container.insert(place, value)

    def _remove(self, path: str, where: str, fault: str) -> None:
        container, key = self._own(path, where)
        if isinstance(container, list):
            place = _named_error(fault, _old_index, container, key)
            self._count((len(container) - place) // MOVED_AT_ONCE)
            del container[place]
        elif key in container:
            del container[key]
        else:
            raise _NoApply(f"{fault}: Unable to remove nonexistent key: {key}: {_MISSING}")

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > STEPS_MAX:
            raise too_large(f"The JSON patch takes more than the allowed {STEPS_MAX} steps")

    def _find(self, path: str, where: str) -> tuple[Tree, str]:
        """Return the list or map that holds the end of a path, and the last token."""
        document = self.tree
        *above, last = _tokens(path, where)
        self._count(len(above) + 1)
        for token in above:
            try:
                document = _get(document, token)
            except _NoApply:
                raise _Missing(where) from None
            if not isinstance(document, dict | list):
                raise _Missing(where)
        return document, last

    def _own(self, path: str, where: str) -> tuple[Tree, str]:
        """Return the same as `_find`, with a list or map that may be changed."""
        self._find(path, where)
        self.tree = holder = self._owned_copy(self.tree)
        *above, last = _tokens(path, where)
        for token in above:
            key: Any = token if isinstance(holder, dict) else _index(token)
            holder[key] = holder = self._owned_copy(holder[key])
        return holder, last

    def _owned_copy(self, container: Tree) -> Tree:
        if id(container) in self._owned:
            return container
        self._count(len(container))
        copy = container.copy()
        self._owned[id(copy)] = copy
        return copy


def copied(tree: Tree) -> Tree:
    """Return a tree that shares no list or map with the original."""
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [copied(value) for value in tree]
    return tree


# --- paths in a document --------------------------------------------------------------------------


def _text(operation: dict[str, Any], name: str, fault: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise _NoApply(fault)
    return text


def _no(name: str) -> str:
    comma = "," if name == "from" else ""
    return f"operation{comma} missing {name} field: {_MISSING}"


def _named_error(fault: str, do: Any, *arguments: Any) -> Any:
    """Return the result of a step; prefix its error."""
    try:
        return do(*arguments)
    except _NoApply as error:
        raise _NoApply(f"{fault}: {error}") from None


def _tokens(path: str, where: str) -> list[str]:
    tokens = path.split("/")
    if len(tokens) < 2:
        raise _Missing(where)
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens[1:]]


def _get(container: Tree, key: str) -> Tree:
    if isinstance(container, dict):
        return container.get(key)
    index = _index(key)
    if index < -len(container) or index >= len(container):
        raise _NoApply(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")
    return container[index]


def _index(key: str) -> int:
    if not _INDEX.fullmatch(key):
        raise _NoApply(f'strconv.Atoi: parsing "{key}": invalid syntax')
    return int(key)


def _new_index(container: list[Tree], key: str) -> int:
    """Return where a new item goes."""
    if not _INDEX.fullmatch(key):
        raise _NoApply(
            f"value was not a proper array index: '{key}':"
            f' strconv.Atoi: parsing "{key}": invalid syntax'
        )
    index, size = int(key), len(container) + 1
    if not -size <= index < size:
        raise _NoApply(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")
    return index + size if index < 0 else index


def _old_index(container: list[Tree], key: str) -> int:
    """Return where an item is."""
    index = _index(key)
    if not -len(container) <= index < len(container):
        raise _NoApply(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")
    return index + len(container) if index < 0 else index


def _is_identical(left: Tree, right: Tree) -> bool:
    """Return whether two values have the same text: unlike elsewhere, 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_identical(value, right.get(key, ABSENT)) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_identical, left, right))
    return type_name(left) == type_name(right) and bool(left == right)
