"""`moor plan`: where would pods go, and which devices would they get?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import click

from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, manifest_cluster_options
from moorage.cli.device_trees import picture_option, write_picture
from moorage.cli.errors import DOES_NOT_FIT, FITS
from moorage.cli.output import (
    REPORT_FORMATS,
    REPORTS_TEXT,
    TABLE_FORMATS,
    Cell,
    Progress,
    Row,
    by_pool,
    output_option,
    print_table,
    print_tree,
    warn,
)
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, printable
from moorage.insight.devices import usage_in
from moorage.insight.errors import TooManyPodsError
from moorage.insight.messages import counted
from moorage.insight.plan.arrival_orders import BetterOrder, better_order
from moorage.insight.plan.document import nothing_text, plan_tree, shown_placement, shown_results
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.placements import (
    GrantedDevice,
    GrantedRequest,
    Placement,
    stand_ins,
)
from moorage.insight.plan.planner import Plan, Result, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.reservation import Reservation

ALIKE_MIN = 4  # this many pods of one owner in a row are named together
RUNS_MAX = 8
SAME = " "  # a cell equal to the one above
NO_NODE = "<none>"

SHORT = ("POD", "NODE", "REQUEST", "DEVICES")
WIDE = ("POD", "NODE", "CLAIM", "REQUEST", "DEVICE", "SHARE", "CONSUMES")


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 every pod gets a node, 1 some do not or are invalid, 2 usage "
    "error, 3 an input could not be read.",
)
@output_option(
    *TABLE_FORMATS,
    *REPORT_FORMATS,
    text="Output format; wide prints a line per device, with claim, share and capacity; "
    f"{REPORTS_TEXT}.",
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

    Plans as the scheduler would, pod by pod in order of priority and age, on the nodes and
    devices of --on, --profile and -f together. Deployments, Jobs and other workloads count with
    the pods that they create, templates with the claims created from them. A claim or template
    that no pod uses is planned for a pod that requests nothing else. The command changes nothing.

    New pods are planned in the order of the files, before pods of controllers. In a real cluster
    that order is a race: if some pods get no node, the command tries other orders and reports one
    that places more.

    \b
    moor plan -f pod.yaml --profile dgx-h100x2
    moor plan -f training.yaml --on cluster.yaml -o wide --picture plan.svg
    """
    added = stand_ins(given.manifests, given.everything)
    plan = planned(given, given.everything.with_objects(added))
    about = Snapshot() if is_all else given.manifests.with_objects(added)
    chosen = shown_results(plan, about)
    placements = [shown_placement(result, plan) for result in chosen]
    if output in REPORT_FORMATS:
        _print_report(given, plan, chosen, output)
    elif placements or output in ("json", "yaml") or not given.is_unknown:
        _print(placements, plan, output, _better(given, plan, placements, output))
    if picture_file is not None:
        found = usage_in(plan.after, given.context)
        write_picture(
            plan.after,
            found,
            picture_file,
            title="Devices as planned",
            context=given.context,
            plan=plan,
        )
    fits = all(each.node for each in placements)
    sys.exit(given.exit_status(FITS if fits else DOES_NOT_FIT))


def _better(
    given: ClusterInput, plan: Plan, placements: list[Placement], output: str
) -> BetterOrder | None:
    """Return an order of arrival in which more pods get a node, if some get none."""
    if output == "name" or all(each.node for each in placements):
        return None
    return better_order(plan, given.context, shown={each.pod for each in placements})


def _print_report(given: ClusterInput, plan: Plan, chosen: Iterable[Result], output: str) -> None:
    from moorage.cli.plan_report import plan_report  # imports everything that explains
    from moorage.cli.reports import print_report

    results = list(chosen)
    placed = sum(isinstance(each, Reservation) for each in results)
    summary = f"{counted(placed, 'pod')} of {len(results)} placed"
    print_report(plan_report(given, plan, results), output, summary)


def _print(
    placements: list[Placement], plan: Plan, output: str, better: BetterOrder | None
) -> None:
    match output:
        case "json" | "yaml":
            print_tree(plan_tree(placements, len(plan.before.nodes), better), output)
        case "name":
            for each in placements:
                echo(printable(f"pod/{each.pod} node/{each.node or NO_NODE}"))
        case _ if not placements:
            echo(nothing_text(plan))
        case _:
            is_wide = output == "wide"
            rows = (row for each in placements for row in _rows(each, is_wide=is_wide))
            print_table(WIDE if is_wide else SHORT, rows, is_wide=is_wide)
            _print_rest(placements, plan)
            if better is not None:
                echo(printable(_order_text(better, len(placements))))


# --- the table ----------------------------------------------------------------------------


def _rows(placement: Placement, *, is_wide: bool) -> Iterator[Row]:
    name = placement.stands_for or placement.pod
    first: tuple[str | Cell, ...] = (name, placement.node or Cell(NO_NODE, "red"))
    width = len(WIDE if is_wide else SHORT) - len(first)
    rows = list(_wide_rows(placement) if is_wide else _short_rows(placement))
    for cells in rows or [("",) * width]:
        yield *first, *cells
        first = (SAME, SAME)


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
    for each in placements:
        if each.waits_for:
            echo(f"\n{each.pod} is bound once its devices are: {', '.join(each.waits_for)}")
    pending = [each for each in placements if each.node is None]
    for each in pending:
        name, why = each.stands_for or each.pod, each.message or each.reason
        echo(f"\n{printable(name)} gets no node: {printable(why)}")
        for text in each.written:
            echo(printable(f"  (Kubernetes writes {text})"))
    placed = len(placements) - len(pending)
    text = f"\n{counted(placed, 'pod')} of {len(placements)} placed on {_nodes(placements, plan)}"
    if pending and not plan.before.nodes:
        echo(f"{text}: no nodes are given; --profile adds machines, --on or --live a cluster")
    else:
        echo(f"{text}{'; moor explain tells why the others are not' if pending else ''}")


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
    return f"{len(used)} of {counted(len(plan.before.nodes), 'node')}"


def planned(given: ClusterInput, snapshot: Snapshot | None = None) -> Plan:
    """Return the plan for the input of a command, or for a variant of it."""
    try:
        with Progress("pods planned") as progress:
            limit = EvaluationLimit(time.monotonic)
            found = plan(
                snapshot or given.everything, given.context, progress=progress, limit=limit
            )
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None
    for concern in found.concerns:
        warn(str(concern))
    return found
