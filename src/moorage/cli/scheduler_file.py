"""The file with a KubeSchedulerConfiguration, for programs that run and for commands that plan.

Everything in the file is obeyed, or the command exits and names the place and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from msgspec.structs import replace

from moorage.api.gates import Gates
from moorage.api.scheduler_config import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    duration_ns,
)
from moorage.cli.cluster_options import ClusterInput
from moorage.cli.errors import fail

if TYPE_CHECKING:
    from moorage.scheduler.live import SchedulerConfig

F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
UNLIMITED = "requests are not limited: only a negative qps, for no limit, can be set"
NO_PROFILES = "there are no profiles of Go: only false can be set"
ALONE = "the scheduler of this control plane runs alone, in the process of its API server"
_FIELDS = {
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}


# --- commands that plan ---------------------------------------------------------------------------


def scheduler_config_option(function: F) -> F:
    """Add --scheduler-config to a command that plans, which gets the file in its sources."""

    @wraps(function)
    def with_scheduler(*args: Any, scheduler_file: Path | None, **kwargs: Any) -> Any:
        if scheduler_file is not None:
            name = "given" if "given" in kwargs else "sources"
            before = kwargs[name]
            from moorage.sources.scheduler_file import read_scheduler_file

            file, faults = read_scheduler_file(scheduler_file, before.context.gates)
            if file is None:
                fail("\n".join(f"--scheduler-config: {fault}" for fault in faults))
            context = before.context._replace(scheduler=file)
            is_read = isinstance(before, ClusterInput)
            kwargs[name] = (
                replace(before, context=context) if is_read else before._replace(context=context)
            )
        return function(*args, **kwargs)

    return click.option(
        "--scheduler-config",
        "scheduler_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File with a KubeSchedulerConfiguration: plan as that scheduler would.",
    )(with_scheduler)  # type: ignore[return-value]


# --- programs that run ----------------------------------------------------------------------------


def scheduler_config(
    path: Path | None, gates: Gates, *, is_alone: bool = False
) -> tuple[SchedulerConfig, KubeSchedulerConfiguration]:
    """Return the configuration in a file, or the default one; exit if it cannot be obeyed."""
    from moorage.scheduler.live import read_config

    if path is None:
        file = KubeSchedulerConfiguration()
        return read_config(file, gates), file
    from moorage.sources.scheduler_file import read_scheduler_file

    found, faults = read_scheduler_file(path, gates)
    if found is not None:
        faults = [f"{path}: {text}" for text in _refused(found, is_alone=is_alone)]
    if found is None or faults:
        fail("\n".join(f"--config: {fault}" for fault in faults))
    return read_config(found, gates), found


def _refused(file: KubeSchedulerConfiguration, *, is_alone: bool) -> Iterator[str]:
    """Yield the settings of the program in a file that cannot be obeyed."""
    from moorage.validation.scheduler_configuration import number_of

    connection = file.client_connection or ClientConnectionConfiguration()
    if number_of(connection.qps) > 0:
        yield f"clientConnection.qps: {UNLIMITED}"
    if connection.burst:
        yield f"clientConnection.burst: {UNLIMITED}"
    for name, text in (
        ("acceptContentTypes", connection.accept_content_types),
        ("contentType", connection.content_type),
    ):
        if text not in ("", JSON):
            yield f"clientConnection.{name}: only {JSON} is supported"
    if file.enable_profiling:
        yield f"enableProfiling: {NO_PROFILES}"
    if file.enable_contention_profiling:
        yield f"enableContentionProfiling: {NO_PROFILES}"
    if is_alone:
        election = file.leader_election or LeaderElectionConfiguration()
        if election not in (LeaderElectionConfiguration(), NOT_ELECTED):
            yield f"leaderElection: {ALONE}"
        if connection.kubeconfig:
            yield f"clientConnection.kubeconfig: {ALONE}"


NOT_ELECTED = LeaderElectionConfiguration(leader_elect=False)


def take_from_file(
    ctx: click.Context, given: dict[str, Any], file: KubeSchedulerConfiguration
) -> None:
    """Use settings of the file for options that the command line does not set."""

    def is_set(name: str) -> bool:
        return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE

    election = file.leader_election or LeaderElectionConfiguration()
    if election.leader_elect is not None and not is_set("leader_elect"):
        given["leader_elect"] = election.leader_elect
    for option, field in _FIELDS.items():
        value = getattr(election, field)
        if value and not is_set(option):
            is_name = "resource" in field
            given[option] = value if is_name else duration_ns(value) / 1e9
    connection = file.client_connection or ClientConnectionConfiguration()
    if connection.kubeconfig and not is_set("kubeconfig"):
        given["kubeconfig"] = connection.kubeconfig
