"""`moor`: the one command, which loads a subcommand's module only when it is asked for."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from mooring import __version__
from mooring.cli import CONTEXT
from mooring.cli.command_classes import LazyGroup
from mooring.cli.errors import INTERRUPTED, UNREADABLE

# name: what it is for; the module of the same name holds a click command called `command`.
COMMANDS = {
    "cel": "Try an expression on devices: which match, and why others do not.",
    "controllers": "Run the controllers against any cluster.",
    "claims": "List claims: what they have, where, and for whom.",
    "devices": "List devices: who has them, and which are free.",
    "down": "Stop the cluster that `moor up` runs in a folder.",
    "driver": "Write, try and run drivers for devices.",
    "explain": "Say why pods get no node, and what would help.",
    "fit": "Say how many more replicas fit, where, and what stops the next.",
    "kubeconfig": "Print how clients reach the server of a folder.",
    "lint": "Find what is odd about claims, classes, slices and pods.",
    "node": "Run pods on this machine: the agent of a node, against any cluster.",
    "plan": "Say which node and which devices pods would get.",
    "profiles": "List boards, show one, and write its nodes, slices and sysfs.",
    "reset": "Forget the cluster of a folder: objects, credentials, containers.",
    "run": "Run a local command with devices of this machine.",
    "scheduler": "Run the scheduler against any cluster.",
    "server": "Run the API server: kubectl and any client of Kubernetes can use it.",
    "snapshot": "Write a cluster or files into one archive, for all commands to read.",
    "status": "Show what runs in a folder: processes, nodes, pods, devices.",
    "store": "Check, compact, back up and restore what a server keeps.",
    "up": "Run a whole cluster on this machine, with its own devices or simulated ones.",
    "validate": "Check objects as an API server would, with file and line.",
    "whatif": "Say what changes would mean for pods and devices, before they are made.",
}


class Moor(LazyGroup):
    """The commands of `moor`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; stopped from the keyboard, it has no answer, not even no."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nstopped: there is no answer", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=Moor,
    lines=COMMANDS,
    prefix="mooring.cli.",
    context_settings=CONTEXT,
    epilog="Exit status: 0 yes, 1 no (refused, does not fit), 2 usage, 3 cannot read or reach.",
)
@click.version_option(__version__, "--version", message="moor %(version)s")
def moor() -> None:
    """Kubernetes Dynamic Resource Allocation, complete, in Python."""


def main() -> None:
    """Run `moor`, also as `kubectl moor`."""
    name = os.path.basename(sys.argv[0])
    try:
        moor(prog_name="kubectl moor" if name.startswith("kubectl") else "moor")
    except BrokenPipeError:
        # Whoever reads our output has seen enough; there is nowhere left to write to.
        _forget_output()
        sys.exit(1)
    except OSError as error:
        # All that commands read and write is theirs to tell of; this is the terminal or a pipe.
        print(f"error: cannot write the answer: {error.strerror or error}", file=sys.stderr)
        _forget_output()
        sys.exit(UNREADABLE)


def _forget_output() -> None:
    """Send what is still to be written nowhere, so that Python does not fail over it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
