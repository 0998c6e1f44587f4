"""`moor lint`: what is odd about claims, classes, slices and pods?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.cli import CONTEXT
from mooring.cli.collection import Collected, coloured
from mooring.cli.exits import DOES_NOT_FIT, FITS, UNREADABLE
from mooring.cli.gate_options import gate_options
from mooring.cli.listing import printable
from mooring.cli.report_options import report_options
from mooring.insight.expressions.fleet import Fleet
from mooring.insight.expressions.inquiry import compiler_for
from mooring.insight.lint import (
    KINDS,
    RULE_IDS,
    RULES,
    Finding,
    Needs,
    Severity,
    Surroundings,
    World,
    lacking,
    lint,
)
from mooring.insight.wording import counted
from mooring.validation.context import Context

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def _list_rules(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or context.resilient_parsing:
        return
    id_width = max(map(len, RULE_IDS))
    for rule in RULES:
        needs = f" (needs {rule.needs.value})" if rule.needs.value else ""
        click.echo(f"{rule.id:{id_width}}  {rule.severity.value:7}  {rule.summary}{needs}")
    context.exit()


@click.command(
    context_settings=CONTEXT,
    epilog=(
        "Exit status: 0 no errors or warnings, 1 some, 2 usage, 3 something could not be read."
    ),
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="YAML, JSON or a snapshot to look at: a file, a directory, or - for standard input. "
    "May be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Look into subdirectories, too.")
@click.option("--strict", is_flag=True, help="Know nothing that Kubernetes 1.37 does not have.")
@click.option(
    "--disable",
    "disabled",
    multiple=True,
    type=click.Choice(RULE_IDS),
    metavar="RULE",
    help="Leave out a rule. May be repeated.",
)
@click.option(
    "--rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List the rules and exit.",
)
@report_options
@gate_options
def command(
    filenames: tuple[str, ...],
    recursive: bool,
    strict: bool,
    disabled: tuple[str, ...],
    quiet: bool,
    output: str,
    gates: Gates,
) -> None:
    """Find what is odd about claims, classes, slices and pods.

    Puts every CEL expression of claims, templates, classes and taint rules to the devices of the
    ResourceSlices among the files, as the scheduler would: names that no device has, comparisons
    that are never true, reads that would abort scheduling. Looks at the slices as pools:
    completeness, names, counters, capacity, attributes. Looks at pods, and at the pods of
    Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs: claims, extended resources,
    groups. What is not among the files is not asked for: rules that need it are left out.

    \b
    moor lint -f claim.yaml -f slices.yaml
    kubectl get resourceslices,nodes -o yaml | moor lint -f -
    moor lint -R -f manifests --disable never-true
    kubectl get resourceslices,deviceclasses -o yaml | moor lint -f claim.yaml -f -
    """
    context = Context(gates=gates, now=Timestamp(datetime.now(UTC)), extensions=not strict)
    found = Collected(context, kinds=KINDS)
    found.read(filenames, recursive=recursive)
    world = World(
        Fleet(found.slices, names=not strict),
        (each.value for each in found.objects if each.kind.name == "DeviceClass"),
        compiler_for(gates, extensions=not strict),
        Surroundings(found.objects, context),
    )
    findings = lint(found.objects, world, disabled=disabled)
    if output == "json":
        click.echo(_json(findings, found, world))
    else:
        for finding in findings:
            click.echo(_text(finding))
        if not quiet:
            click.echo(_summary(findings, found, world))
    is_odd = any(finding.severity is not Severity.NOTE for finding in findings)
    status = DOES_NOT_FIT if is_odd else FITS
    sys.exit(UNREADABLE if found.unreadable else status)


# --- printing -----------------------------------------------------------------------------


def _text(finding: Finding) -> str:
    place = f"{finding.source}:{finding.line}:{finding.column}"
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


def _summary(findings: list[Finding], found: Collected, world: World) -> str:
    looked_at = f"{counted(len(found.objects), 'object')} in {counted(found.files, 'file')}"
    against = counted(len(world.fleet), "device")
    text = f"{looked_at} against {against}: {', '.join(_counts(findings))}"
    if found.ignored:
        text += f"\nnot looked at: {counted(found.ignored, 'object')} of other kinds, or of none"
    unapplied = lacking(found.objects, world)
    if unapplied:
        needed = {rule.needs for rule in unapplied}
        absent = [f"no {needs.value}" for needs in Needs if needs in needed]
        rules = counted(len(unapplied), "rule")
        text += f"\n{_enumerated(absent)} among the files: {rules} not applied"
    return text


def _enumerated(texts: list[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _json(findings: list[Finding], found: Collected, world: World) -> str:
    counts = Counter(finding.severity for finding in findings)
    report: dict[str, Any] = {
        "findings": [_finding_json(finding) for finding in findings],
        "unreadable": found.unreadable,
        "summary": {
            "files": found.files,
            "objects": len(found.objects),
            "devices": len(world.fleet),
            "classes": len(world.classes),
            "objectsIgnored": found.ignored,
            "errors": counts[Severity.ERROR],
            "warnings": counts[Severity.WARNING],
            "notes": counts[Severity.NOTE],
            "rulesNotApplied": [rule.id for rule in lacking(found.objects, world)],
        },
    }
    return msgspec.json.format(msgspec.json.encode(report)).decode()


def _finding_json(finding: Finding) -> dict[str, Any]:
    facts = finding._asdict()
    return {"file": facts.pop("source"), **facts}
