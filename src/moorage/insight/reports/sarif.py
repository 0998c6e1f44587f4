"""SARIF 2.1.0, the format of code scanning.

Files are relative to `%SRCROOT%`, the root of the checkout. A fingerprint names rule, file, object
and field but no line, so that a finding stays the same when lines are added above it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any, Final

from moorage.insight.reports.findings import (
    CheckedObject,
    FindingReport,
    ReportFinding,
    ReportPlace,
    ReportRule,
)
from moorage.kit.printable import printable

Tree = dict[str, Any]

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "moorageFinding/v1"
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
)


def sarif_document(report: FindingReport) -> Tree:
    """Return a report as a SARIF log with one run."""
    numbers = {rule.id: number for number, rule in enumerate(report.rules)}
    seen: Counter[str] = Counter()
    driver = {
        "name": "Moorage",
        "fullName": f"moor {report.command}",
        "version": report.version,
        "rules": list(map(_rule, report.rules)),
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"moor-{report.command}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the workspace."}}},
        "invocations": [{"executionSuccessful": report.is_complete}],
        "results": [_result(each, finding, numbers, seen) for each, finding in report.findings()],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: ReportRule) -> Tree:
    summary = f"{rule.summary[:1].upper()}{rule.summary[1:]}."
    return {
        "id": rule.id,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": rule.help},
        "helpUri": rule.link,
        "defaultConfiguration": {"level": rule.level.value},
    }


def _result(
    each: CheckedObject, finding: ReportFinding, numbers: dict[str, int], seen: Counter[str]
) -> Tree:
    location: Tree = {"logicalLocations": [_logical(each, finding)]}
    if finding.place.file:
        location["physicalLocation"] = _physical(finding.place)
    return {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.level.value,
        "message": {"text": f"{each.title}: {finding.text}"},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: _fingerprint(each, finding, seen)},
    }


def _logical(each: CheckedObject, finding: ReportFinding) -> Tree:
    found: Tree = {"name": each.title, "kind": "object"}
    if finding.field:
        found["fullyQualifiedName"] = f"{each.title}: {printable(finding.field)}"
    return found


def _physical(place: ReportPlace) -> Tree:
    found: Tree = {"artifactLocation": {"uri": relative_uri(place.file), "uriBaseId": ROOT}}
    if place.position is not None:
        line, column = place.position
        found["region"] = {"startLine": line, "startColumn": column}
    return found


def relative_uri(file: str) -> str:
    """Return a path as a relative URI."""
    encoded = file.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in encoded)


def _fingerprint(each: CheckedObject, finding: ReportFinding, seen: Counter[str]) -> str:
    place = finding.place
    parts = (finding.rule, place.file, place.origin, each.name, finding.field)
    key = "\0".join(parts)
    seen[key] += 1
    text = f"{key}\0{seen[key]}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()
