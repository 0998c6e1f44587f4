"""Names of objects in the cluster of --live, as far as it responds within a tenth of a second.

Errors give no names, because a shell cannot show errors of a completion. Programs that a kubeconfig
runs to get credentials are stopped in time, too.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import Final

from moorage.cli.shell.names import FoundObject
from moorage.client.contract import Request
from moorage.client.errors import ClientError
from moorage.client.http.kubeconfig import Kubeconfig, kubeconfig_paths, read_kubeconfig
from moorage.client.http.rest_config import transport_for

TIME_S_MAX: Final = 0.1
OBJECTS_MAX: Final = 100
_PATHS: Final = {
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1beta2/devicetaintrules",
    "Job": "/apis/batch/v1/jobs",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "StatefulSet": "/apis/apps/v1/statefulsets",
}


def live_names(kinds: list[str], kubeconfig: str, context: str) -> list[FoundObject]:
    """Return objects of these kinds in a running cluster."""
    with suppress(ClientError, OSError, TimeoutError, ValueError):
        return asyncio.run(_listed(kinds, kubeconfig, context))
    return []


def contexts(kubeconfig: str) -> list[str]:
    """Return the contexts of the kubeconfig."""
    with suppress(ClientError, OSError, ValueError):
        paths = [each for each in kubeconfig_paths(kubeconfig, os.environ) if each.is_file()]
        return sorted(Kubeconfig(paths).contexts)
    return []


async def _listed(kinds: list[str], kubeconfig: str, context: str) -> list[FoundObject]:
    transport = transport_for(read_kubeconfig(kubeconfig, context=context), agent="moor-completion")
    found: list[FoundObject] = []

    async def list_kind(kind: str) -> None:
        answer = await transport.send(Request("GET", _PATHS[kind], f"limit={OBJECTS_MAX}"))
        if answer.status == 200:
            found.extend(_names(kind, answer.body))

    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(TIME_S_MAX):
                asked = (list_kind(kind) for kind in kinds if kind in _PATHS)
                await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await transport.close()
    return found


def _names(kind: str, body: bytes) -> list[FoundObject]:
    found = []
    for item in json.loads(body).get("items") or ():
        metadata = item.get("metadata") or {}
        if name := metadata.get("name"):
            found.append(FoundObject(kind, metadata.get("namespace", ""), name))
    return found
