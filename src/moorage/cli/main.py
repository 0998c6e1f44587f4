"""`moor`: the one command, which imports a subcommand only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from moorage import __version__
from moorage.cli import CONTEXT
from moorage.cli.command_classes import LazyGroup
from moorage.cli.errors import INTERRUPTED, UNREADABLE, fail
from moorage.cli.terminal import echo, printable, printable_message
from moorage.kit.extras import is_compiled
from moorage.kit.printable import log_in_lines
from moorage.kit.process_memory import collect_rarely, end_process, may_leave_memory
from moorage.sources.errors import UnreadableError

# The commands by what they are for, in the order in which `moor --help` lists them.
# name: summary; the module of that name defines a click command called `command`.
GROUPS = {
    "Plan and explain": {
        "plan": "Plan which node and which devices pods would get.",
        "explain": "Explain why pods get no node, and what would help.",
        "fit": "Count how many more replicas fit, where, and what stops the next.",
        "whatif": "Show what changes would do to pods and devices before you make them.",
        "simulate": "Simulate pods that arrive, wait, run and leave, in simulated time.",
    },
    "Check manifests": {
        "validate": "Validate objects as an API server would, with file and line.",
        "lint": "Find mistakes in claims, classes, slices and pods.",
        "cel": "Evaluate a CEL expression on devices: which match, and why others do not.",
        "schema": "Print JSON Schemas of all kinds, for editors.",
    },
    "Look at a cluster": {
        "devices": "List devices: who has them, and which are free.",
        "claims": "List claims: which devices they have, where, and for whom.",
        "ui": "Show a cluster as a page in the browser: devices, claims, and why pods wait.",
        "metrics": "Export metrics: free, taken and stranded devices, causes of pending pods.",
        "snapshot": "Write a cluster to one archive that all commands read.",
        "record": "Record a running cluster and its changes in one file.",
    },
    "Run a cluster on this machine": {
        "up": "Run a cluster on this machine, with its own or simulated devices.",
        "status": "Show what `moor up` runs: processes, nodes, pods, devices.",
        "kubeconfig": "Print the kubeconfig of a server.",
        "down": "Stop the cluster that `moor up` runs.",
        "reset": "Remove a cluster: its objects, credentials and containers.",
    },
    "Run one program of a cluster": {
        "server": "Run the API server, for kubectl and any Kubernetes client.",
        "scheduler": "Run the scheduler for any cluster.",
        "controllers": "Run the controllers for any cluster.",
        "control-plane": "Run API server, scheduler and controllers in one process.",
        "node": "Run pods on this machine as a node of any cluster.",
        "store": "Check, compact, back up and restore the store of a server.",
    },
    "Write and run drivers": {
        "driver": "Write, check and run DRA drivers.",
        "run": "Run a command with devices of this machine.",
    },
    "Hardware, examples and shells": {
        "profiles": "List hardware profiles, or write their nodes, slices and sysfs.",
        "examples": "List the examples of the documentation, or copy them here.",
        "completion": "Print a script that completes command lines in bash, zsh or fish.",
    },
}
COMMANDS = {name: summary for lines in GROUPS.values() for name, summary in lines.items()}


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Make errors printable that click prints itself: they quote arguments and names."""
    try:
        yield
    except NoArgsIsHelpError:
        raise  # its message is our help text, in its own layout
    except click.ClickException as error:
        error.message = printable_message(error.message)  # type: ignore[misc]
        if isinstance(error, click.BadParameter) and isinstance(error.param_hint, str):
            error.param_hint = printable(error.param_hint)
        raise


class Moor(LazyGroup):
    """The commands of `moor`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; errors quote them."""
        with _printable_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; interrupted from the keyboard, it has no answer, not even no."""
        try:
            with _printable_errors():
                return super().invoke(ctx)
        except UnreadableError as error:
            fail(str(error))  # Answers read the text of a large file again to quote it.
        except KeyboardInterrupt:
            echo("\nstopped before there was an answer", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=Moor,
    sections=GROUPS,
    prefix="moorage.cli.",
    context_settings=CONTEXT,
    epilog="Exit status: 0 yes, 1 no (invalid, does not fit), 2 usage error, "
    "3 something cannot be read or reached.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, is_asked: _show_version(ctx) if is_asked else None,
    help="Show the version and exit.",
)
def moor() -> None:
    """Kubernetes Dynamic Resource Allocation, complete, in Python.

    Commands read manifests (-f), dumps of clusters (--on), running clusters (--live) and models of
    machines (--profile). Each describes its options and has examples: moor COMMAND --help.

    \b
    moor plan -f training.yaml --profile dgx-h100     # which devices would my pods get?
    moor explain pod/train-4 --live                   # why does this pod get none?
    moor up --profile dgx-h100x2                      # a cluster with such machines
    """


def _show_version(ctx: click.Context) -> None:
    echo(f"moor {__version__}{' (compiled)' if is_compiled() else ''}")
    ctx.exit()


def main() -> None:
    """Run `moor`, also as `kubectl moor`."""
    _write_any_text()
    log_in_lines()
    collect_rarely()
    try:
        _run()
    except BrokenPipeError:
        # The reader has closed its end: there is nowhere left to write to.
        _forget_output()
        sys.exit(1)
    except OSError as error:
        # Commands report their own I/O errors; this one comes from the terminal or a pipe.
        echo(f"error: cannot write the answer: {error.strerror or error}", err=True)
        _forget_output()
        sys.exit(UNREADABLE)


def _run() -> None:
    name = os.path.basename(sys.argv[0])
    try:
        moor(prog_name="kubectl moor" if name.startswith("kubectl") else "moor")
    except SystemExit as ended:
        if isinstance(ended.code, int) and may_leave_memory():  # Its frames have what was read.
            end_process(ended.code)
        raise


def _write_any_text() -> None:
    """Write UTF-8, as kubectl does; where another encoding is asked for, escape what it lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            is_given = stream.isatty() or "PYTHONIOENCODING" in os.environ
            encoding = stream.encoding if is_given else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _forget_output() -> None:
    """Discard buffered output, so that Python does not fail on it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
