"""`moor scheduler`: the scheduler alone, against any cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from moorage.api.gates import Gates, Preset
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand
from moorage.cli.gate_options import GATES, explain_option, gate_options
from moorage.cli.program_options import (
    SECTIONS,
    access_of,
    lead_of,
    program_options,
    run_program,
    status_place,
)
from moorage.cli.scheduler_file import scheduler_config, take_from_file
from moorage.cli.terminal import say

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.cluster.leader_process import LeaderLease
    from moorage.cluster.status_server import ListenAddress
    from moorage.scheduler.live import SchedulerConfig


@click.command(
    name="scheduler",
    cls=SectionedCommand,
    sections=(
        SECTIONS[0],
        (
            "What it does",
            ("config", "explain_in", *GATES),
        ),
        *(each for each in SECTIONS[1:] if each[0] != "What it does"),
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 1 the lease was lost, 2 usage error, 3 the cluster "
    "cannot be reached or used, or the configuration cannot be read.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with a KubeSchedulerConfiguration.",
)
@explain_option
@program_options(lease="kube-scheduler", metrics="127.0.0.1:10259")
@gate_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    config: Path | None,
    gates: Gates,
    place: ListenAddress | None,
    **given: Any,
) -> None:
    """Run the scheduler until interrupted.

    Schedules the pods that name it in `schedulerName` (default-scheduler, unless the
    configuration sets another name) and allocates the devices of their claims. An unschedulable
    pod gets Kubernetes' message, followed by the cause that Moorage found and the first fix.
    For tools that compare the message with Kubernetes', use --explain-in event.

    The scheduler obeys everything in --config, or exits and names the place and the reason.
    Options of the command line take precedence over the file.

    \b
    moor scheduler --kubeconfig ~/.kube/config
    moor scheduler --config scheduler.yaml --leader-elect=false
    moor scheduler --explain-in event
    """
    place = status_place(place, given)
    settings, file = scheduler_config(config, gates)
    settings = explaining(settings, given["explain_in"], ctx.params["gates_preset"])
    take_from_file(ctx, given, file)
    lead, access = lead_of(given), access_of(given)
    run_program(
        _run(access, gates, settings, lead, place),
        verbosity=given["verbosity"],
        server=access.server,
    )


def explaining(config: SchedulerConfig, chosen: str | None, preset: str) -> SchedulerConfig:
    """Return a configuration that explains where the option says, or else where the preset does.

    Users of Kubernetes' gates compare with Kubernetes, and want its messages unchanged. If
    conditions have more than Kubernetes' messages, those of composite groups do, too.
    """
    from moorage.scheduler.live import ExplainIn

    explain_in = ExplainIn.EVENT if preset == Preset.KUBERNETES else ExplainIn.CONDITION
    if chosen is not None:
        explain_in = ExplainIn(chosen)
    is_more = explain_in is ExplainIn.CONDITION
    return replace(config, explain_in=explain_in, reports_composites=is_more)


async def _run(
    access: RestConfig,
    gates: Gates,
    config: SchedulerConfig,
    lead: LeaderLease | None,
    place: ListenAddress | None,
) -> None:
    from moorage.client.client_factory import http_client
    from moorage.cluster.leader_process import check_connection, run_as_leader
    from moorage.cluster.programs import SCHEDULER_AGENT, ProgramContext, SchedulerProgram
    from moorage.insight.answer.summary import PendingSummary

    context = ProgramContext(gates=gates)
    async with http_client(access, manager=SCHEDULER_AGENT) as client:
        await check_connection(client)
        explain = PendingSummary(context.clock.monotonic, gates, extensions=config.extensions)
        program = SchedulerProgram(client, context, config=config, explain=explain)
        await run_as_leader(
            program,
            client,
            context,
            lead=lead,
            place=place,
            tell=lambda text: say(text, err=True),
            working=f"scheduling at {access.server}",
        )
