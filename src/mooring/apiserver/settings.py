"""How a server is to run, as values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Etcd(NamedTuple):
    """Where an etcd is, which of its keys are ours, and the files for TLS."""

    servers: tuple[str, ...]
    root: str = "/mooring/"
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
