"""Semantic versions: parsing, order, CEL's two readers and the API's rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.runner import Case, Outcome, Suite, compared
from moorage.api.errors import VersionError
from moorage.api.semver import Version, matches_api_rule, parse_normalized, parse_version

API_LENGTH_MAX_BYTES = 64


def open_suite() -> Suite:
    """Return the suite."""
    return SemverSuite()


class SemverSuite(Suite):
    """A case has two texts, `a` and `b`; every recorded answer is compared."""

    def fits(self, case: Case) -> bool:
        """Return whether the case has answers about versions."""
        expected = case.fields.get("expect")
        return isinstance(expected, dict) and "api_regex" in expected.get("a", {})

    def compare(self, case: Case) -> Outcome:
        """Compare our whole record of the case with the recorded one."""
        return compared(case.fields["expect"], answers(case.fields["a"], case.fields["b"]))


def answers(a: str, b: str) -> dict[str, Any]:
    """Return our record of a case, in the shape of the recorded one."""
    record: dict[str, Any] = {"a": _described(a), "b": _described(b)}
    left, right = _read(parse_version, a), _read(parse_version, b)
    if isinstance(left, Version) and isinstance(right, Version):
        record["cmp"] = left.compare(right)
        record["eq"] = left == right
    return record


def _read(reader: Callable[[str], Version], text: str) -> Version | VersionError:
    try:
        return reader(text)
    except VersionError as error:
        return error


def _described(text: str) -> dict[str, Any]:
    version = _read(parse_version, text)
    is_valid = matches_api_rule(text)
    return {
        **_parts(version),
        "api_regex": is_valid,
        "api_valid": is_valid and len(text.encode()) <= API_LENGTH_MAX_BYTES,
        **_cel_answer("cel", version),
        **_cel_answer("cel_normalize", _read(parse_normalized, text)),
    }


def _parts(version: Version | VersionError) -> dict[str, Any]:
    if isinstance(version, VersionError):
        return {"ok": False, "error": str(version)}
    return {
        "ok": True,
        "string": str(version),
        "major": version.major,
        "minor": version.minor,
        "patch": version.patch,
        "pre": [str(part) for part in version.pre],
        "build": list(version.build),
    }


def _cel_answer(prefix: str, version: Version | VersionError) -> dict[str, Any]:
    if isinstance(version, VersionError):
        return {f"{prefix}_ok": False, f"{prefix}_error": str(version)}
    return {f"{prefix}_ok": True, f"{prefix}_string": str(version)}
