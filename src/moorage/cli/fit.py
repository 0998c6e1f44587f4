"""`moor fit`: how many more replicas fit, where, and what stops the next one?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from moorage.api.apps import DaemonSet
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, manifest_cluster_options
from moorage.cli.command_classes import option_with_default
from moorage.cli.errors import DOES_NOT_FIT, FITS
from moorage.cli.object_argument import objects_of, subject_argument
from moorage.cli.output import (
    Progress,
    Row,
    output_option,
    print_answer,
    print_table,
    warn,
)
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, printable
from moorage.insight.errors import TooManyPodsError
from moorage.insight.fit import (
    REPLICAS_MAX,
    Fit,
    Leftover,
    Lever,
    Limit,
    NodeReplicas,
    Subject,
    fit,
)
from moorage.insight.messages import Concern, counted, listed, natural_order, titled
from moorage.insight.object_names import find_subject, kubectl_name, only_subject
from moorage.insight.plan.placements import Placement
from moorage.insight.rows import FIT_COLUMNS, fit_rows

REPLICAS_TRIED_MAX = 100_000
LIMITS_SHOWN_MAX = 8
APART_SHOWN_MAX = 4
FUTILE_SHOWN_MAX = 3

SUMMARY = ("REPLICAS", "NODES", "WHY NO MORE")
PER_NODE = ("NODE", "REPLICAS", "DEVICES", "WHY NO MORE")


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 at least one replica fits (with --replicas, all of them), 1 "
    "otherwise, 2 usage error or no such object, 3 an input could not be read or has no "
    "objects.",
)
@subject_argument
@click.option(
    "--replicas",
    type=click.IntRange(1, REPLICAS_TRIED_MAX),
    metavar="N",
    help="Check whether this many replicas fit, and stop there.",
)
@option_with_default(
    "--max",
    "replicas_max",
    type=click.IntRange(1, REPLICAS_TRIED_MAX),
    default=REPLICAS_MAX,
    metavar="N",
    help="Stop after this many replicas.",
)
@click.option("--per-node", is_flag=True, help="Print one line per node, with its devices.")
@output_option(wide="names all nodes and devices", names="the nodes that take replicas")
@manifest_cluster_options
@scheduler_config_option
def command(
    given: ClusterInput,
    subject: str | None,
    replicas: int | None,
    replicas_max: int,
    per_node: bool,
    output: str,
) -> None:
    """Count how many more replicas fit, where, and what stops the next one.

    [KIND/NAME] is a pod, an object that creates pods (deployment/train), a claim or a template;
    it may be omitted if -f contains only one. A claim or a template stands for a pod that only
    uses it. All other pods are planned first. Then the command schedules one replica after another
    until none fits. Replicas that the manifests or the cluster already ask for, and that have no
    node yet, are the first of these: "8 replicas fit (2 wanted): 6 more".

    It prints the limit of each node, the devices that remain free and why they cannot be
    combined, and the changes that would let more replicas fit, each of which has been tried.

    \b
    moor fit -f training.yaml --profile dgx-h100x4
    moor fit deployment/train --on cluster.yaml --per-node
    moor fit template/gpus --on cluster.yaml --replicas 8
    """
    chosen = _chosen(given, subject)
    found = _fitted(given, chosen, replicas or replicas_max)
    _print(found, replicas, output, per_node=per_node)
    sys.exit(given.exit_status(FITS if found.total >= (replicas or 1) else DOES_NOT_FIT))


def _fitted(given: ClusterInput, subject: Subject, replicas_max: int) -> Fit:
    try:
        with Progress("replicas placed") as progress:
            found = fit(
                given.everything,
                subject,
                given.context,
                replicas_max=replicas_max,
                progress=progress,
            )
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None
    if isinstance(found, Concern):
        raise click.UsageError(str(found))
    for concern in found.concerns:
        warn(str(concern))
    return found.fit


# --- the subject --------------------------------------------------------------------------


def _chosen(given: ClusterInput, text: str | None) -> Subject:
    with objects_of(given):
        found = (
            only_subject(given.manifests, given.everything)
            if text is None
            else find_subject(given.everything, text, namespace=given.namespace)
        )
    if isinstance(found, DaemonSet):
        raise click.UsageError(
            f"{titled(found)} has one pod on each node; moor plan says which nodes get one"
        )
    return found


# --- printing -----------------------------------------------------------------------------


def _print(found: Fit, replicas: int | None, output: str, *, per_node: bool) -> None:
    print_answer(
        output,
        table=lambda is_wide: _print_text(found, replicas, is_wide=is_wide, per_node=per_node),
        document=lambda: msgspec.to_builtins(found),
        rows=lambda: fit_rows(found),
        names=lambda: (kubectl_name("node", place.node) for place in found.places),
        columns=FIT_COLUMNS,
    )


def _print_text(found: Fit, replicas: int | None, *, is_wide: bool, per_node: bool) -> None:
    echo(printable(_headline(found, replicas)))
    for note in found.notes:
        echo(printable(f"  {note}"))
    if per_node:
        echo("")
        print_table(PER_NODE, _node_rows(found, is_wide=is_wide), is_wide=is_wide)
    elif found.limits or found.places:
        echo("")
        print_table(SUMMARY, _limit_rows(found, is_wide=is_wide), is_wide=True)
    for block in (_supply_lines(found), _leftover_lines(found), _lever_lines(found)):
        lines = list(block)
        if lines:
            echo("")
        for line in lines:
            echo(printable(line))


def _headline(found: Fit, replicas: int | None) -> str:
    on = f", {found.where}" if found.places else ""
    if replicas is not None:
        if found.total >= replicas:
            fit = "fits" if replicas == 1 else "fit"
            return f"{found.subject}: {counted(replicas, 'replica')} {fit}{on}"
        fit = "fits" if found.total == 1 else "fit"
        return f"{found.subject}: {found.total:,} of {counted(replicas, 'replica')} {fit}{on}"
    maybe = ", and maybe more: --max" if found.is_more else ""
    return f"{found.headline}{on}{maybe}"


def _limit_rows(found: Fit, *, is_wide: bool) -> Iterator[Row]:
    if found.is_more:
        names = [place.node for place in found.places]
        yield found.shares(names), _nodes(names, is_wide=is_wide), "no more were tried"
        return
    shown = found.limits if is_wide else found.limits[:LIMITS_SHOWN_MAX]
    for limit in shown:
        nodes = _nodes(limit.nodes, is_wide=is_wide) if limit.nodes else "all"
        yield found.shares(limit.nodes), nodes, str(limit)
    rest = found.limits[len(shown) :]
    if rest:
        names = [node for limit in rest for node in limit.nodes]
        more = f"{len(rest)} more limits; -o wide shows them"
        yield found.shares(names), counted(len(names), "node"), more


def _nodes(names: Any, *, is_wide: bool) -> str:
    ordered = sorted(names, key=natural_order)
    return ", ".join(ordered) if is_wide else listed(ordered)


def _node_rows(found: Fit, *, is_wide: bool) -> Iterator[Row]:
    places = {place.node: place for place in found.places}
    why: dict[str, Limit] = {node: limit for limit in found.limits for node in limit.nodes}
    for node in sorted({*places, *why}, key=natural_order):
        place = places.get(node, NodeReplicas(node, 0, ()))
        limit = str(why[node]) if node in why else ""
        yield node, str(place.replicas), _devices(place, is_wide=is_wide), limit


def _devices(place: NodeReplicas, *, is_wide: bool) -> str:
    """Return the devices of a node's replicas, grouped by replica."""
    texts = [text for each in place.placements if (text := _of_replica(each, is_wide=is_wide))]
    return " | ".join(texts)


def _of_replica(placement: Placement, *, is_wide: bool) -> str:
    return ",".join(
        f"{given.driver}/{given.pool}/{given.device}" if is_wide else given.device
        for granted in placement.requests
        for given in granted.devices
    )


def _supply_lines(found: Fit) -> Iterator[str]:
    for each in found.supplies:
        wanted = f"{each.wanted} wanted by each replica, " if each.is_countable else ""
        there = counted(each.matching, "device")
        yield f"request {each.request}: {wanted}{each.free:,} of {there} free"
    if found.bound is not None:
        yield (
            f"  enough for {counted(found.bound, 'replica')} if nothing but their number mattered"
        )


def _leftover_lines(found: Fit) -> Iterator[str]:
    left = [each for each in found.leftovers if each.free]
    for each in left:
        yield from _of_leftover(each)
    if left and found.combined:
        more = counted(found.combined, "more replica")
        yield f"together they would do for {more}, if they could be combined"


def _of_leftover(leftover: Leftover) -> Iterator[str]:
    yield (
        f"left over for request {leftover.request}: {counted(leftover.free, 'device')}, "
        f"{leftover.percent:g} % of {leftover.matching:,}, free and of no use to a replica"
    )
    for apart in leftover.apart[:APART_SHOWN_MAX]:
        where = counted(len(apart.nodes), "node")
        yield f"  {apart.devices:,} on {where}: {apart.why}"
    more = leftover.apart[APART_SHOWN_MAX:]
    if more:
        yield f"  {sum(each.devices for each in more):,} for {len(more)} more reasons"


def _lever_lines(found: Fit) -> Iterator[str]:
    if found.levers:
        yield "more would fit, each was tried:"
    for lever in found.levers:
        yield f"  {_lever(lever)}"
    if found.futile:
        yield "no more would fit, each was tried:"
    for lever in found.futile[:FUTILE_SHOWN_MAX]:
        yield f"  {_lever(lever)}"


def _lever(lever: Lever) -> str:
    if lever.next is None:
        return f"{lever.text}: {counted(lever.total, 'replica')} and maybe more"
    return f"{lever.text}: {counted(lever.total, 'replica')}, then {lever.next}"
