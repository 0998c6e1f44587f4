"""A claim, and a pod that holds it while the command runs.

1. The claim is created, then the pod. The scheduler assigns both to this node, and its agent has
   the drivers prepare the devices.
2. Once the pod is running, the PodResources API returns the CDI ids of its container.
3. `release` deletes both and returns when they are gone: the devices are free then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.core.namespace import WARNING, Event
from moorage.api.core.pod import FAILED, POD_SCHEDULED, RUNNING, SUCCEEDED
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.contract import Added, Client, Removed
from moorage.client.errors import ClientError, ExpiredError, NotFoundError
from moorage.client.writes import Create, Delete, Target

T = TypeVar("T")

FOLDER = "runs"  # of the pipes, in the folder of a cluster
NAMESPACE = "default"
LABEL = "moorage.dev/run"
ENTRY, CONTAINER = "devices", "holder"
GRACE_S = 2
HOLDER = '[ -d "/proc/$1" ] && read -r _ <"$2"; rm -f "$2"'
RELEASE_S_MAX = 30.0
ANSWER_S_MAX = 10.0
SOCKET = Path("pod-resources/kubelet.sock")


class Run(NamedTuple):
    """One run of a command: the name of its objects, its process and its pipe."""

    name: str
    pid: int
    pipe: Path
    node: str


class NotGivenError(Exception):
    """No devices were allocated, with the reason."""


class HeldDevices(NamedTuple):
    """The devices of a run, and their CDI ids."""

    devices: tuple[str, ...]  # a request and its device, as users read it
    cdi_ids: tuple[str, ...]


class DeviceHolder:
    """The claim and the pod of one run."""

    def __init__(self, client: Client, run: Run, *, node_folder: Path) -> None:
        self._client, self._run, self._node_folder = client, run, node_folder
        self._told = ""  # why it takes longer

    async def take(
        self, devices: dict[str, Any], *, timeout_s: float, tell: Callable[[str], None]
    ) -> HeldDevices:
        """Return the allocated devices, or raise NotGivenError or ClientError.

        `tell` is called with the reason of a delay.
        """
        await self._create(claim_tree(self._run, devices), ResourceClaim)
        await self._create(pod_tree(self._run), Pod)
        try:
            async with asyncio.timeout(timeout_s):
                await self._until_running(tell)
        except TimeoutError:
            raise NotGivenError(await self._why_not(f"no devices within {timeout_s:g} s")) from None
        claim = await self._client.get(ResourceClaim, NAMESPACE, self._run.name)
        return HeldDevices(tuple(_devices(claim)), await self._cdi_ids())

    async def release(self) -> bool:
        """Delete the objects; return whether the devices are free."""
        targets = [Target(struct, NAMESPACE, self._run.name) for struct in (Pod, ResourceClaim)]
        try:
            async with asyncio.timeout(RELEASE_S_MAX):
                for target in targets:
                    await _delete(self._client, target)
                for target in targets:
                    await _until_gone(self._client, target)
        except (TimeoutError, ClientError):
            return False
        return True

    async def _create(self, tree: dict[str, Any], struct: type[Any]) -> None:
        await self._client.write(Create(decode_tree(tree, struct).value))

    async def _until_running(self, tell: Callable[[str], None]) -> None:
        async for pod in following(self._client, Pod, NAMESPACE, self._run.name):
            if pod is None:
                raise NotGivenError("the pod that holds the devices was deleted")
            if pod.status.phase == RUNNING:
                return
            if pod.status.phase in (SUCCEEDED, FAILED):
                raise NotGivenError(f"the pod that holds the devices ended: {_ending(pod)}")
            reason = _refusal(pod)
            if reason and reason != self._told:
                tell(f"waiting: {reason}")
                self._told = reason

    async def _why_not(self, what: str) -> str:
        """Return the reason why the pod does not run, unless it was already reported."""
        pod = await self._client.get(Pod, NAMESPACE, self._run.name)
        reason = "" if pod is None else _refusal(pod)
        if reason:
            return what if reason == self._told else f"{what}: {reason}"
        fields = f"involvedObject.name={self._run.name}"
        events = (await self._client.list(Event, NAMESPACE, fields=fields)).values
        warnings = [f"{each.reason}: {each.message}" for each in events if each.type == WARNING]
        default = "the node has not started the pod that holds them"
        return f"{what}: {warnings[-1] if warnings else default}"

    async def _cdi_ids(self) -> tuple[str, ...]:
        from moorage.wire import grpc
        from moorage.wire import podresources_pb2 as wire
        from moorage.wire.services import GET_POD, call, open_socket

        request = wire.GetPodResourcesRequest(pod_name=self._run.name, pod_namespace=NAMESPACE)
        try:
            async with open_socket(self._node_folder / SOCKET) as channel:
                answer = await call(channel, GET_POD)(request, timeout=ANSWER_S_MAX)
        except grpc.aio.AioRpcError as error:
            raise NotGivenError(
                f"the node does not say what was given: {error.details()}"
            ) from None
        ids = (
            device.name
            for container in answer.pod_resources.containers
            for resource in container.dynamic_resources
            for each in resource.claim_resources
            for device in each.cdi_devices
        )
        return tuple(dict.fromkeys(ids))


async def remove_leftovers(client: Client) -> None:
    """Remove the objects of runs that were killed."""
    for struct in (Pod, ResourceClaim):
        for value in (await client.list(struct, NAMESPACE, labels=LABEL)).values:
            if not _is_alive(value.metadata.labels.get(LABEL, "")):
                await _delete(client, Target.of(value))


async def following(
    client: Client, struct: type[T], namespace: str, name: str
) -> AsyncIterator[T | None]:
    """Yield an object now and after each change; None while it does not exist."""
    fields = f"metadata.name={name}"
    while True:
        page = await client.list(struct, namespace, fields=fields)
        yield page.values[0] if page.values else None
        with suppress(ExpiredError):
            async for event in client.watch(struct, namespace, after=page.revision, fields=fields):
                match event:
                    case Added(value):
                        yield value
                    case Removed():
                        yield None


async def _delete(client: Client, target: Target) -> None:
    with suppress(NotFoundError):
        await client.write(Delete(target))


async def _until_gone(client: Client, target: Target) -> None:
    async for value in following(client, target.struct, target.namespace, target.name):
        if value is None:
            return


def _refusal(pod: Pod) -> str:
    """Return why a pod is unschedulable, preferring Moorage's explanation."""
    for each in pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False":
            theirs, sign, ours = each.message.partition("Moorage: ")
            return ours if sign else theirs
    return ""


def _ending(pod: Pod) -> str:
    for each in pod.status.container_statuses:
        ended = each.state.terminated
        if ended is not None:
            return ended.message or f"exit code {ended.exit_code}"
    return pod.status.message or pod.status.reason or pod.status.phase


def _devices(claim: ResourceClaim | None) -> Iterable[str]:
    allocation = None if claim is None else claim.status.allocation
    for each in allocation.devices.results if allocation is not None else ():
        consumed = ", ".join(str(amount) for amount in (each.consumed_capacity or {}).values())
        amount = f" ({consumed})" if consumed else ""
        yield f"{each.request}: {each.driver}/{each.pool}/{each.device}{amount}"


def _is_alive(pid: str) -> bool:
    return pid.isascii() and pid.isdigit() and os.path.isdir(f"/proc/{pid}")


# --- the objects ------------------------------------------------------------------------------


def claim_tree(run: Run, devices: dict[str, Any]) -> dict[str, Any]:
    """Return the claim."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _metadata(run),
        "spec": {"devices": devices},
    }


def pod_tree(run: Run) -> dict[str, Any]:
    """Return the pod."""
    container = {
        "name": CONTAINER,
        "image": "none",  # a process of this machine
        "command": ["/bin/sh", "-c", HOLDER, "holder", str(run.pid), str(run.pipe)],
        "resources": {"claims": [{"name": ENTRY}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(run),
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": False,
            "nodeSelector": {"kubernetes.io/hostname": run.node},
            "containers": [container],
            "resourceClaims": [{"name": ENTRY, "resourceClaimName": run.name}],
        },
    }


def _metadata(run: Run) -> dict[str, Any]:
    return {"name": run.name, "namespace": NAMESPACE, "labels": {LABEL: str(run.pid)}}
