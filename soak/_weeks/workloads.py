"""Namespaces whose pods, claims, Jobs and Deployments come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

import msgspec

Tree = dict[str, Any]
# Sends a request, and returns the status and the body of its answer.
Send = Callable[[str, str, Tree | None], Awaitable[tuple[int, bytes]]]

BATCH, APPS, RESOURCE = "/apis/batch/v1", "/apis/apps/v1", "/apis/resource.k8s.io/v1"


class Workloads:
    """Makes namespaces with a bit of everything in them."""

    def __init__(self, send: Send, random: Random, device_class: str, seconds: str) -> None:
        self._send, self._random = send, random
        self._device_class, self._seconds = device_class, seconds
        self.pods = 0

    async def create(self, namespace: str) -> None:
        """Create a namespace with workloads; some of them change or are deleted again."""
        await self._post("/api/v1/namespaces", "v1", "Namespace", namespace)
        for path, api_version, kind, name, content in self._content(namespace):
            await self._post(path, api_version, kind, name, content)
        deployments = f"{APPS}/namespaces/{namespace}/deployments"
        scale = {"spec": {"replicas": self._random.randint(0, 2)}}
        status, body = await self._send("PATCH", f"{deployments}/web", scale)
        assert status == 200, body
        name = self._random.choice(("one", "two"))
        status, body = await self._send(
            "DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", None
        )
        assert status in (200, 404), body

    async def delete(self, namespace: str) -> None:
        """Delete a namespace with all that is in it."""
        status, body = await self._send("DELETE", f"/api/v1/namespaces/{namespace}", None)
        assert status in (200, 404, 409), body

    async def _post(
        self, path: str, api_version: str, kind: str, name: str, content: Tree | None = None
    ) -> None:
        tree = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name},
            **(content or {}),
        }
        status, body = await self._send("POST", path, tree)
        assert status == 201, f"{path}: {status} {body[:600]!r}"

    def _content(self, namespace: str) -> Iterator[tuple[str, str, str, str, Tree]]:
        core = f"/api/v1/namespaces/{namespace}"
        resource, apps, batch = (
            f"{group}/namespaces/{namespace}" for group in (RESOURCE, APPS, BATCH)
        )
        request = {"name": "r", "exactly": {"deviceClassName": self._device_class}}
        spec = {"devices": {"requests": [request]}}
        yield f"{core}/configmaps", "v1", "ConfigMap", "settings", {"data": {"k": "v" * 500}}
        yield f"{core}/secrets", "v1", "Secret", "keys", {"stringData": {"k": "v"}}
        yield (
            f"{resource}/resourceclaimtemplates",
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            "gpu",
            {"spec": {"spec": spec}},
        )
        yield (
            f"{resource}/resourceclaims",
            "resource.k8s.io/v1",
            "ResourceClaim",
            "shared",
            {"spec": spec},
        )
        for name in ("one", "two"):
            self.pods += 1
            yield f"{core}/pods", "v1", "Pod", name, {"spec": self._pod(is_shared=name == "two")}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": self._pod(restarts="Always")}
        self.pods += 2
        yield (
            f"{batch}/jobs",
            "batch/v1",
            "Job",
            "job",
            {"spec": {"template": {"spec": self._pod()}, "ttlSecondsAfterFinished": 30}},
        )
        selector = {"matchLabels": {"app": "web"}}
        yield (
            f"{apps}/deployments",
            "apps/v1",
            "Deployment",
            "web",
            {"spec": {"replicas": 1, "selector": selector, "template": template}},
        )
        lease = {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
        yield (
            f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
            "coordination.k8s.io/v1",
            "Lease",
            "l",
            lease,
        )

    def _pod(self, *, is_shared: bool = False, restarts: str = "Never") -> Tree:
        source: Tree = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
        if is_shared:
            source = {"name": "gpu", "resourceClaimName": "shared"}
        command = ["sleep", "3600" if restarts == "Always" else self._seconds]
        container = {
            "name": "main",
            "image": "none",
            "command": command,
            "resources": {"claims": [{"name": "gpu"}]},
        }
        return {
            "containers": [container],
            "resourceClaims": [source],
            "restartPolicy": restarts,
            "terminationGracePeriodSeconds": 1,
        }


def encoded(tree: Tree | None) -> bytes:
    """Return the body of a request."""
    return b"" if tree is None else msgspec.json.encode(tree)


def media(method: str) -> str:
    """Return the content type of a request."""
    return "application/merge-patch+json" if method == "PATCH" else "application/json"
