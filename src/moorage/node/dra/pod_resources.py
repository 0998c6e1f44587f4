"""The PodResources API (v1): which devices the pods of this node have, for monitoring agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from moorage.api.core import Pod
from moorage.api.core.pod import Container
from moorage.claims.pod_claims import Named, reference_of
from moorage.node.dra.claim_info import ClaimInfo, ClaimInfoCache, ClaimKey, PreparedDevice
from moorage.node.dra.claim_requests import NodeFeatures
from moorage.wire import grpc
from moorage.wire import podresources_pb2 as wire
from moorage.wire.services import GET_ALLOCATABLE, GET_POD, LIST_PODS, new_server, serve

SOCKET = Path("pod-resources/kubelet.sock")
STOP_GRACE_S = 1.0

Pods = Callable[[], Iterable[Pod]]  # the active ones


class OtherDevices(Protocol):
    """Devices of device plugins, not of claims."""

    def of_container(self, pod_uid: str, container: str) -> Iterable[wire.ContainerDevices]:
        """Return the devices of a container."""

    def allocatable(self) -> Iterable[wire.ContainerDevices]:
        """Return all devices."""


class NoOtherDevices:
    """A node without device plugins."""

    def of_container(self, pod_uid: str, container: str) -> Iterable[wire.ContainerDevices]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def allocatable(self) -> Iterable[wire.ContainerDevices]:
        """Return nothing."""
        return ()


class PodResources:
    """Serves the devices of pods."""

    def __init__(
        self,
        cache: ClaimInfoCache,
        pods: Pods,
        features: NodeFeatures,
        others: OtherDevices | None = None,
    ) -> None:
        self._cache, self._pods, self._features = cache, pods, features
        self._others: OtherDevices = others or NoOtherDevices()

    @asynccontextmanager
    async def serving(self, path: Path) -> AsyncIterator[None]:
        """Serve on a socket."""
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # left by an agent that was killed
        server = new_server()
        methods = {LIST_PODS: self._list, GET_POD: self._get, GET_ALLOCATABLE: self._allocatable}
        server.add_generic_rpc_handlers((serve(methods),))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        try:
            yield
        finally:
            await server.stop(STOP_GRACE_S)
            path.unlink(missing_ok=True)

    def of_pod(self, pod: Pod) -> wire.PodResources:
        """Return the devices of a pod."""
        sidecars = (each for each in pod.spec.init_containers if each.is_sidecar)
        return wire.PodResources(
            name=pod.metadata.name,
            namespace=pod.metadata.namespace,
            containers=[self._container(pod, each) for each in (*sidecars, *pod.spec.containers)],
        )

    async def _list(self, _request: Any, _context: Any) -> wire.ListPodResourcesResponse:
        return wire.ListPodResourcesResponse(
            pod_resources=[self.of_pod(pod) for pod in self._pods()]
        )

    async def _get(
        self, request: wire.GetPodResourcesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.GetPodResourcesResponse:
        name, namespace = request.pod_name, request.pod_namespace
        for pod in self._pods():
            if (pod.metadata.name, pod.metadata.namespace) == (name, namespace):
                return wire.GetPodResourcesResponse(pod_resources=self.of_pod(pod))
        text = f"pod {name} in namespace {namespace} not found"
        await context.abort(grpc.StatusCode.UNKNOWN, text)  # as Go's errors without a status
        raise AssertionError

    async def _allocatable(self, _request: Any, _context: Any) -> wire.AllocatableResourcesResponse:
        return wire.AllocatableResourcesResponse(devices=list(self._others.allocatable()))

    def _container(self, pod: Pod, container: Container) -> wire.ContainerResources:
        return wire.ContainerResources(
            name=container.name,
            devices=list(self._others.of_container(pod.metadata.uid, container.name)),
            dynamic_resources=[_dynamic(state) for state in self._claims(pod, container)],
        )

    def _claims(self, pod: Pod, container: Container) -> Iterator[ClaimInfo]:
        used = {each.name for each in container.resources.claims}
        names = [
            reference.name
            for entry in pod.spec.resource_claims
            if entry.name in used and isinstance(reference := reference_of(pod, entry), Named)
        ]
        special = pod.status.extended_resource_claim_status
        if special is not None and self._features.extended:
            mapped = {each.container_name for each in special.request_mappings}
            names += [special.resource_claim_name] if container.name in mapped else []
        for name in dict.fromkeys(names):
            state = self._cache.get(ClaimKey(pod.metadata.namespace, name))
            if state is not None and pod.metadata.uid in state.pods:
                yield state


def _dynamic(state: ClaimInfo) -> wire.DynamicResource:
    return wire.DynamicResource(
        claim_name=state.key.name,
        claim_namespace=state.key.namespace,
        claim_resources=[_resource(driver, device) for driver, device in state.devices],
    )


def _resource(driver: str, device: PreparedDevice) -> wire.ClaimResource:
    return wire.ClaimResource(
        cdi_devices=[wire.CDIDevice(name=each) for each in device.cdi_ids],
        driver_name=driver,
        pool_name=device.pool,
        device_name=device.name,
        share_id=device.share_id,
    )
