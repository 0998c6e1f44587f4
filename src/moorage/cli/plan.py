"""`moor plan`: where would pods go, and which devices would they get?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import click

from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, manifest_cluster_options
from moorage.cli.device_trees import picture_option, write_picture
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import (
    REPORT_FORMATS,
    REPORTS_TEXT,
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
from moorage.insight.devices import usage_in
from moorage.insight.errors import TooManyPodsError
from moorage.insight.messages import counted
from moorage.insight.object_names import pod_name
from moorage.insight.plan.arrival_orders import BetterOrder, better_order
from moorage.insight.plan.document import (
    decisive,
    nothing_text,
    plan_tree,
    shown_placement,
    shown_results,
    stand_ins_text,
)
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.placements import (
    GrantedDevice,
    GrantedRequest,
    Placement,
    placement_of,
)
from moorage.insight.plan.planner import Plan, Result, plan
from moorage.insight.rows import PLAN_COLUMNS, plan_rows
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.stand_ins import Unused, unused_in
from moorage.scheduler.reservation import Reservation

ALIKE_MIN = 4  # this many pods of one owner in a row are named together
RUNS_MAX = 8
SAME = " "  # a cell equal to the one above
NO_NODE = "<none>"
NO_POD = "NO POD USES"  # the title of claims and templates
UNKNOWN = "<unknown>"

SHORT = ("POD", "NODE", "REQUEST", "DEVICES")
WIDE = ("POD", "NODE", "CLAIM", "REQUEST", "DEVICE", "SHARE", "CONSUMES")


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 every pod gets a node, 1 some do not or are invalid, 2 usage error, "
    "3 an input could not be read or has no objects.",
)
@output_option(
    *REPORT_FORMATS,
    wide="prints a line per device, with claim, share and capacity",
    names="the planned pods",
    text=REPORTS_TEXT,
)
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Also show pending pods of the cluster; they are always planned.",
)
@picture_option
@manifest_cluster_options
@scheduler_config_option
def command(given: ClusterInput, output: str, is_all: bool, picture_file: str | None) -> None:
    """Plan pods: which node each gets, and which devices its claims get there.

    The command plans as the scheduler would, pod by pod in order of priority and age, on the nodes
    and devices of --on, --profile and -f together. Deployments, Jobs and other workloads count with
    the pods that they create, templates with the claims created from them. The command changes
    nothing.

    A claim or template that no pod uses is planned for a pod that requests nothing else: after all
    pods, each alone on what the pods leave. It takes nothing from a pod, and decides about the exit
    status only if there are no pods.

    New pods are planned in the order of the files, before pods of controllers. In a real cluster
    that order is a race: if some pods get no node, the command tries other orders and reports one
    that places more.

    \b
    moor plan -f pod.yaml --profile dgx-h100x2
    moor plan -f training.yaml --on cluster.yaml -o wide --picture plan.svg
    """
    plan = planned(given, unused_in(given.manifests, given.everything))
    chosen = shown_results(plan, Snapshot() if is_all else given.manifests)
    placements = [shown_placement(result, plan) for result in chosen]
    stand_ins = [shown_placement(result, plan) for result in plan.stand_ins]
    if output in REPORT_FORMATS:
        _print_report(given, plan, chosen, output)
    elif placements or stand_ins or output not in ("table", "wide") or not given.is_unknown:
        _print(placements, stand_ins, plan, output, _better(given, plan, placements, output))
    if picture_file is not None:
        shown = plan.shown
        write_picture(
            shown.after,
            usage_in(shown.after, given.context),
            picture_file,
            title="Devices as planned",
            context=given.context,
            plan=shown,
        )
    decided = decisive(placements, stand_ins)
    are_unknown = not (decided or given.unread.knows("Pod"))
    if are_unknown or any(each.unknown for each in decided):
        sys.exit(UNREADABLE)
    fits = all(each.node for each in decided)
    sys.exit(given.exit_status(FITS if fits else DOES_NOT_FIT))


def _better(
    given: ClusterInput, plan: Plan, placements: list[Placement], output: str
) -> BetterOrder | None:
    """Return an order of arrival in which more pods get a node, if some get none."""
    if output in ("name", "csv") or all(each.node for each in placements):
        return None
    return better_order(plan, given.context, shown={each.pod for each in placements})


def _print_report(given: ClusterInput, plan: Plan, chosen: Iterable[Result], output: str) -> None:
    from moorage.cli.plan_report import plan_report  # imports everything that explains
    from moorage.cli.reports import print_report

    results = list(chosen)
    placed = sum(isinstance(each, Reservation) for each in results)
    summary = f"{counted(placed, 'pod')} of {len(results)} placed"
    if not results and plan.stand_ins:
        summary = stand_ins_text(list(map(placement_of, plan.stand_ins)), is_after_pods=False)
    print_report(plan_report(given, plan, results), output, summary)


def _print(
    placements: list[Placement],
    stand_ins: list[Placement],
    plan: Plan,
    output: str,
    better: BetterOrder | None,
) -> None:
    planned_ones = (*placements, *stand_ins)
    print_answer(
        output,
        table=lambda is_wide: _print_tables(placements, stand_ins, plan, better, is_wide=is_wide),
        document=lambda: plan_tree(placements, stand_ins, plan.before, better),
        rows=lambda: plan_rows(planned_ones),
        names=lambda: (pod_name(each.pod, each.stands_for) for each in planned_ones),
        columns=PLAN_COLUMNS,
    )


def _print_tables(
    placements: list[Placement],
    stand_ins: list[Placement],
    plan: Plan,
    better: BetterOrder | None,
    *,
    is_wide: bool,
) -> None:
    if not placements and not stand_ins:
        echo(nothing_text(plan))
    if placements:
        _print_table(placements, is_wide=is_wide)
        _print_rest(placements, plan)
        if better is not None:
            echo(printable(_order_text(better, len(placements))))
    if placements and stand_ins:
        echo("")
    if stand_ins:
        _print_table(stand_ins, NO_POD, is_wide=is_wide)
        _print_stand_ins(stand_ins, plan, is_after_pods=bool(placements))


# --- the table ----------------------------------------------------------------------------


def _print_table(placements: list[Placement], title: str = "POD", *, is_wide: bool) -> None:
    columns = WIDE if is_wide else SHORT
    rows = (row for each in placements for row in _rows(each, is_wide=is_wide))
    print_table((title, *columns[1:]), rows, is_wide=is_wide)


def _rows(placement: Placement, *, is_wide: bool) -> Iterator[Row]:
    name = placement.stands_for or placement.pod
    first: tuple[str | Cell, ...] = (name, placement.node or Cell(_node(placement), "red"))
    width = len(WIDE if is_wide else SHORT) - len(first)
    rows = list(_wide_rows(placement) if is_wide else _short_rows(placement))
    for cells in rows or [("",) * width]:
        yield *first, *cells
        first = (SAME, SAME)


def _node(placement: Placement) -> str:
    return placement.node or (UNKNOWN if placement.unknown else NO_NODE)


def _short_rows(placement: Placement) -> Iterator[tuple[str, ...]]:
    for granted in placement.requests:
        resource = placement.extended_resources.get(granted.request)
        yield resource or granted.request, _devices(granted)
    for resource, amount in placement.plugin_resources.items():
        yield resource, f"{amount} from the node's device plugin"


def _wide_rows(placement: Placement) -> Iterator[tuple[str, ...]]:
    claim = ""
    for granted in placement.requests:
        names = (SAME if granted.claim == claim else granted.claim, granted.request)
        claim = granted.claim
        for given in granted.devices:
            device = f"{given.driver}/{given.pool}/{given.device}"
            if given.admin_access:
                device += " (admin access)"
            yield *names, device, given.share_id or "", _amounts(given)
            names = (SAME, SAME)
    for resource, amount in placement.plugin_resources.items():
        yield "", resource, f"{amount} from the node's device plugin", "", ""


def _devices(granted: GrantedRequest) -> str:
    """Return a short text for the devices of a request, grouped by pool."""
    return by_pool(
        (
            f"{each.driver}/{each.pool}",
            f"{each.device} ({_amounts(each)})" if each.consumed else each.device,
        )
        for each in granted.devices
    )


def _amounts(given: GrantedDevice) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in given.consumed.items())


def _print_rest(placements: list[Placement], plan: Plan) -> None:
    """Print what does not fit into the table: reasons and the summary."""
    pending = _print_reasons(placements)
    placed = len(placements) - pending
    if placed and plan.assumption:
        echo(f"\n{printable(plan.assumption)}")
    text = f"{counted(placed, 'pod')} of {len(placements)} placed{_nodes(placements, plan)}"
    if unknown := sum(each.unknown for each in placements):
        more = f", {unknown:,} unknown; moor explain tells what could not be read"
    else:
        more = "; moor explain tells why the others are not" if pending else ""
    _print_summary(text, plan, more)


def _print_stand_ins(stand_ins: list[Placement], plan: Plan, *, is_after_pods: bool) -> None:
    """Print the same about claims and templates that no pod uses."""
    pending = _print_reasons(stand_ins)
    text = stand_ins_text(stand_ins, is_after_pods=is_after_pods)
    first = next((each.stands_for for each in stand_ins if each.node is None), None)
    _print_summary(text, plan, f"; moor explain {first} tells why it would not" if pending else "")


def _print_reasons(placements: list[Placement]) -> int:
    """Print what each waits for, and why some get no node; return how many do."""
    for each in placements:
        if each.waits_for:
            name = each.stands_for or each.pod
            echo(f"\n{name} is bound once its devices are: {', '.join(each.waits_for)}")
    pending = [each for each in placements if each.node is None]
    for each in pending:
        name, why = each.stands_for or each.pod, each.message or each.reason
        gets = "would get" if each.stands_for else "gets"
        says = "is not known to get a node" if each.unknown else f"{gets} no node"
        echo(f"\n{printable(name)} {says}: {printable(why)}")
        for text in each.written:
            echo(printable(f"  (Kubernetes writes {text})"))
    return len(pending)


def _print_summary(text: str, plan: Plan, more: str) -> None:
    if more and not plan.before.nodes and plan.before.unread.knows("Node"):
        more = ": no nodes are given; --profile adds machines, --on or --live a cluster"
    echo(f"\n{printable(text)}{printable(more)}")


def _order_text(better: BetterOrder, total: int) -> str:
    """Return a short form of an order: consecutive pods of one owner are named together."""
    runs = [
        [name for name, _ in run]
        for _, run in groupby(zip(better.arrival, better.owners, strict=True), itemgetter(1))
    ]
    shown = [
        ", ".join(run) if len(run) < ALIKE_MIN else f"{run[0]} to {run[-1]} ({len(run)} pods)"
        for run in runs[:RUNS_MAX]
    ]
    if len(runs) > RUNS_MAX:
        shown.append("…")
    count = f"all {total} pods" if better.placed == total else f"{better.placed} pods"
    return f"the order of arrival decides: {count} would get a node in the order {', '.join(shown)}"


def _nodes(placements: Iterable[Placement], plan: Plan) -> str:
    used = {each.node for each in placements if each.node}
    if not plan.before.unread.knows("Node"):
        return f" on {counted(len(used), 'node')}" if used else ""
    return f" on {len(used)} of {counted(len(plan.before.nodes), 'node')}"


def planned(given: ClusterInput, unused: Sequence[Unused] = ()) -> Plan:
    """Return the plan for the input of a command, with claims and templates that no pod uses."""
    try:
        with Progress("pods planned") as progress:
            limit = EvaluationLimit(time.monotonic)
            found = plan(
                given.everything, given.context, unused=unused, progress=progress, limit=limit
            )
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None
    for concern in found.concerns:
        warn(str(concern))
    return found
