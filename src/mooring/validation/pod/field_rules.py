"""Small rules that many fields of pods share: paths, modes, users, names of other objects.

A tree is a JSON part of a pod as `typed_json` leaves it: each value has the type of its field, and
a field that is empty may be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.api import names
from mooring.api.fieldpath import Path
from mooring.validation.checks import each_invalid
from mooring.validation.errors import Errors, invalid, not_supported, required

Tree = Mapping[str, Any]

FILE_MODE_MAX = 0o777
ID_MAX = 2**31 - 1

_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def given(tree: Tree, fields: Iterable[str], path: Path) -> Errors:
    """Check that fields are not empty."""
    return [required(path.child(name)) for name in fields if not tree.get(name)]


def choice(value: Any, supported: Sequence[str], path: Path) -> Errors:
    """Check a word that, if it is given, is one of a few."""
    if value is None or value in supported:
        return []
    return [not_supported(path, value, sorted(supported))]


def in_range(value: int, low: int, high: int, path: Path) -> Errors:
    """Check a number."""
    if low <= value <= high:
        return []
    return [invalid(path, value, f"must be between {low} and {high}, inclusive")]


# --- files ----------------------------------------------------------------------------------------


def no_backsteps(target: str, path: Path) -> Errors:
    """Check that a path never goes up."""
    if ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return []


def descending_path(target: str, path: Path) -> Errors:
    """Check a path that must stay below the folder that it starts from."""
    found: Errors = []
    if target.startswith("/"):
        found.append(invalid(path, target, "must be a relative path"))
    return found + no_backsteps(target, path)


def local_path(target: str, path: Path) -> Errors:
    """Check the path of a file in a volume; names that start with two dots are the kubelet's."""
    found = descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        found.append(invalid(path, target, "must not start with '..'"))
    return found


def file_mode(mode: int | None, path: Path) -> Errors:
    """Check the permissions of files."""
    if mode is None or 0 <= mode <= FILE_MODE_MAX:
        return []
    return [invalid(path, mode, _FILE_MODE)]


def user_id(number: int | None, path: Path) -> Errors:
    """Check the number of a user or group."""
    return [] if number is None else in_range(number, 0, ID_MAX, path)


# --- names ----------------------------------------------------------------------------------------


def variable_name(name: str, path: Path) -> Errors:
    """Check the name of an environment variable."""
    return each_invalid(path, name, names.variable_name(name))


def config_key(key: str, path: Path) -> Errors:
    """Check a key of a ConfigMap or Secret."""
    return each_invalid(path, key, names.config_key(key))


def object_name(name: str, path: Path) -> Errors:
    """Check the name of an object of which it is not known whether it exists."""
    return each_invalid(path, name, names.dns1123_subdomain(name))


def object_name_prefix(name: str, path: Path) -> Errors:
    """Check the name of an object; that it ends with a hyphen is let pass."""
    shown = f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
    return each_invalid(path, name, names.dns1123_subdomain(shown))
