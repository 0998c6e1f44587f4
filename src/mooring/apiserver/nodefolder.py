"""The folder of a node: how it reaches the server, and the certificate of its own endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mooring.api.timestamp import Timestamp
from mooring.apiserver.credentials import NODE_PREFIX, Folder, write_privately
from mooring.apiserver.kubeconfig import kubeconfig


class NodeFolder(NamedTuple):
    """The files of a node."""

    kubeconfig: Path
    certificate: Path
    key: Path
    authority: Path
    renewed: tuple[str, ...] = ()


def write_node_folder(
    folder: Path, *, node: str, hosts: Sequence[str], server: str, pki: Path, now: Timestamp
) -> NodeFolder:
    """Write what a node needs, where it is missing or due; may raise CredentialsError.

    `hosts` are the names and addresses that its endpoint is reached by, `pki` is the server's
    folder of credentials.
    """
    authority = Folder(pki).authority()
    made = Folder(folder).ensure_node(authority, node, now, hosts=hosts)
    text = kubeconfig(server, authority.certificate, f"{NODE_PREFIX}{node}", made.client)
    write_privately(folder / "kubeconfig", text.encode())
    return NodeFolder(
        folder / "kubeconfig",
        folder / "serving.crt",
        folder / "serving.key",
        folder / "ca.crt",
        made.renewed,
    )
