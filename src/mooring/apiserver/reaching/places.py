"""Which container of a pod is meant, and where its node listens; Kubernetes' words if none is."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from mooring.api.core import Node, Pod
from mooring.apiserver.paths import Target
from mooring.apiserver.service import Service
from mooring.apiserver.status import bad_request, unexplained

SIMULATED = "mooring.dev/simulated"  # an annotation of nodes on which nothing runs
PORT = 10250  # of nodes that name none
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")


class Place(NamedTuple):
    """A container, and where its node listens."""

    host: str
    port: int
    namespace: str
    pod: str
    container: str

    @property
    def authority(self) -> str:
        """Host and port, as URLs have them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def path(self, door: str) -> str:
        """Return the path of a door of the node."""
        parts = (door, self.namespace, self.pod, self.container)
        return "".join(f"/{quote(part, safe='')}" for part in parts)


async def find_place(service: Service, target: Target, container: str) -> Place | None:
    """Return where a container of a pod is, None if its pod has no node yet, or raise."""
    pods, nodes = service.resources.of("", "pods"), service.resources.of("", "nodes")
    pod: Pod = await service.registry.get(pods, target.namespace, target.name)
    name = chosen_container(pod, container)
    if not pod.spec.node_name:
        return None
    node: Node = await service.registry.get(nodes, "", pod.spec.node_name)
    if SIMULATED in node.metadata.annotations:
        text = f'node "{node.metadata.name}" is simulated: nothing runs on it'
        raise bad_request(f'{text}, so pod "{target.name}" says nothing and takes no commands')
    port = node.status.daemon_endpoints.kubelet_endpoint.port or PORT
    return Place(address_of(node), port, target.namespace, target.name, name)


def chosen_container(pod: Pod, wanted: str) -> str:
    """Return the container that is meant: the only one, if none is named."""
    spec, name = pod.spec, pod.metadata.name
    listed = (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
    if wanted:
        if all(each.name != wanted for each in listed):
            raise bad_request(f"container {wanted[:253]} is not valid for pod {name}")
        return wanted
    if len(spec.containers) == 1:
        return spec.containers[0].name
    text = f"a container name must be specified for pod {name}"
    if spec.containers:
        text += f", choose one of: [{' '.join(each.name for each in listed)}]"
    raise bad_request(text)


def address_of(node: Node) -> str:
    """Return how a node is reached."""
    addresses = node.status.addresses
    for wanted in ADDRESS_TYPES:
        for address in addresses:
            if address.type == wanted and address.address:
                return address.address
    known = " ".join(f"{{{each.type} {each.address}}}" for each in addresses)
    raise unexplained(f"no preferred addresses found; known addresses: [{known}]")
