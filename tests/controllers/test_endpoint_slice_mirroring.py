"""Services without a selector have the addresses of the Endpoints that users make."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api.core.service import Endpoints, Service
from moorage.api.discovery import EndpointSlice
from moorage.client.writes import Update
from moorage.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from moorage.controllers.endpoint_slices import EndpointSliceController
from tests.controllers.things import World, thing

PORTS = [{"name": "db", "port": 5432, "protocol": "TCP"}]


def service(**spec: Any) -> Any:
    return thing("v1", "Service", "db", spec={"ports": [{"port": 5432}], **spec})


def endpoints(*addresses: str, waiting: tuple[str, ...] = (), **metadata: Any) -> Any:
    subset: dict[str, Any] = {"addresses": [{"ip": each} for each in addresses], "ports": PORTS}
    subset["notReadyAddresses"] = [{"ip": each} for each in waiting]
    return thing("v1", "Endpoints", "db", metadata=metadata, subsets=[subset])


def world_of(*values: Any) -> World:
    world = World(EndpointSliceController(), EndpointSliceMirroringController())
    world.put(*values)
    world.settle()
    return world


def shown(world: World) -> list[tuple[str, list[tuple[str, bool | None]]]]:
    slices = [each for each in world.all(EndpointSlice) if isinstance(each, EndpointSlice)]
    return sorted(
        (each.address_type, [(e.addresses[0], e.conditions.ready) for e in each.endpoints])
        for each in slices
    )


def test_the_addresses_of_endpoints_are_in_a_slice() -> None:
    world = world_of(service(), endpoints("10.1.2.3", waiting=("10.1.2.4",), labels={"a": "b"}))
    assert shown(world) == [("IPv4", [("10.1.2.3", True), ("10.1.2.4", False)])]
    (found,) = world.all(EndpointSlice)
    assert [(port.name, port.port, port.protocol) for port in found.ports] == [("db", 5432, "TCP")]
    assert found.metadata.labels == {
        "a": "b",
        "kubernetes.io/service-name": "db",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert [(each.kind, each.name) for each in found.metadata.owner_references] == [
        ("Endpoints", "db")
    ]


def test_ports_are_as_the_server_stores_them_in_slices() -> None:
    subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 5432}]}
    world = world_of(service(), thing("v1", "Endpoints", "db", subsets=[subset]))
    (found,) = world.all(EndpointSlice)
    assert [(port.name, port.protocol) for port in found.ports] == [("", "TCP")]


def test_addresses_of_each_kind_have_a_slice() -> None:
    world = world_of(service(), endpoints("10.1.2.3", "fd00::1"))
    assert shown(world) == [("IPv4", [("10.1.2.3", True)]), ("IPv6", [("fd00::1", True)])]


def test_a_slice_follows_its_endpoints_and_goes_with_them() -> None:
    world = world_of(service(), endpoints("10.1.2.3"))
    (before,) = world.all(EndpointSlice)
    current = world.get(Endpoints, "db")
    world.model.write(Update(replace(current, subsets=endpoints("10.1.2.5").subsets)))
    world.settle()
    assert shown(world) == [("IPv4", [("10.1.2.5", True)])]
    assert world.all(EndpointSlice)[0].metadata.name == before.metadata.name
    world.delete(world.get(Endpoints, "db"))
    world.settle()
    assert shown(world) == []


def test_what_is_not_for_a_service_without_a_selector_has_no_slice() -> None:
    assert shown(world_of(endpoints("10.1.2.3"))) == []
    skipped = endpoints("10.1.2.3", labels={"endpointslice.kubernetes.io/skip-mirror": "true"})
    assert shown(world_of(service(), skipped)) == []
    leader = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    assert shown(world_of(service(), endpoints("10.1.2.3", annotations=leader))) == []
    selecting = world_of(service(selector={"app": "db"}), endpoints("10.1.2.3"))
    assert shown(selecting) == [("IPv4", [])]  # of the pods that it selects: there are none


def test_a_service_that_begins_to_select_pods_loses_the_slice() -> None:
    world = world_of(service(), endpoints("10.1.2.3"))
    world.change(world.get(Service, "db"), selector={"app": "db"})
    world.settle()
    assert shown(world) == [("IPv4", [])]


def test_slices_that_users_made_stay() -> None:
    labels = {"kubernetes.io/service-name": "db"}
    own = thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "own",
        metadata={"labels": labels},
        addressType="IPv4",
        endpoints=[{"addresses": ["10.9.9.9"]}],
    )
    world = world_of(service(), own)
    assert shown(world) == [("IPv4", [("10.9.9.9", None)])]
