"""Access as a pod finds it: the server in the environment, the rest in a folder of every pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mooring.client.errors import AccessError
from mooring.client.http.access import Access

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(
    environment: Mapping[str, str] | None = None, folder: Path = FOLDER
) -> Access | None:
    """Return the access of a pod; None if this is none."""
    environment = os.environ if environment is None else environment
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    token = folder / "token"
    if not (host and port and token.exists()):
        return None
    try:
        authority = (folder / "ca.crt").read_bytes()
        named = folder / "namespace"
        namespace = named.read_text().strip() if named.exists() else "default"
    except (OSError, ValueError) as error:
        raise AccessError(f"this seems to be a pod, but {folder} cannot be read: {error}") from None
    shown = f"[{host}]" if ":" in host else host
    return Access(
        server=f"https://{shown}:{port}",
        namespace=namespace,
        authority=authority,
        token_file=str(token),
    )
