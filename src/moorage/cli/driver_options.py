"""The options of the drivers that come with Moorage, the same wherever one is named."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.command_classes import add_options, option_with_default
from moorage.cli.gate_options import numa_node_option
from moorage.drivers.catalogue import (
    BY_NODE,
    BY_SOCKET,
    CATALOGUE,
    DYNAMIC,
    GROUPED,
    INDIVIDUAL,
    STATIC,
    DriverOptions,
    OptionError,
    drivers_of,
)
from moorage.hardware.attributes import NumaNodeForm

if TYPE_CHECKING:
    from moorage.driver.driver import Driver

F = TypeVar("F", bound=Callable[..., Any])

FOLDER = click.Path(exists=True, file_okay=False)
_NAME = click.Choice(list(CATALOGUE))
_OPTIONS = (
    click.option(
        "--node-name",
        metavar="NAME",
        envvar="NODE_NAME",
        help="Node that the devices are on. By default, the hostname.",
    ),
    option_with_default(
        "--sysfs",
        type=FOLDER,
        default="/sys",
        metavar="DIR",
        help="Root of sysfs; point it elsewhere to read another machine.",
    ),
    option_with_default(
        "--proc",
        type=FOLDER,
        default="/proc",
        metavar="DIR",
        help="Root of procfs.",
    ),
    numa_node_option(
        "How PCI devices publish numaNode; list needs the DRAListTypeAttributes feature gate."
    ),
    option_with_default(
        "--cpu-device-mode",
        type=click.Choice([GROUPED, INDIVIDUAL]),
        default=GROUPED,
        help="cpu: publish one device per group with consumable CPUs, or one device per CPU.",
    ),
    option_with_default(
        "--group-by",
        type=click.Choice([BY_NODE, BY_SOCKET]),
        default=BY_NODE,
        help="cpu: how CPUs are grouped.",
    ),
    click.option(
        "--reserved-cpus",
        default="",
        metavar="LIST",
        help="cpu: reserved CPUs that are never allocated, such as 0-1,32.",
    ),
    click.option(
        "--sriov/--no-sriov",
        "has_sriov",
        default=True,
        help="net: publish virtual functions instead of their physical NICs.",
    ),
    option_with_default(
        "--mig",
        type=click.Choice([STATIC, DYNAMIC]),
        default=STATIC,
        help="nvidia: publish existing MIG partitions, or create them on demand.",
    ),
    click.option(
        "--ignored-xids",
        default="",
        metavar="N,…",
        help="nvidia: additional XID errors that do not make a GPU unhealthy.",
    ),
    click.option(
        "--profile", default="", metavar="BOARD", help="sim: hardware profile to simulate."
    ),
)


def one_driver(function: F) -> F:
    """Add the name of a driver and its options; the function gets `name` and `options`."""
    return click.argument("name", type=_NAME, metavar="NAME")(_driver_options(function))


def several_drivers(function: F) -> F:
    """Add names of drivers and their options; the function gets `names` and `options`."""
    names = click.argument("names", type=_NAME, nargs=-1, required=True, metavar="NAME…")
    return names(_driver_options(function))


def chosen_drivers(names: Iterable[str], options: DriverOptions) -> list[Driver]:
    """Return the drivers behind names; a wrong option is a usage error."""
    try:
        return [driver for name in names for driver in drivers_of(name, options)]
    except OptionError as error:
        raise click.UsageError(str(error)) from None


def _driver_options(function: F) -> F:
    @wraps(function)
    def with_options(
        node_name: str | None,
        form_name: str,
        ignored_xids: str,
        **others: Any,
    ) -> Any:
        own = {
            field: others.pop(field) for field in DriverOptions.__struct_fields__ if field in others
        }
        options = DriverOptions(
            node_name=node_name or socket.gethostname().lower(),
            form=NumaNodeForm[form_name.upper()],
            ignored_xids=_numbers(ignored_xids),
            **own,
        )
        return function(options=options, **others)

    return add_options(with_options, _OPTIONS)  # type: ignore[return-value]


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise click.BadParameter(
            f"{text[:64]!r} is not a list of numbers", param_hint="--ignored-xids"
        )
    return tuple(map(int, parts))
