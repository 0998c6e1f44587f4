"""`moor lint`: find mistakes in claims, classes, slices and pods."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import click

from moorage import __version__
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import Sources, hint_if_lost, manifest_source_options
from moorage.cli.collection import collect
from moorage.cli.command_classes import files_argument
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import (
    FORMATS,
    REPORT_FORMATS,
    print_answer,
    print_table,
    report_options,
)
from moorage.cli.reports import Workspace, print_findings, print_report
from moorage.cli.terminal import coloured, echo, printable
from moorage.insight.lint import (
    KINDS,
    RULE_IDS,
    RULES,
    Finding,
    Needs,
    Severity,
    hindered,
    lacking,
    lint,
)
from moorage.insight.messages import counted
from moorage.insight.object_names import kubectl_name
from moorage.insight.reports import CheckedObject, FindingLevel, FindingReport, ReportFinding
from moorage.insight.reports.rules import lint_rules
from moorage.insight.snapshot.unread import Unread, why_unread
from moorage.sources.linting import LintInput, finding_tree, lint_input, lint_tree

F = TypeVar("F", bound=Callable[..., Any])
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


RULE_FORMATS = (*FORMATS, "text")


def _rules_option(function: F) -> F:
    """Add the option --rules, which lists the rules instead."""

    @wraps(function)
    def with_rules(*args: Any, lists_rules: bool, output: str, **kwargs: Any) -> Any:
        if not lists_rules:
            return function(*args, output=output, **kwargs)
        if output not in RULE_FORMATS:
            raise click.UsageError(f"--rules has the formats {', '.join(RULE_FORMATS)}")
        print_answer(
            output,
            table=lambda is_wide: _print_rules(is_text=output == "text", is_wide=is_wide),
            document=lambda: {"rules": list(_rule_rows())},
            rows=_rule_rows,
            names=lambda: (f"rule/{rule_id}" for rule_id in RULE_IDS),
        )
        return None

    option = click.option("--rules", "lists_rules", is_flag=True, help="List the rules and exit.")
    return option(with_rules)  # type: ignore[return-value]


def _rule_rows() -> Iterator[dict[str, Any]]:
    for rule in RULES:
        yield {
            "id": rule.id,
            "severity": rule.severity.value,
            "summary": rule.summary,
            "needs": rule.needs.value or None,
            "kinds": ",".join(sorted(rule.about)),
        }


def _print_rules(*, is_text: bool, is_wide: bool) -> None:
    if not is_text:
        header = ("RULE", "SEVERITY", "SUMMARY", *(("NEEDS", "KINDS") if is_wide else ()))
        rows = ([each or "" for each in row.values()][: len(header)] for row in _rule_rows())
        print_table(header, rows, is_wide=True)
        return
    id_width = max(map(len, RULE_IDS))
    for rule in RULES:
        needs = f" (needs {rule.needs.value})" if rule.needs.value else ""
        echo(f"{rule.id:{id_width}}  {rule.severity.value:7}  {rule.summary}{needs}")


@click.command(
    context_settings=CONTEXT,
    epilog=(
        "Exit status: 0 no errors or warnings, 1 errors or warnings, 2 usage error, 3 an "
        "input could not be read or has no objects."
    ),
)
@click.option(
    "--disable",
    "disabled",
    multiple=True,
    type=click.Choice(RULE_IDS),
    metavar="RULE",
    help="Disable a rule. May be repeated.",
)
@_rules_option
@files_argument
@report_options
@manifest_source_options
def command(sources: Sources, disabled: tuple[str, ...], quiet: bool, output: str) -> None:
    """Find mistakes in claims, classes, slices and pods.

    The command evaluates every CEL expression of claims, templates, classes and taint rules on the
    devices of the ResourceSlices, as the scheduler would, and reports names that no device has,
    comparisons that are never true, and reads that would abort scheduling. It checks slices as
    pools: completeness, names, counters, capacity, attributes. It checks pods, and the pods of
    Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs: claims, extended resources, groups.

    With -f or [FILE|DIR]…, the command checks only their objects, in the cluster of --on, --live
    and --profile; without, it checks the whole cluster. It skips rules that need missing input,
    such as slices.

    \b
    moor lint -f claim.yaml --profile dgx-h100
    moor lint -R -f manifests --live
    kubectl get resourceslices,nodes -o yaml | moor lint -f -
    moor lint --on cluster.yaml --disable never-true
    """
    given = _read(sources)
    findings = lint(given.subjects, given.world, disabled=disabled)
    if output in REPORT_FORMATS:
        report = _report(findings, given, disabled)
        print_report(report, output, "" if quiet else _summary(findings, given))
    elif output == "text":
        for finding in findings:
            echo(_text(finding, given))
    else:
        _print_data(findings, given, output)
    if output in ("text", "table", "wide") and not quiet:
        echo(_summary(findings, given))
    is_odd = any(finding.severity is not Severity.NOTE for finding in findings)
    status = DOES_NOT_FIT if is_odd else FITS
    sys.exit(UNREADABLE if given.unreadable else status)


def _read(sources: Sources) -> LintInput:
    context, namespace = sources.context, sources.namespace
    cluster = collect(sources.cluster, context, kinds=KINDS, namespace=namespace)
    added = collect(sources.manifests, context, kinds=KINDS, namespace=namespace)
    hint_if_lost(Unread(tuple(cluster.unread)))
    return lint_input(cluster, added if sources.manifests else None, context)


# --- printing -----------------------------------------------------------------------------


def _text(finding: Finding, given: LintInput) -> str:
    place = finding.source
    if place not in given.unwritten:
        place += f":{finding.line}:{finding.column}"
    severity = coloured(finding.severity.value, _COLOURS[finding.severity])
    first, *rest = map(printable, finding.message.splitlines())
    subject = printable(f"{finding.kind} {finding.name}")
    lines = [f"{printable(place)}: {severity}: {subject}: {first} [{finding.rule}]"]
    lines += (f"    {line}" for line in (*rest, printable(finding.remedy)))
    return "\n".join(lines)


def _counts(findings: list[Finding]) -> Iterator[str]:
    counts = Counter(finding.severity for finding in findings)
    for severity in Severity:
        yield counted(counts[severity], severity.value)


def _summary(findings: list[Finding], given: LintInput) -> str:
    objects = counted(len(given.subjects), "object")
    where = "of the cluster" if given.files is None else f"in {counted(given.files, 'file')}"
    against = counted(len(given.world.devices), "device")
    if not given.world.unread.knows("ResourceSlice"):
        against = "devices that are not known"
    text = f"{objects} {where} against {against}: {', '.join(_counts(findings))}"
    if given.ignored:
        text += f"\nnot looked at: {counted(given.ignored, 'object')} of other kinds, or of none"
    hidden = dict(hindered(given.subjects, given.world))
    if hidden:
        why = why_unread(dict.fromkeys(hidden.values()))
        text += f"\n{why}: {counted(len(hidden), 'rule')} not applied to all objects"
    unapplied = [rule for rule in lacking(given.subjects, given.world) if rule not in hidden]
    if unapplied:
        needed = {rule.needs for rule in unapplied}
        absent = [f"no {needs.value}" for needs in Needs if needs in needed]
        rules = counted(len(unapplied), "rule")
        text += f"\n{_enumerated(absent)} given: {rules} not applied"
    return text


def _enumerated(texts: list[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _print_data(findings: list[Finding], given: LintInput, output: str) -> None:
    rows = [finding_tree(finding, given) for finding in findings]
    groups = {each.kind.name: each.kind.group for each in given.subjects}
    subjects = dict.fromkeys((each.kind, each.name) for each in findings)
    print_answer(
        output,
        table=lambda is_wide: print_findings(rows, is_wide=is_wide),
        document=lambda: lint_tree(findings, given),
        rows=lambda: rows,
        names=lambda: (kubectl_name(kind, name, groups.get(kind, "")) for kind, name in subjects),
        columns=("file", "rule", "severity", "line", "column", "kind", "name", "field", "message"),
    )


def _report(findings: list[Finding], given: LintInput, disabled: tuple[str, ...]) -> FindingReport:
    """Return the report for a CI system: all checked objects, with their findings."""
    workspace = Workspace.find()
    found = defaultdict(list)
    for finding in findings:
        key = (finding.source, finding.kind, finding.name)
        is_written = finding.source not in given.unwritten
        position = (finding.line, finding.column) if is_written else ()
        found[key].append(
            ReportFinding(
                rule=finding.rule,
                level=FindingLevel(finding.severity.value),
                place=workspace.place(finding.source, *position),
                message=finding.message,
                fix=finding.remedy,
                field=finding.field,
            )
        )
    objects = [workspace.unreadable(message) for message in given.unreadable]
    for each in given.subjects:
        source = each.document.source
        position = () if source in given.unwritten else (each.document.line, 1)
        about = tuple(found.pop((source, each.kind.name, each.full_name), ()))
        place = workspace.place(source, *position)
        objects.append(CheckedObject(f"{each.kind.name} {each.full_name}", place, about))
    return FindingReport(
        "lint",
        __version__,
        lint_rules(tuple(rule for rule in RULES if rule.id not in disabled)),
        tuple(objects),
        failing=frozenset((FindingLevel.ERROR, FindingLevel.WARNING)),
    )
