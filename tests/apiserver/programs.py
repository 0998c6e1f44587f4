"""Programs that tests of the server run."""

from __future__ import annotations

import shutil

import dev

NO_KUBECTL = "kubectl cannot be had: it is not tried with the server"


def find_kubectl() -> str | None:
    """Return where kubectl is: the machine's own, or what `dev.py test` fetched."""
    return shutil.which("kubectl") or (str(dev.KUBECTL) if dev.KUBECTL.exists() else None)
