"""Where the cluster is that `moor up` runs here, for whoever asked another one, or none."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NoReturn

from moorage.cli.errors import UNREADABLE
from moorage.cli.output import complain
from moorage.cli.server_options import DATA_DIR, DATA_DIR_VARIABLE
from moorage.cli.terminal import echo, printable


def fail_to_reach(error: Exception) -> NoReturn:
    """Print why a cluster cannot be read, and which one runs here, and exit."""
    complain(f"cluster: {error}")
    print_hint()
    raise SystemExit(UNREADABLE)


def print_hint() -> None:
    """Print how to reach the cluster that runs here, if one does."""
    hint = _hint(Path(os.environ.get(DATA_DIR_VARIABLE) or DATA_DIR))
    if hint:
        echo(printable(hint), err=True)


def _hint(folder: Path) -> str:
    try:
        from moorage.cluster.state_folder import StateFolder  # few errors need it
    except ImportError:
        return ""  # where there are no such locks, no `moor up` runs
    kubeconfig = folder / "kubeconfig"
    if not (StateFolder(folder).runner() and kubeconfig.is_file()):
        return ""
    return (
        f"hint: `moor up` runs a cluster here: give --kubeconfig {shlex.quote(str(kubeconfig))}, "
        f"or export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}"
    )
