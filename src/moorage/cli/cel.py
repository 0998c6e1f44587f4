"""`moor cel`: which devices does an expression select, and why not the others?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from moorage.cel.device import COST_LIMIT
from moorage.cel.lang.values import key_value
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import Sources, device_source_options
from moorage.cli.collection import collect
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import aligned, complain, output_option, print_answer, print_tree
from moorage.cli.terminal import coloured, echo, printable, printable_lines
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import (
    ABORTS,
    TOO_LONG,
    DeviceResult,
    EvaluationReport,
    Explained,
    InvalidExpression,
    MatchOutcome,
    compiler_for,
    condensed,
    evaluator_of,
)
from moorage.insight.expressions.explanation import Reason, Reasons
from moorage.insight.expressions.mistake import Option, RepairKind
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.expressions.repairs import SelectorDiagnosis, diagnose
from moorage.insight.expressions.respelling import respelt
from moorage.insight.expressions.syntax import shown, shown_cost
from moorage.insight.messages import counted
from moorage.insight.object_names import device_name
from moorage.insight.snapshot.unread import (
    Unread,
    UnreadKind,
    remedy_for,
    unread_tree,
    why_unread,
)
from moorage.sources.collection import Collected

DEVICES_NAMED_MAX = 3


@click.command(
    context_settings=CONTEXT,
    epilog=(
        "Exit status: 0 a device matches, or every device has a value; 1 none matches, "
        "or evaluation failed; 2 usage error; 3 an input could not be read."
    ),
)
@click.argument("expression", metavar="EXPR")
@click.option(
    "--derived",
    is_flag=True,
    help="Treat the expression as a derived attribute and print its value.",
)
@click.option("--show-all", is_flag=True, help="List every device that does not match.")
@output_option(
    wide="adds node and slice",
    names="device/DRIVER/POOL/DEVICE of the matching devices",
    text="csv has a line for every device, with its outcome",
)
@device_source_options
def command(sources: Sources, expression: str, derived: bool, show_all: bool, output: str) -> None:
    """Find the devices that a CEL expression selects.

    EXPR is a selector expression, as in a request or a DeviceClass. The command evaluates it on
    the devices of all ResourceSlices in -f, --on, --live and --profile. It prints which devices
    match and what the evaluation cost; for every other device, it prints the part of the
    expression that was false and the values that it read. If the expression is not boolean, it
    prints its value for each device.

    \b
    moor cel 'device.attributes["gpu.example.com"].model == "H200"' -f slices.yaml
    moor cel 'device.capacity["gpu.example.com"].memory' -f slices.yaml
    moor cel 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"' --profile dgx-h100
    kubectl get resourceslices -o yaml | moor cel 'device.driver == "gpu.example.com"' -f -
    """
    if any("\ud800" <= character <= "\udfff" for character in expression):
        # Python represents bytes that are not UTF-8 as surrogates.
        raise click.UsageError("EXPR is not valid UTF-8")
    if not expression.strip():  # Of a shell variable that is not set, for example.
        raise click.UsageError("EXPR is empty: 'true' selects every device")
    extensions = sources.context.extensions
    compiler = compiler_for(sources.context.gates, extensions=extensions)
    evaluator = evaluator_of(expression, compiler, derived=derived)
    found = collect([*sources.cluster, *sources.manifests], sources.context)
    fleet = PublishedDevices(found.slices, names=extensions)
    devices = Devices(fleet.devices, fleet, is_class_known=False)
    if isinstance(evaluator, InvalidExpression):
        is_readable = fleet and not derived and evaluator.error != TOO_LONG
        meant = diagnose([expression], compiler, devices) if is_readable else None
        other = respelt(expression, evaluator.error, compiler, devices, derived=derived)
        _print_refusal(evaluator, expression, meant, other, output=output)
        sys.exit(UNREADABLE if found.unreadable else DOES_NOT_FIT)
    report = EvaluationReport(evaluator, fleet)
    is_selector = bool(fleet) and not derived and not report.is_about_values and not report.caveat
    meant = diagnose([expression], compiler, devices) if is_selector else None
    print_answer(
        output,
        table=lambda is_wide: _print_table(
            report, found, meant, is_wide=is_wide, show_all=show_all
        ),
        document=lambda: (
            _tree(report, found) | _meant_tree(meant) | unread_tree(Unread(tuple(found.unread)))
        ),
        rows=lambda: _rows(report),
        names=lambda: (
            device_name(device)
            for device, answer in report.by_device()
            if answer.outcome is report.wanted
        ),
        columns=COLUMNS,
    )
    otherwise = UNREADABLE if _hidden(found) else DOES_NOT_FIT
    sys.exit(UNREADABLE if found.unreadable else FITS if report.is_good else otherwise)


def _hidden(found: Collected) -> tuple[UnreadKind, ...]:
    """Return that the slices of a cluster are not all known, if so."""
    return Unread(tuple(found.unread)).hidden(("ResourceSlice",))


def _print_refusal(
    refusal: InvalidExpression,
    expression: str,
    meant: SelectorDiagnosis | None,
    other: Option | None,
    *,
    output: str,
) -> None:
    if output in ("json", "yaml"):
        tree = _meant_tree(meant) if meant is not None and meant.repairs else _other_tree(other)
        print_tree({"expression": expression, "error": refusal.error} | tree, output)
        return
    complain(refusal.error, "ERROR: <input>:", "hint: ")
    # Without a repair the cause is what was just said.
    if meant is not None and meant.repairs:
        for line in _meant_lines(meant):
            echo(line, err=True)
    elif other is not None:
        echo(f"{coloured('did you mean', 'green')}: {printable(other.whole)}", err=True)
        echo(f"    it compiles; {printable(other.text)}", err=True)


# --- what was meant -----------------------------------------------------------------------


def _meant_lines(meant: SelectorDiagnosis | None) -> Iterator[str]:
    """Yield why too few devices match, and the expression that was meant."""
    if meant is None or not meant.cause:
        return
    yield f"{coloured('cause', 'yellow')}: {printable(meant.cause)}"
    # What gives a question up is another question.
    for repair in [each for each in meant.repairs if each.kind < RepairKind.DROPPED][:1]:
        (expression,) = repair.expressions
        label = "did you mean" if repair.kind <= RepairKind.GUARD else "nearest that matches"
        yield f"{coloured(label, 'green')}: {printable(expression)}"
        verb = "matches" if repair.matching == 1 else "match"
        yield f"    {counted(repair.matching, 'device')} {verb}; {printable(repair.text)}"


def _meant_tree(meant: SelectorDiagnosis | None) -> dict[str, Any]:
    if meant is None or not meant.cause:
        return {}
    return {
        "cause": meant.cause,
        "repairs": [
            {
                "text": repair.text,
                "kind": repair.kind.name.lower(),
                "expression": repair.expressions[0],
                "match": repair.matching,
            }
            for repair in meant.repairs
        ],
    }


def _other_tree(other: Option | None) -> dict[str, Any]:
    if other is None:
        return {}
    kind = other.kind.name.lower()
    repair = {"text": other.text, "kind": kind, "expression": other.whole}
    return {"cause": other.cause, "repairs": [repair]}


# --- tables -------------------------------------------------------------------------------


def _print_table(
    report: EvaluationReport,
    found: Collected,
    meant: SelectorDiagnosis | None,
    *,
    is_wide: bool,
    show_all: bool,
) -> None:
    rows = [
        _row(device, answer, report, is_wide=is_wide)
        for device, answer in report.by_device()
        if answer.outcome is report.wanted
    ]
    if rows:
        shown_rows = [tuple(map(printable, row)) for row in rows]
        for line in aligned([_header(report, is_wide=is_wide), *shown_rows]):
            echo(line)
        echo()
    for explained in report.explained if show_all else condensed(report.explained):
        _print_reasons(explained, show_all=show_all)
    for line in (*_summary(report, found), *_meant_lines(meant)):
        echo(line)


def _header(report: EvaluationReport, *, is_wide: bool) -> tuple[str, ...]:
    value = ("VALUE",) if report.is_about_values else ()
    place = ("NODE", "SLICE") if is_wide else ()
    return ("DRIVER", "POOL", "DEVICE", *value, "COST", *place)


def _row(
    device: PublishedDevice, answer: DeviceResult, report: EvaluationReport, *, is_wide: bool
) -> tuple[str, ...]:
    value = (shown(answer.value),) if report.is_about_values else ()
    place = (device.node or "-", device.slice_name) if is_wide else ()
    return (device.driver, device.pool, device.name, *value, str(answer.cost), *place)


def _print_reasons(explained: Explained, *, show_all: bool) -> None:
    is_error = explained.outcome is MatchOutcome.ERROR
    label = coloured("error", "red") if is_error else coloured("no", "yellow")
    for text in list(map(str, explained.reasons)) or [explained.error]:
        echo(f"{label}: {printable_lines(text)}")
    for line in _named(explained.devices, show_all=show_all):
        echo(f"    {printable(line)}")
    echo()


def _named(devices: tuple[PublishedDevice, ...], *, show_all: bool) -> list[str]:
    if show_all or len(devices) <= DEVICES_NAMED_MAX:
        return list(map(str, devices))
    names = list(map(str, devices[: DEVICES_NAMED_MAX - 1]))
    return [*names, f"… and {len(devices) - len(names):,} more"]


def _summary(report: EvaluationReport, found: Collected) -> Iterator[str]:
    number, devices = report.count(report.wanted), counted(len(report.devices), "device")
    if report.is_about_values:
        text = f"{number:,} of {devices} {'has' if number == 1 else 'have'} a value"
    else:
        text = f"{number:,} of {devices} {'matches' if number == 1 else 'match'}"
    hidden = _hidden(found)
    if hidden and not report.devices:
        text = f"{why_unread(hidden)}: which devices there are is not known"
    yield f"{text}; {_costs(report)}"
    if hidden and report.devices:
        yield f"{why_unread(hidden)}: other devices are not known"
    if hidden:
        yield remedy_for(hidden)
    warning = coloured("warning", "yellow")
    if report.caveat:
        role = "selector" if report.evaluator.compiled.kind != "derived" else "derived attribute"
        yield f"{warning}: Kubernetes refuses this as a {role}: {report.caveat}"
    elif errors := report.count(MatchOutcome.ERROR):
        devices = f"{counted(errors, 'device')} {'gives' if errors == 1 else 'give'} an error"
        yield f"{warning}: {devices}; {ABORTS}"
    if report.devices.slices_outdated:
        slices = counted(report.devices.slices_outdated, "slice")
        yield f"left out: {slices} of an older generation of the pool"
    if found.ignored:
        yield f"left out: {counted(found.ignored, 'object')} of other kinds"


def _costs(report: EvaluationReport) -> str:
    cost_max = report.evaluator.compiled.cost_max
    estimate = f"at most {shown_cost(cost_max)} by estimate, limit {COST_LIMIT:,}"
    if report.costs is None:
        return f"cost {estimate}"
    low, high = report.costs
    spent = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"cost {spent}, {estimate}"


# --- JSON ---------------------------------------------------------------------------------


def _tree(report: EvaluationReport, found: Collected) -> dict[str, Any]:
    low, high = report.costs or (None, None)
    return {
        "expression": report.evaluator.compiled.expression,
        "devices": _devices(report),
        "warning": report.caveat,
        "summary": {
            "devices": len(report.devices),
            "match": report.count(MatchOutcome.MATCH),
            "noMatch": report.count(MatchOutcome.NO_MATCH),
            "value": report.count(MatchOutcome.VALUE),
            "error": report.count(MatchOutcome.ERROR),
            "costMin": low,
            "costMax": high,
            "costEstimate": report.evaluator.compiled.cost_max,
            "costLimit": COST_LIMIT,
            "slicesOutdated": report.devices.slices_outdated,
            "objectsIgnored": found.ignored,
        },
    }


COLUMNS = (
    *("driver", "pool", "device", "node", "slice", "outcome", "cost", "value", "error"),
    "reasons",
)


def _rows(report: EvaluationReport) -> Iterator[dict[str, Any]]:
    """Yield a row for each device."""
    for tree in _devices(report):
        value, reasons = tree.get("value"), tree.get("reasons", ())
        yield {
            **{name: tree.get(name) for name in COLUMNS},
            "value": shown(value) if isinstance(value, list | dict) else value,
            "reasons": "; ".join(each["text"] for each in reasons) or None,
        }


def _devices(report: EvaluationReport) -> list[dict[str, Any]]:
    reasons = {
        device.index: explained.reasons
        for explained in report.explained
        for device in explained.devices
    }
    return [
        _device_tree(device, answer, reasons.get(device.index, ()))
        for device, answer in report.by_device()
    ]


def _device_tree(device: PublishedDevice, answer: DeviceResult, reasons: Reasons) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "driver": device.driver,
        "pool": device.pool,
        "device": device.name,
        "node": device.node,
        "slice": device.slice_name,
        "outcome": answer.outcome.value,
        "cost": answer.cost,
    }
    if answer.outcome is MatchOutcome.VALUE:
        facts["value"] = _plain(answer.value)
    if answer.outcome is MatchOutcome.ERROR:
        facts["error"] = answer.error
    if reasons:
        facts["reasons"] = list(map(_reason_tree, reasons))
    return facts


def _reason_tree(reason: Reason) -> dict[str, Any]:
    return {
        "text": str(reason),
        "part": reason.part,
        "detail": reason.detail,
        "values": {valued.part: valued.value for valued in reason.values},
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not have becomes text."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return int(value)
        case list() | tuple():
            return list(map(_plain, value))
        case dict():
            return {str(key_value(key)): _plain(inner) for key, inner in value.items()}
        case _:
            return shown(value, length_max=None)
