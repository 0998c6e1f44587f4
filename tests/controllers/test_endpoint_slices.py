"""Services have the addresses of the pods that they select."""

from __future__ import annotations

from typing import Any

from moorage.api.core import Pod, Service
from moorage.api.discovery import EndpointSlice
from moorage.controllers.endpoint_slices import ENDPOINTS_MAX, EndpointSliceController
from tests.controllers.things import World, node, thing


def service(**spec: Any) -> Any:
    ports = [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]
    body = {"selector": {"app": "web"}, "ports": ports, **spec}
    return thing("v1", "Service", "web", spec=body)


def pod(name: str, *, port: int = 8080, labels: Any = None, **spec: Any) -> Any:
    container = {"name": "main", "ports": [{"name": "web", "containerPort": port}]}
    metadata = {"labels": labels or {"app": "web"}}
    return thing("v1", "Pod", name, metadata=metadata, spec={"containers": [container], **spec})


def run(world: World, name: str, address: str, *, ready: bool = True) -> None:
    world.report(world.get(Pod, name), "Running", ready=ready, pod_ip=address)
    world.settle()


def world_of(*values: Any) -> World:
    world = World(EndpointSliceController())
    world.put(*values)
    return world


def only(world: World) -> EndpointSlice:
    (found,) = world.all(EndpointSlice)
    assert isinstance(found, EndpointSlice)
    return found


def test_a_ready_pod_is_an_endpoint_with_the_number_of_its_named_port() -> None:
    world = world_of(
        service(), pod("a", nodeName="n"), node("n"), pod("other", labels={"app": "db"})
    )
    run(world, "a", "10.0.0.1")
    found = only(world)
    assert found.metadata.labels["kubernetes.io/service-name"] == "web"
    assert found.metadata.owner_references[0].kind == "Service"
    assert found.metadata.name.startswith("web-")
    (endpoint,) = found.endpoints
    assert endpoint.addresses == ("10.0.0.1",)
    assert (endpoint.conditions.ready, endpoint.conditions.serving) == (True, True)
    assert endpoint.target_ref is not None
    assert (endpoint.target_ref.name, endpoint.node_name) == ("a", "n")
    assert [(p.name, p.port, p.protocol) for p in found.ports] == [("http", 8080, "TCP")]


def test_a_pod_that_is_not_ready_is_listed_so() -> None:
    world = world_of(service(), pod("a"))
    assert only(world).endpoints == ()
    run(world, "a", "10.0.0.1", ready=False)
    assert only(world).endpoints[0].conditions.ready is False
    world.change(world.get(Service, "web"), publish_not_ready_addresses=True)
    conditions = only(world).endpoints[0].conditions
    assert (conditions.ready, conditions.serving) == (True, False)


def test_pods_that_leave_take_their_endpoints_along() -> None:
    world = world_of(service(), pod("a"), pod("b"))
    run(world, "a", "10.0.0.1")
    run(world, "b", "10.0.0.2")
    world.delete(world.get(Pod, "a"), grace_s=0)
    assert [e.addresses for e in only(world).endpoints] == [("10.0.0.2",)]
    world.report(world.get(Pod, "b"), "Succeeded", pod_ip="10.0.0.2")
    world.settle()
    assert only(world).endpoints == ()


def test_pods_with_other_port_numbers_have_a_slice_of_their_own() -> None:
    world = world_of(service(), pod("a"), pod("b", port=9090))
    run(world, "a", "10.0.0.1")
    run(world, "b", "10.0.0.2")
    assert sorted(s.ports[0].port for s in world.all(EndpointSlice)) == [8080, 9090]


def test_many_endpoints_are_in_several_slices() -> None:
    world = world_of(service())
    for number in range(ENDPOINTS_MAX + 1):
        world.model.put(pod(f"p{number:03}"))
        world.report(
            world.get(Pod, f"p{number:03}"), "Running", ready=True, pod_ip=f"10.0.0.{number}"
        )
    world.settle()
    assert sorted(len(s.endpoints) for s in world.all(EndpointSlice)) == [1, ENDPOINTS_MAX]


def test_pods_of_a_headless_service_have_host_names() -> None:
    world = world_of(service(clusterIP="None"), pod("web-0", hostname="web-0", subdomain="web"))
    run(world, "web-0", "10.0.0.1")
    found = only(world)
    assert found.endpoints[0].hostname == "web-0"
    assert "service.kubernetes.io/headless" in found.metadata.labels


def test_a_service_without_a_selector_or_that_is_gone_has_no_slices_of_ours() -> None:
    own = thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "by-hand",
        metadata={"labels": {"kubernetes.io/service-name": "web"}},
        addressType="IPv4",
    )
    world = world_of(service(selector={}), own)
    assert [s.metadata.name for s in world.all(EndpointSlice)] == ["by-hand"]
    world.change(world.get(Service, "web"), selector={"app": "web"})
    assert len(world.all(EndpointSlice)) == 2
    world.delete(world.get(Service, "web"))
    assert [s.metadata.name for s in world.all(EndpointSlice)] == ["by-hand"]
