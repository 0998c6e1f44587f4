"""Kubeconfig files: how a client finds the server and shows who it is."""

from __future__ import annotations

import base64
from typing import Any

import yaml

from mooring.apiserver.certificates import Pair

CLUSTER = "mooring"


def kubeconfig(
    server: str,
    authority: bytes,
    user: str,
    credentials: Pair | str,
    *,
    namespace: str = "default",
) -> str:
    """Return the text of a kubeconfig with a client certificate, or with a token."""
    context = f"{user}@{CLUSTER}"
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": CLUSTER,
                "cluster": {"server": server, "certificate-authority-data": _text(authority)},
            }
        ],
        "users": [{"name": user, "user": _user(credentials)}],
        "contexts": [
            {
                "name": context,
                "context": {"cluster": CLUSTER, "user": user, "namespace": namespace},
            }
        ],
        "current-context": context,
    }
    text: str = yaml.safe_dump(tree, sort_keys=False)
    return text


def _user(credentials: Pair | str) -> dict[str, Any]:
    if isinstance(credentials, str):
        return {"token": credentials}
    return {
        "client-certificate-data": _text(credentials.certificate),
        "client-key-data": _text(credentials.key),
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
