"""`moor whatif`: what would become of pods and devices if …?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from moorage.cli import CONTEXT
from moorage.cli.change_options import ChangeValues, RequestedChange, change_options, read_changes
from moorage.cli.cluster_options import ClusterInput, manifest_cluster_options
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import (
    Cell,
    Progress,
    Row,
    by_pool,
    output_option,
    print_answer,
    print_table,
    warn,
)
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, printable
from moorage.insight.errors import TooManyPodsError
from moorage.insight.messages import listed
from moorage.insight.object_names import pod_name
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.rows import CHANGE_COLUMNS, change_rows
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import Difference, UnknownNameError, difference
from moorage.insight.whatif.difference import (
    FreeDevices,
    PodChange,
    PodChangeKind,
    PodPlacement,
    difference_tree,
)
from moorage.insight.whatif.evicted_pods import RulePreview, TaintEviction

NO_NODE = "<none>"
ARROW = "→"

PODS = ("POD", "BEFORE", "AFTER", "WHY")
PODS_WIDE = ("POD", "TURN", "BEFORE", "AFTER", "DEVICES BEFORE", "DEVICES AFTER", "WHY")
EVICTIONS = ("POD", "WHEN", "TAINT", "CLAIM", "DEVICE")
DEVICES = ("NODE", "DRIVER", "FREE", "TOTAL")


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 no pod is worse off, 1 some are, or an object is invalid, 2 usage "
    "error, 3 an input could not be read or has no objects.",
)
@output_option(wide="prints the devices of each pod, and all nodes", names="the pods that change")
@change_options
@manifest_cluster_options
@scheduler_config_option
def command(given: ClusterInput, changes: ChangeValues, output: str) -> None:
    """Show what changes would do to pods and devices before you make them.

    The command plans the cluster of --on, --profile and -f twice, without and with the changes, and
    prints the difference. Unaffected pods stay where they are. Evicted pods of controllers are
    recreated, here with the same name, and planned again; others are lost. A pod is worse off if
    it loses its node, is lost, or gets devices that it would have to leave again.

    All change options may be repeated. Additions are applied first.

    \b
    moor whatif --on cluster.yaml --drain node-1
    moor whatif --on cluster.yaml --rule taint-rule.yaml
    moor whatif --on cluster.yaml -f training.yaml --add-profile dgx-h100x2
    moor whatif --on cluster.yaml --taint-device gpu.example.com/node-1/gpu-0=sick:NoExecute
    """
    wanted = read_changes(changes, given)
    found = _difference(given, wanted)
    for concern in found.concerns:
        warn(str(concern))
    _print(found, output)
    if not (found.is_worse or given.unread.knows("Pod")):
        sys.exit(UNREADABLE)
    sys.exit(given.exit_status(DOES_NOT_FIT if found.is_worse else FITS))


def _difference(given: ClusterInput, wanted: list[RequestedChange]) -> Difference:
    def make_plan(snapshot: Snapshot) -> Plan:
        with Progress("pods planned") as progress:
            return plan(snapshot, given.context, progress=progress)

    changes = [wish.change for wish in wanted]
    try:
        return difference(given.everything, changes, given.context, make_plan)
    except UnknownNameError as error:
        option = next(wish.option for wish in wanted if wish.change is error.change)
        given.end_without(f"{option}: {error}")
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None


# --- printing ---------------------------------------------------------------------------------


def _print(found: Difference, output: str) -> None:
    print_answer(
        output,
        table=lambda is_wide: _print_tables(found, is_wide=is_wide),
        document=lambda: difference_tree(found),
        rows=lambda: change_rows(found.pods),
        names=lambda: (pod_name(each.pod) for each in found.pods),
        columns=CHANGE_COLUMNS,
    )


def _print_tables(found: Difference, *, is_wide: bool) -> None:
    if found.pods:
        rows = (_wide_row(each) if is_wide else _row(each) for each in found.pods)
        print_table(PODS_WIDE if is_wide else PODS, rows, is_wide=is_wide)
        echo("")
    _print_evictions("Evictions:", found.evictions, is_wide=is_wide)
    for rule in found.rules:
        _print_rule(rule, is_wide=is_wide)
    changed = [each for each in found.devices if is_wide or each.is_changed]
    if changed:
        echo("Devices:")
        print_table(DEVICES, map(_device_row, changed), is_wide=is_wide)
        echo("")
    for text in _remarks(found):
        echo(printable(text))
    echo(_summary(found))


def _row(each: PodChange) -> Row:
    return each.pod, _before(each), _after(each), _why(each)


def _wide_row(each: PodChange) -> Row:
    devices = (_devices(each.before), _devices(each.after))
    return each.pod, each.kind.value, _before(each), _after(each), *devices, _why(each)


def _before(each: PodChange) -> str | Cell:
    return "" if each.before is None else each.before.node or NO_NODE


def _after(each: PodChange) -> str | Cell:
    if each.after is None:
        return Cell(f"<{each.kind.value}>", "red" if each.is_worse else None)
    colour = "red" if each.is_worse else "green" if each.kind is PodChangeKind.GAINS else None
    return Cell(each.after.node or NO_NODE, colour)


def _why(each: PodChange) -> str:
    return "; ".join(filter(None, (each.why, *_consequences(each))))


def _consequences(each: PodChange) -> Iterator[str]:
    """Yield short consequences for a pod."""
    match each.kind:
        case PodChangeKind.LOST:
            yield "nothing recreates it"
        case PodChangeKind.RESTARTS:
            yield "comes back to where it was"
        case PodChangeKind.GAINS | PodChangeKind.NEW:
            yield _devices(each.after)
        case PodChangeKind.MOVES if not each.why or each.is_on_same_node:
            yield f"{_devices(each.before)} {ARROW} {_devices(each.after)}"
    if each.after is not None:
        yield each.after.message
    if each.again:
        yield f"leaves again: {each.again}"


def _devices(placement: PodPlacement | None) -> str:
    """Return a short text for devices, grouped by pool."""
    names = () if placement is None else placement.devices
    return by_pool((pool, device) for pool, _, device in (each.rpartition("/") for each in names))


# --- evictions and rules ----------------------------------------------------------------------


def _print_evictions(title: str, evictions: Iterable[TaintEviction], *, is_wide: bool) -> None:
    rows = [_eviction_row(each) for each in evictions]
    if rows:
        echo(title)
        print_table(EVICTIONS, rows, is_wide=is_wide)
        echo("")


def _eviction_row(each: TaintEviction) -> Row:
    source = f"rule {each.rule}" if each.rule else f"node {each.node}" if each.node else ""
    taint = f"{each.taint} ({source})" if source else each.taint
    when = f"after {each.after_seconds}s" if each.after_seconds else "at once"
    return each.pod, when, taint, each.claim, each.device


def _print_rule(rule: RulePreview, *, is_wide: bool) -> None:
    if rule.effect == "None":
        title = f"If the effect of rule {rule.rule} were NoExecute:"
        _print_evictions(printable(title), rule.evictions, is_wide=is_wide)
    message = f": {rule.message}" if rule.message else ""
    echo(
        printable(
            f"Status of rule {rule.rule}: EvictionInProgress={rule.status}, {rule.reason}{message}"
        )
    )
    echo("")


# --- devices and the end ----------------------------------------------------------------------


def _device_row(each: FreeDevices) -> Row:
    free = _change(each.free_before, each.free_after)
    colour = "red" if each.free_after < each.free_before else "green"
    is_same = each.free_after == each.free_before
    cell = Cell(free, None if is_same else colour)
    node = f"{each.node} (cordoned)" if each.is_cordoned else each.node
    return node, each.driver, cell, _change(each.total_before, each.total_after)


def _change(before: int, after: int) -> str:
    return str(before) if before == after else f"{before} {ARROW} {after}"


def _remarks(found: Difference) -> Iterator[str]:
    for each in found.missing:
        claims = f" (claim {', '.join(each.claims)})" if each.claims else ""
        yield f"{each.device} is in no slice any more, but stays allocated{claims}"
    if found.leaving_anyway:
        pods = listed(found.leaving_anyway)
        yield f"Taints evict these pods even without the changes: {pods}"


def _summary(found: Difference) -> str:
    before, after = found.free_before, found.free_after
    free = "unknown" if before is None or after is None else _change(before, after)
    return f"{found.pods_text}, {found.same} the same; free devices: {free}"
