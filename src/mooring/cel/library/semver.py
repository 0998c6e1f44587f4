"""Kubernetes' version functions: `semver('v1.2', true).isLessThan(semver('1.10.0'))`.

The numbers of a version go up to 2^64; as CEL's ints those above 2^63 are negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mooring.api.errors import VersionError
from mooring.api.semver import Version, parse_normalized, parse_version
from mooring.cel.lang.declarations import Function, Library, Overload
from mooring.cel.lang.numbers import wrapped_int
from mooring.cel.lang.types import BOOL, INT, STRING, Type, struct
from mooring.cel.lang.values import EvalError
from mooring.cel.library.costs import estimates_first, traverses_first

SEMVER: Final = struct("kubernetes.Semver")


def library() -> Library:
    """Return the library `kubernetes.Semver`, version 1."""
    return Library(
        "kubernetes.Semver",
        functions=(*_readers(), *_comparisons(), *_numbers()),
        python_types={Version: SEMVER},
    )


# --- declarations ---------------------------------------------------------------------------------


def _readers() -> tuple[Function, ...]:
    return (
        Function(
            "semver",
            (
                _reader("string_to_semver", (STRING,), SEMVER, _parse),
                _reader("string_bool_to_semver", (STRING, BOOL), SEMVER, _parse),
            ),
        ),
        Function(
            "isSemver",
            (
                _reader("is_semver_string", (STRING,), BOOL, _is_version),
                _reader("is_semver_string_bool", (STRING, BOOL), BOOL, _is_version),
            ),
        ),
    )


def _comparisons() -> tuple[Function, ...]:
    return (
        _member("isGreaterThan", "semver_is_greater_than", (SEMVER,), BOOL, _is_greater),
        _member("isLessThan", "semver_is_less_than", (SEMVER,), BOOL, _is_less),
        _member("compareTo", "semver_compare_to", (SEMVER,), INT, Version.compare),
    )


def _numbers() -> tuple[Function, ...]:
    return (
        _member("major", "semver_major", (), INT, _major),
        _member("minor", "semver_minor", (), INT, _minor),
        _member("patch", "semver_patch", (), INT, _patch),
    )


def _reader(
    id_: str, params: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Overload:
    return Overload(
        id_, params, result, evaluate, runtime_cost=traverses_first(), estimate=estimates_first()
    )


def _member(
    name: str, id_: str, args: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Function:
    overload = Overload(id_, (SEMVER, *args), result, evaluate, is_member=True)
    return Function(name, (overload,))


# --- what they do ---------------------------------------------------------------------------------


def _parse(text: str, normalize: bool = False) -> Version:
    try:
        return parse_normalized(text) if normalize else parse_version(text)
    except VersionError as error:
        raise EvalError(str(error)) from None


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _parse(text, normalize)
    except EvalError:
        return False
    return True


def _is_greater(version: Version, other: Version) -> bool:
    return version.compare(other) > 0


def _is_less(version: Version, other: Version) -> bool:
    return version.compare(other) < 0


def _major(version: Version) -> int:
    return wrapped_int(version.major)


def _minor(version: Version) -> int:
    return wrapped_int(version.minor)


def _patch(version: Version) -> int:
    return wrapped_int(version.patch)
