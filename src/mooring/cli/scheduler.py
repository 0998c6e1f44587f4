"""`moor scheduler`: the scheduler alone, against any cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.api.gates import Gates
from mooring.cli import CONTEXT
from mooring.cli.failing import fail
from mooring.cli.gate_options import gate_options
from mooring.cli.program_options import (
    SECTIONS,
    access_of,
    lead_of,
    program_options,
    run_program,
)
from mooring.cli.sections import SectionedCommand

if TYPE_CHECKING:
    from mooring.client.connecting import Access
    from mooring.cluster.standing import Lead
    from mooring.cluster.statuspages import Place
    from mooring.scheduler.live import Config


@click.command(
    name="scheduler",
    cls=SectionedCommand,
    sections=(
        SECTIONS[0],
        ("What it does", ("config", "feature_gates", "gates_preset", "emulated_version")),
        *(each for each in SECTIONS[1:] if each[0] != "What it does"),
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 1 the lease was lost, 2 usage, 3 the cluster cannot be "
    "reached or used, or the configuration not read.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A KubeSchedulerConfiguration.",
)
@program_options(lease="kube-scheduler", metrics="127.0.0.1:10259")
@gate_options
def command(config: Path | None, gates: Gates, place: Place | None, **given: Any) -> None:
    """Run the scheduler until it is interrupted.

    It places the pods that ask for it (`schedulerName`, default-scheduler unless the configuration
    says otherwise), with the devices of their claims. A pod without a node is told why in
    Kubernetes' words, followed by the reason that Mooring finds, and the nearest fix.

    \b
    moor scheduler --kubeconfig ~/.kube/config
    moor scheduler --config scheduler.yaml --leader-elect=false
    """
    settings = _config(config, gates)
    lead, access = lead_of(given), access_of(given)
    run_program(
        _run(access, gates, settings, lead, place),
        verbosity=given["verbosity"],
        server=access.server,
    )


def _config(path: Path | None, gates: Gates) -> Config:
    from mooring.cli.schedulerfile import read_scheduler_file
    from mooring.scheduler.features import Features
    from mooring.scheduler.live import Config

    if path is None:
        return Config(features=Features.of(gates))
    found, faults = read_scheduler_file(path, gates)
    if found is None:
        fail("\n".join(f"--config: {fault}" for fault in faults))
    return found


async def _run(
    access: Access, gates: Gates, config: Config, lead: Lead | None, place: Place | None
) -> None:
    from mooring.client.connecting import http_client
    from mooring.cluster.programs import SCHEDULER_AGENT, Scheduling, Surroundings
    from mooring.cluster.standing import reach, stand
    from mooring.insight.pending.briefly import Briefly

    around = Surroundings(gates=gates)
    async with http_client(access, manager=SCHEDULER_AGENT) as client:
        await reach(client)
        explain = Briefly(around.clock.monotonic)
        program = Scheduling(client, around, config=config, explain=explain)
        await stand(
            program,
            client,
            around,
            lead=lead,
            place=place,
            tell=lambda text: click.echo(text, err=True),
            working=f"scheduling at {access.server}",
        )
