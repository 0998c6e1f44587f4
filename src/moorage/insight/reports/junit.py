"""JUnit XML: a test suite for each file, a test case for each object.

Findings that make the command exit with 1 are failures; others are output of their test case. An
input that could not be read is an error. Control characters, which XML cannot contain, are escaped
as in all other output. Characters outside of ASCII are written as character references.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from moorage.insight.reports.findings import (
    UNREADABLE,
    CheckedObject,
    FindingLevel,
    FindingReport,
    ReportFinding,
    by_file,
)
from moorage.kit.printable import printable_lines


def junit_document(report: FindingReport) -> str:
    """Return a report as JUnit XML."""
    suites = by_file(report.objects)
    totals = _counts(report.objects, report.failing)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {_attributes(name=f'moor {report.command}', **totals)}>",
    ]
    for name, objects in suites.items():
        lines.append(f"  <testsuite {_attributes(name=name, **_counts(objects, report.failing))}>")
        for each in objects:
            lines += _case(each, name, report.failing)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _counts(objects: Sequence[CheckedObject], failing: frozenset[FindingLevel]) -> dict[str, int]:
    unread = [each for each in objects if _is_unreadable(each)]
    failed = [each for each in objects if each not in unread and _failures(each, failing)]
    return {
        "tests": len(objects),
        "failures": len(failed),
        "errors": len(unread),
        "skipped": sum(bool(each.skipped) for each in objects),
    }


def _is_unreadable(each: CheckedObject) -> bool:
    return any(finding.rule == UNREADABLE for finding in each.findings)


def _failures(each: CheckedObject, failing: frozenset[FindingLevel]) -> list[ReportFinding]:
    return [finding for finding in each.findings if finding.level in failing]


def _case(each: CheckedObject, suite: str, failing: frozenset[FindingLevel]) -> Iterator[str]:
    place: dict[str, str | int] = {"file": each.place.file} if each.place.file else {}
    if each.place.position is not None:
        place["line"] = each.place.position[0]
    head = _attributes(classname=suite, name=each.title, **place)
    inside = list(_inside(each, failing))
    if not inside:
        yield f"    <testcase {head}/>"
        return
    yield f"    <testcase {head}>"
    yield from inside
    yield "    </testcase>"


def _inside(each: CheckedObject, failing: frozenset[FindingLevel]) -> Iterator[str]:
    failures = _failures(each, failing)
    others = [finding for finding in each.findings if finding.level not in failing]
    if each.skipped:
        yield f"      <skipped {_attributes(message=each.skipped)}/>"
    if failures:
        # One element for all, because many readers show only the first of a test case.
        tag = "error" if _is_unreadable(each) else "failure"
        first, *more = failures
        message = first.text.partition("\n")[0] + (f" (and {len(more)} more)" if more else "")
        head = _attributes(type=first.rule, message=message)
        yield f"      <{tag} {head}>{_text(_listed(failures))}</{tag}>"
    if others:
        yield f"      <system-out>{_text(_listed(others))}</system-out>"


def _listed(findings: Sequence[ReportFinding]) -> str:
    return "\n".join(map(_line, findings))


def _line(finding: ReportFinding) -> str:
    place = finding.place
    at = "" if place.position is None else f"{place.file}:{place.line}:{place.column}: "
    first, *rest = f"{at}{finding.level}: {finding.text} [{finding.rule}]".split("\n")
    return "\n".join([first, *(f"    {line}" for line in rest)])


def _attributes(**values: str | int) -> str:
    return " ".join(f'{name}="{_text(str(value), "&#10;")}"' for name, value in values.items())


def _text(value: str, line_break: str = "\n") -> str:
    escaped = escape(printable_lines(value)).replace("\n", line_break)
    return escaped.encode("ascii", "xmlcharrefreplace").decode()
