"""`moor completion`: scripts that complete command lines in shells."""

from __future__ import annotations

from pkgutil import get_data

import click

from moorage.cli import CONTEXT
from moorage.cli.terminal import echo

SHELLS = ("bash", "zsh", "fish")


@click.command(context_settings=CONTEXT, epilog="Exit status: 0 printed, 2 usage error.")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
def command(shell: str) -> None:
    """Print a script that completes command lines of moor in bash|zsh|fish.

    The script completes commands, options and values, and also names: of objects in the files that
    you give with -f and --on, of objects in the cluster with --live, and of hardware profiles,
    device classes, namespaces, contexts and feature gates.

    \b
    source <(moor completion bash)                                    # in ~/.bashrc
    moor completion zsh > "${fpath[1]}/_moor"                         # once
    moor completion fish > ~/.config/fish/completions/moor.fish       # once

    kubectl 1.26 and newer completes `kubectl moor` without this script: it asks
    kubectl_complete-moor, which is installed beside kubectl-moor.
    """
    text = get_data("moorage.cli.shell", f"moor.{shell}")
    assert text is not None
    echo(text.decode(), nl=False)
