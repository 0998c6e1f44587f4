"""The options that choose feature gates, and options whose meaning depends on the gates."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from moorage.api.errors import GateError
from moorage.api.gates import Gate, Gates, Preset
from moorage.cli.command_classes import add_options, option_with_default
from moorage.cli.terminal import echo

F = TypeVar("F", bound=Callable[..., Any])

GATES = ("feature_gates", "gates_preset", "emulated_version")  # the parameters of the options
EXPLAIN_IN = ("condition", "event", "none")


def numa_node_option(text: str) -> Callable[[F], F]:
    """Return the option --numa-node with this help; the command gets `form_name`."""
    return option_with_default(
        "--numa-node",
        "form_name",
        type=click.Choice(["scalar", "list"]),
        default="scalar",
        help=text,
    )


def check_numa_form(form_name: str, gates: Gates) -> None:
    """Reject `--numa-node list` if an API server would reject the resulting slices."""
    from moorage.hardware.attributes import NumaNodeForm, numa_form_problem

    if problem := numa_form_problem(NumaNodeForm[form_name.upper()], gates):
        remedy = f"--feature-gates {Gate.DRA_LIST_TYPE_ATTRIBUTES}=true"
        raise click.UsageError(f"--numa-node list: {problem}; use --numa-node scalar, or {remedy}")


def gate_options(function: F) -> F:
    """Add the options to a command; it gets a `gates` argument."""

    @wraps(function)
    def with_gates(
        *args: Any, feature_gates: str, gates_preset: str, emulated_version: str, **kwargs: Any
    ) -> Any:
        try:
            gates = Gates.parse(
                feature_gates, preset=gates_preset, emulated_version=emulated_version
            )
        except GateError as error:
            raise click.UsageError(str(error)) from None
        for note in gates.notes():
            echo(f"note: {note}", err=True)
        return function(*args, gates=gates, **kwargs)

    options = [
        click.option(
            "--feature-gates",
            default="",
            metavar="GATE=BOOL,…",
            help="Feature gates to turn on or off.",
        ),
        option_with_default(
            "--gates-preset",
            type=click.Choice([preset.value for preset in Preset]),
            default=Preset.MOORAGE.value,
            help="Defaults of the feature gates: all on, or those of Kubernetes 1.37.",
        ),
        option_with_default(
            "--emulated-version",
            default="1.37",
            metavar="1.34…1.37",
            help="Emulate the feature gates of this Kubernetes version.",
        ),
    ]
    return add_options(with_gates, options)  # type: ignore[return-value]


def explain_option(function: F) -> F:
    """Add the option --explain-in."""
    return click.option(
        "--explain-in",
        type=click.Choice(EXPLAIN_IN),
        default=None,
        show_default="condition; with --gates-preset kubernetes-1.37 event",
        help="Where Moorage reports why a pod is unschedulable: after Kubernetes' message in "
        "the pod's condition, in a separate SchedulingExplained event (the condition is "
        "then exactly Kubernetes'), or nowhere.",
    )(function)
