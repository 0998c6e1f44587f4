"""`moor scheduler`: the scheduler alone, against any cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from mooring.api.gates import Gates, Preset
from mooring.cli import CONTEXT
from mooring.cli.command_classes import SectionedCommand
from mooring.cli.errors import fail
from mooring.cli.gate_options import GATES, explain_option, gate_options
from mooring.cli.program_options import (
    SECTIONS,
    access_of,
    lead_of,
    program_options,
    run_program,
    status_place,
)
from mooring.cli.terminal import say

if TYPE_CHECKING:
    from mooring.client.client_factory import RestConfig
    from mooring.cluster.leader_process import LeaderLease
    from mooring.cluster.status_server import ListenAddress
    from mooring.scheduler.live import ExplainIn, SchedulerConfig


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
    pod gets Kubernetes' message, followed by the cause that Mooring found and the first fix.
    For tools that compare the message with Kubernetes', use --explain-in event.

    \b
    moor scheduler --kubeconfig ~/.kube/config
    moor scheduler --config scheduler.yaml --leader-elect=false
    moor scheduler --explain-in event
    """
    place = status_place(place, given)
    explain_in = explain_in_of(given["explain_in"], ctx.params["gates_preset"])
    settings = replace(scheduler_config(config, gates), explain_in=explain_in)
    lead, access = lead_of(given), access_of(given)
    run_program(
        _run(access, gates, settings, lead, place),
        verbosity=given["verbosity"],
        server=access.server,
    )


def explain_in_of(chosen: str | None, preset: str) -> ExplainIn:
    """Return where explanations go: where it was said, or else where the preset has them.

    Whoever wants Kubernetes' gates compares with Kubernetes, and wants its messages as they are.
    """
    from mooring.scheduler.live import ExplainIn

    if chosen is not None:
        return ExplainIn(chosen)
    return ExplainIn.EVENT if preset == Preset.KUBERNETES else ExplainIn.CONDITION


def scheduler_config(path: Path | None, gates: Gates) -> SchedulerConfig:
    """Return the configuration in a file, or the default one; end if it cannot be read."""
    from mooring.scheduler.features import Features
    from mooring.scheduler.live import SchedulerConfig

    if path is None:
        return SchedulerConfig(features=Features.of(gates))
    found, faults = read_scheduler_file(path, gates)
    if found is None:
        fail("\n".join(f"--config: {fault}" for fault in faults))
    return found


def read_scheduler_file(path: Path, gates: Gates) -> tuple[SchedulerConfig | None, list[str]]:
    """Return the configuration in a file, or None and everything that is wrong with it."""
    from mooring.api.documents import KUBERNETES
    from mooring.api.errors import ApiError
    from mooring.api.object_reader import read_document
    from mooring.api.scheduler_config import KubeSchedulerConfiguration
    from mooring.cli.inputs import InputSource, UnreadableError
    from mooring.scheduler.live import read_config
    from mooring.validation.scheduler_configuration import (
        default_scheduler_configuration,
        validate_scheduler_configuration,
    )

    try:
        documents = list(InputSource(str(path), path).documents(schema=KUBERNETES))
        if len(documents) != 1:
            return None, [f"{path}: must hold exactly one KubeSchedulerConfiguration"]
        reading = read_document(documents[0], gates=gates)
    except UnreadableError as error:
        return None, [str(error)]
    except ApiError as error:
        return None, [f"{path}: {error}"]
    if not isinstance(reading.value, KubeSchedulerConfiguration):
        return None, [f"{path}: expected a KubeSchedulerConfiguration, not {reading.kind.name}"]
    faults = [f"{path}: {remark.message}" for remark in (*reading.problems, *reading.remarks)]
    value = default_scheduler_configuration(reading.value, gates=gates)
    faults += [f"{path}: {error}" for error in validate_scheduler_configuration(value, gates=gates)]
    return (None, faults) if faults else (read_config(reading.value, gates), [])


async def _run(
    access: RestConfig,
    gates: Gates,
    config: SchedulerConfig,
    lead: LeaderLease | None,
    place: ListenAddress | None,
) -> None:
    from mooring.client.client_factory import http_client
    from mooring.cluster.leader_process import check_connection, run_as_leader
    from mooring.cluster.programs import SCHEDULER_AGENT, ProgramContext, SchedulerProgram
    from mooring.insight.answer.summary import PendingSummary

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
