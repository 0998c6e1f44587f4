"""A webhook behind a service is found through the endpoints of the service."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.structs import Open, always
from moorage.apiserver.dynamic_admission.service_resolver import SERVICE_LABEL, resolve_service


class Stored(Open, frozen=True, gc=False):
    """Any object; its fields besides the metadata are in `extra`."""

    metadata: ObjectMeta = always(ObjectMeta())


def service(*ports: dict[str, Any], **spec: Any) -> Stored:
    return Stored(extra={"spec": {"ports": list(ports), **spec}})


def endpoints(name: str, *hosts: str, port: int, port_name: str = "", ready: bool = True) -> Stored:
    listed = [{"addresses": [host], "conditions": {"ready": ready}} for host in hosts]
    return Stored(
        metadata=ObjectMeta(labels={SERVICE_LABEL: name}),
        extra={"endpoints": listed, "ports": [{"name": port_name, "port": port}]},
    )


class Server:
    """A server that has one service, or none, and slices of endpoints."""

    def __init__(self, found: Stored | None, *slices: Stored, served: bool = True) -> None:
        self._served = served
        self._found = found
        self._slices = slices
        self.resources = SimpleNamespace(find=self._resource)
        self.registry = SimpleNamespace(
            find=self._find,
            readable=lambda _, entries: SimpleNamespace(values=entries),
            store=SimpleNamespace(list=self._list),
        )

    def _resource(self, group: str, version: str, plural: str) -> Any:
        return SimpleNamespace(below=lambda namespace: namespace) if self._served else None

    async def _find(self, resource: Any, namespace: str, name: str) -> Any:
        return self._found

    async def _list(self, prefix: str) -> Any:
        return SimpleNamespace(entries=self._slices)


def resolved(server: Any, port: int = 443) -> tuple[str, int]:
    return asyncio.run(resolve_service(server, "n", "hook", port))


PORT = {"name": "https", "port": 443, "targetPort": 8443}


def test_ready_endpoints_take_turns() -> None:
    server = Server(
        service(PORT),
        endpoints("hook", "10.0.0.1", "10.0.0.2", port=8443, port_name="https"),
        endpoints("hook", "10.0.0.3", port=8443, port_name="https", ready=False),
        endpoints("hook", "10.0.0.4", port=9090, port_name="metrics"),
        endpoints("other", "10.0.0.5", port=8443, port_name="https"),
    )
    found = {resolved(server) for _ in range(4)}
    assert found == {("10.0.0.1", 8443), ("10.0.0.2", 8443)}


def test_an_external_name_is_used_as_it_is() -> None:
    server = Server(service(type="ExternalName", externalName="hooks.example.com"))
    assert resolved(server) == ("hooks.example.com", 443)


@pytest.mark.parametrize(
    ("server", "port", "error"),
    [
        (Server(None), 443, 'services "hook" not found'),
        (Server(None, served=False), 443, "this server has no services"),
        (Server(service(PORT)), 8443, 'no service port 8443 found for service "hook"'),
        (Server(service(PORT)), 443, 'no endpoints available for service "hook"'),
    ],
)
def test_faults(server: Server, port: int, error: str) -> None:
    with pytest.raises(Exception, match=error):
        resolved(server, port)
