"""JSON Patch (RFC 6902), as Kubernetes' library applies it.

It differs from the RFC where that library does: an index may count from the end, `replace` adds
a key that a map does not have, `test` takes a missing key for null, and text before the first slash
of a path is ignored.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mooring.api.go_types import json_type
from mooring.apiserver.patching import json_values
from mooring.apiserver.patching.errors import bad_request, too_large, unprocessable
from mooring.apiserver.patching.json_values import ABSENT, Tree

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024  # what `copy` may add, all together

_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)

_MISSING = "missing value"
_INVALID_INDEX = "invalid index referenced"


class _NoApply(Exception):  # noqa: N818  # turned into PatchRefused where it is caught
    """An operation that does not apply."""


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
    copied_bytes = 0
    for operation in operations:
        try:
            if operation.get("op") == "copy":
                copied_bytes += _size_of_copied(current, operation)
                if copied_bytes > COPIED_BYTES_MAX:
                    raise _NoApply(
                        "Unable to complete the copy, the accumulated size increase of copy is"
                        f" {copied_bytes}, exceeding the limit {COPIED_BYTES_MAX}"
                    )
            current = _done(current, operation)
        except _NoApply as error:
            raise unprocessable(str(error)) from None
    return current


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


def _done(document: Tree, operation: dict[str, Any]) -> Tree:
    """Return the document after one operation."""
    kind = operation.get("op")
    match kind:
        case "add":
            path = _text(operation, "path", f"add operation failed to decode path: {_MISSING}")
            where = f'add operation does not apply: doc is missing path: "{path}": {_MISSING}'
            value = operation.get("value")
            return _changed(
                document, path, _adder(value), where, f"error in add for path: '{path}'"
            )
        case "remove":
            path = _text(operation, "path", f"remove operation failed to decode path: {_MISSING}")
            where = f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}'
            return _changed(document, path, _without, where, f"error in remove for path: '{path}'")
        case "replace":
            return _replaced(document, operation)
        case "move":
            return _moved(document, operation)
        case "copy":
            return _copied(document, operation)
        case "test":
            return _tested(document, operation)
        case _:
            raise _NoApply(f"Unexpected kind: {'unknown' if kind is None else kind}")


def _replaced(document: Tree, operation: dict[str, Any]) -> Tree:
    path = _text(operation, "path", f"replace operation failed to decode path: {_no('path')}")
    value = operation.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            raise _NoApply("replace operation value must be object or array: %!w(<nil>)")
        return value
    where = f"replace operation does not apply: doc is missing path: {path}: {_MISSING}"
    container, key = _find(document, path, where)
    try:
        _get(container, key)
    except _NoApply:
        raise _NoApply(
            f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
        ) from None
    return _changed(document, path, _setter(value), where, f"error in remove for path: '{path}'")


def _moved(document: Tree, operation: dict[str, Any]) -> Tree:
    source = _text(operation, "from", f"move operation failed to decode from: {_no('from')}")
    where = f"move operation does not apply: doc is missing from path: {source}: {_MISSING}"
    container, key = _find(document, source, where)
    fault = f"error in move for path: '{key}'"
    value = _named_error(fault, _get, container, key)
    document = _changed(document, source, _without, where, fault)
    path = _text(operation, "path", f"move operation failed to decode path: {_no('path')}")
    where = f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}"
    return _changed(document, path, _adder(value), where, f"error in move for path: '{path}'")


def _copied(document: Tree, operation: dict[str, Any]) -> Tree:
    source = _text(operation, "from", f"copy operation failed to decode from: {_no('from')}")
    where = f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}"
    value = _named_error(
        f"error in copy for from: '{source}'", _get, *_find(document, source, where)
    )
    path = _text(operation, "path", f"copy operation failed to decode path: {_MISSING}")
    where = f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}"
    return _changed(document, path, _adder(value), where, "error while adding value during copy")


def _tested(document: Tree, operation: dict[str, Any]) -> Tree:
    path = _text(operation, "path", f"test operation failed to decode path: {_no('path')}")
    value = document
    if path != "":
        where = f"test operation does not apply: is missing path: {path}: {_MISSING}"
        value = _named_error(
            f"error in test for path: '{path}'", _get, *_find(document, path, where)
        )
    if not _is_identical(value, operation.get("value")):
        raise _NoApply(f"testing value {path} failed: test failed")
    return document


def _size_of_copied(document: Tree, operation: dict[str, Any]) -> int:
    try:
        return len(msgspec.json.encode(_get(*_find(document, operation.get("from") or "", ""))))
    except _NoApply:
        return 0  # The operation reports the error.


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
        raise _NoApply(where)
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens[1:]]


def _find(document: Tree, path: str, where: str) -> tuple[Tree, str]:
    """Return the list or map that holds the end of a path, and the last token."""
    *above, last = _tokens(path, where)
    for token in above:
        try:
            document = _get(document, token)
        except _NoApply:
            raise _NoApply(where) from None
        if not isinstance(document, dict | list):
            raise _NoApply(where)
    return document, last


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


def _changed(document: Tree, path: str, change: Any, where: str, fault: str) -> Tree:
    """Return the document with one list or map changed; it shares all others."""
    container, last = _find(document, path, where)
    result = _named_error(fault, change, container, last)
    chain = [document]
    *above, _ = _tokens(path, where)
    for token in above[:-1]:
        chain.append(_get(chain[-1], token))
    for holder, token in zip(reversed(chain), reversed(above), strict=False):
        result = _setter(result)(holder, token)
    return result


def _setter(value: Tree) -> Any:
    def change(container: Tree, key: str) -> Tree:
        if isinstance(container, dict):
            return {**container, key: value}
        index = _index(key)
        return [*container[:index], value, *container[index:][1:]]

    return change


def _adder(value: Tree) -> Any:
    def change(container: Tree, key: str) -> Tree:
        if isinstance(container, dict):
            return {**container, key: value}
        if key == "-":
            return [*container, value]
        if not _INDEX.fullmatch(key):
            raise _NoApply(
                f"value was not a proper array index: '{key}':"
                f' strconv.Atoi: parsing "{key}": invalid syntax'
            )
        index, size = int(key), len(container) + 1
        if not -size <= index < size:
            raise _NoApply(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")
        place = index + size if index < 0 else index
        return [*container[:place], value, *container[place:]]

    return change


def _without(container: Tree, key: str) -> Tree:
    if isinstance(container, dict):
        if key not in container:
            raise _NoApply(f"Unable to remove nonexistent key: {key}: {_MISSING}")
        return {name: value for name, value in container.items() if name != key}
    index = _index(key)
    if not -len(container) <= index < len(container):
        raise _NoApply(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")
    place = index + len(container) if index < 0 else index
    return [*container[:place], *container[place + 1 :]]


def _is_identical(left: Tree, right: Tree) -> bool:
    """Return whether two values have the same text: unlike elsewhere, 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_identical(value, right.get(key, ABSENT)) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_identical, left, right))
    return json_values.type_name(left) == json_values.type_name(right) and bool(left == right)
