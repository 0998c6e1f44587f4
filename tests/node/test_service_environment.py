"""Environment variables of services, and the folders that a node has elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.node.host_folders import host_folders_of, node_path
from moorage.node.pods.container_environment import NodeContext, environment
from moorage.node.pods.service_environment import NamedPort, server_variables, service_variables
from moorage.node.pods.volumes import Materials, make, volumes_of
from tests.node.world import container, make_pod


def test_a_service_has_the_kubelets_variables() -> None:
    ports = (NamedPort(80, "http"), NamedPort(53, "dns-udp", "UDP"))
    assert service_variables("my-web", "10.0.0.7", ports) == {
        "MY_WEB_SERVICE_HOST": "10.0.0.7",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP": "80",
        "MY_WEB_SERVICE_PORT_DNS_UDP": "53",
        "MY_WEB_PORT": "tcp://10.0.0.7:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.0.0.7:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.0.0.7",
        "MY_WEB_PORT_53_UDP": "udp://10.0.0.7:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "10.0.0.7",
    }
    assert service_variables("headless", "10.0.0.7", ()) == {}


@pytest.mark.parametrize(
    ("url", "host", "port", "link"),
    [
        ("https://127.0.0.1:6443", "127.0.0.1", "6443", "tcp://127.0.0.1:6443"),
        ("https://[fd00::1]:6443", "fd00::1", "6443", "tcp://[fd00::1]:6443"),
        ("https://cluster.example.com", "cluster.example.com", "443", None),
    ],
)
def test_the_server_is_the_service_kubernetes(
    url: str, host: str, port: str, link: str | None
) -> None:
    found = server_variables(url)
    assert (found["KUBERNETES_SERVICE_HOST"], found["KUBERNETES_SERVICE_PORT"]) == (host, port)
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == port
    assert found["KUBERNETES_PORT"] == (link or f"tcp://{host}:{port}")
    assert server_variables("") == {}


def test_variables_of_services_yield_to_those_of_the_container() -> None:
    env = [{"name": "A", "value": "$(WEB_SERVICE_HOST)"}, {"name": "WEB_PORT", "value": "own"}]
    pod = make_pod(container(env=env))
    services = {"WEB_SERVICE_HOST": "10.0.0.7", "WEB_PORT": "tcp://…"}
    assert environment(pod, pod.spec.containers[0], NodeContext(), {}, services) == {
        "WEB_SERVICE_HOST": "10.0.0.7",
        "WEB_PORT": "own",
        "A": "10.0.0.7",
    }


# --- folders of the node --------------------------------------------------------------------------

USUAL = Path("/var/run/cdi")


def test_a_node_in_the_usual_place_has_nothing_elsewhere() -> None:
    assert host_folders_of(Path("/var/lib/kubelet"), [Path("/etc/cdi"), USUAL]) == {}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/var/lib/kubelet", "/data/node"),
        ("/var/lib/kubelet/plugins/x/dra.sock", "/data/node/plugins/x/dra.sock"),
        ("/var/run/cdi/", "/data/cdi"),
        ("/run/cdi/a.json", "/data/cdi/a.json"),
        ("/var/lib/kubelet2", "/var/lib/kubelet2"),
        ("etc", "/etc"),
    ],
)
def test_paths_of_folders_that_a_node_has_elsewhere(path: str, found: str) -> None:
    folders = host_folders_of(Path("/data/node"), [Path("/etc/cdi"), USUAL, Path("/data/cdi")])
    assert str(node_path(path, folders)) == found


def test_a_host_path_of_the_kubelet_is_the_nodes_own_folder(tmp_path: Path) -> None:
    around = NodeContext(host_folders={"/var/lib/kubelet": str(tmp_path / "node")})
    volume = {"name": "v", "hostPath": {"path": "/var/lib/kubelet/plugins_registry"}}
    found = volumes_of(make_pod(volumes=[volume]), Materials(tmp_path, around))
    make(found)  # Runtimes make a folder that is missing, if no type is asked for.
    assert found["v"].path == tmp_path / "node" / "plugins_registry"
    assert found["v"].path.is_dir()
