"""Adapters between the agent, the device plugin manager and the DRA manager of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moorage.api.core import Pod
from moorage.node.agent import Agent
from moorage.node.device_plugins.allocation import allocatable_devices, container_devices
from moorage.node.device_plugins.manager import DevicePlugins
from moorage.node.dra.plugin_registration import PluginInfo
from moorage.node.errors import PluginError, RegistrationRefusedError
from moorage.node.node_status import NodeDescription
from moorage.node.resource_usage import UsageMeter
from moorage.wire import podresources_pb2 as wire


class AgentPods:
    """The pods of an agent that is created after the server that serves them."""

    def __init__(self) -> None:
        self._agent: Agent | None = None
        self._metrics_text: Callable[[], str] = str
        self._meter: UsageMeter | None = None
        self._description: NodeDescription | None = None

    def of(
        self,
        agent: Agent,
        metrics_text: Callable[[], str],
        meter: UsageMeter,
        description: NodeDescription,
    ) -> None:
        """Set the agent."""
        self._agent, self._metrics_text = agent, metrics_text
        self._meter, self._description = meter, description

    def find(self, namespace: str, name: str) -> Pod | None:
        """Return a pod of this node, if it exists."""
        agent = self._agent
        return None if agent is None else agent.pod_workers.find_named(namespace, name)

    def all(self) -> Iterable[Pod]:
        """Return all pods of this node."""
        return () if self._agent is None else self._agent.pod_workers.current()

    async def summary(self) -> dict[str, Any]:
        """Return what the node and its pods use, once there is an agent."""
        if self._meter is None or self._description is None:
            return {}
        return await self._meter.summary(self._description.name, self.all())

    def config(self) -> dict[str, Any]:
        """Return the configuration of the agent, as far as a kubelet has the same fields."""
        found = self._description
        if found is None:
            return {}
        return {
            "kind": "KubeletConfiguration",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "port": found.port,
            "maxPods": found.pods_max,
            "systemReserved": {name: str(each) for name, each in found.reserved.items()},
            "containerRuntimeEndpoint": found.runtime,
        }

    def metrics_text(self) -> str:
        """Return the metrics of the agent."""
        return self._metrics_text()


class PluginDevices:
    """Devices of device plugins, for the PodResources API."""

    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    def of_container(self, pod_uid: str, container: str) -> Iterable[wire.ContainerDevices]:
        """Return the devices of a container."""
        return container_devices(self._plugins.held(pod_uid, container))

    def allocatable(self) -> Iterable[wire.ContainerDevices]:
        """Return all allocatable devices."""
        return allocatable_devices(self._plugins.allocatable())


class PluginHandler:
    """Device plugins that register through the plugin watcher, as DRA drivers do."""

    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    def check(self, plugin: PluginInfo) -> None:
        """Accept any plugin: `register` validates it."""

    async def register(self, plugin: PluginInfo) -> None:
        """Register a plugin, or raise RegistrationRefusedError."""
        try:
            await self._plugins.register(plugin.name, Path(plugin.endpoint), plugin.versions)
        except (ValueError, PluginError) as error:
            raise RegistrationRefusedError(str(error)) from None

    async def deregister(self, plugin: PluginInfo) -> None:
        """Deregister a plugin."""
        await self._plugins.deregister(plugin.name, Path(plugin.endpoint))
