"""The options of programs that simulate nodes: hardware profiles, and how drivers publish them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.gate_options import numa_node_option

if TYPE_CHECKING:
    from moorage.hardware import Fleet

F = TypeVar("F", bound=Callable[..., Any])


def simulated_nodes_options(
    profile: str = "Hardware profile to simulate; see `moor profiles`. May be repeated.",
    numa_node: str = "How the drivers of simulated machines publish numaNode.",
) -> Callable[[F], F]:
    """Add --profile and --numa-node with these help texts; see `read_fleets`."""
    option = click.option(
        "--profile", "profiles", multiple=True, metavar="NAME[=COUNT]", help=profile
    )
    return lambda function: option(numa_node_option(numa_node)(function))


def read_fleets(profiles: Sequence[str], form_name: str) -> list[Fleet]:
    """Return the machines of --profile, or raise UsageError for a name that is not a profile."""
    from moorage.cluster.simulation import fleets_of
    from moorage.hardware import NumaNodeForm, ProfileError

    try:
        return fleets_of(profiles, NumaNodeForm[form_name.upper()])
    except ProfileError as error:
        raise click.UsageError(f"--profile: {error}") from None
