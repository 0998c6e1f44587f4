"""Names, addresses, ports and mounts of pods: given, or refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import ContainerEdits, Mount
from moorage.node.errors import ConfigError
from moorage.node.pods.container_environment import NodeContext
from moorage.node.pods.machine_fields import check_machine_fields, etc_files, host_name
from moorage.node.pods.volumes import Materials, make, mounts_of, volumes_of
from moorage.node.runtime.contract import RuntimeRefusedError
from moorage.node.runtime.podman.command_line import run_line
from moorage.node.runtime.process import ProcessRuntime
from tests.node.runtime.bench import Bench, shell, told_by
from tests.node.world import container, make_pod

AROUND = NodeContext("n", "10.0.0.1", "10.0.0.1", {})
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("r"))


def test_aliases_are_added_to_the_hosts_of_the_machine() -> None:
    pod = make_pod(hostAliases=[{"ip": "10.1.2.3", "hostnames": ["a.example", "b"]}])
    text = etc_files(pod)["hosts"].decode()
    assert text.startswith(Path("/etc/hosts").read_text().splitlines()[0])
    assert text.endswith("# Entries added by HostAliases.\n10.1.2.3\ta.example\tb\n")


def test_a_policy_of_none_replaces_the_resolver_of_the_machine() -> None:
    config = {
        "nameservers": ["10.0.0.53", "10.0.0.53"],
        "searches": ["x.example"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }
    text = etc_files(make_pod(dnsPolicy="None", dnsConfig=config))["resolv.conf"].decode()
    assert text == "nameserver 10.0.0.53\nsearch x.example\noptions ndots:2 edns0\n"


def test_without_either_nothing_is_made() -> None:
    assert etc_files(make_pod(dnsPolicy="ClusterFirst")) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"hostAliases": [{"ip": "10.0.0.1\n6.6.6.6 bank", "hostnames": ["a"]}]},
        {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a\n6.6.6.6 bank"]}]},
        {"hostAliases": [{"ip": "10.0.0.1", "hostnames": "a"}]},
        {"hostAliases": ["x"]},
        {"dnsConfig": {"nameservers": ["x"]}},
        {"dnsConfig": {"nameservers": "10.0.0.1"}},
        {"dnsConfig": {"searches": ["a b"]}},
        {"dnsConfig": {"options": [{"name": "a\nnameserver 6.6.6.6"}]}},
        {"dnsConfig": {"options": [5]}},
    ],
)
def test_nothing_of_a_pod_writes_another_line(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        etc_files(make_pod(**fields))


@needs_root
def test_containers_see_their_own_files_and_the_machine_does_not(
    bench: Bench, tmp_path: Path
) -> None:
    before = Path("/etc/hosts").read_bytes()
    pod = make_pod(hostAliases=[{"ip": "10.1.2.3", "hostnames": ["alias"]}])
    volumes = volumes_of(pod, Materials(tmp_path / "uid-p", AROUND))
    make(volumes)
    mounts = mounts_of(pod.spec.containers[0], volumes, {})

    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "grep alias /etc/hosts", edits=ContainerEdits(mounts=mounts))
        assert await told_by(runtime, spec) == "10.1.2.3\talias\n"

    bench.play(story)
    assert Path("/etc/hosts").read_bytes() == before


def test_a_mount_of_the_container_wins() -> None:
    pod = make_pod(
        container(volumeMounts=[{"name": "v", "mountPath": "/etc/hosts"}]),
        volumes=[{"name": "v", "hostPath": {"path": "/etc/hostname"}}],
        hostAliases=[{"ip": "10.1.2.3", "hostnames": ["alias"]}],
    )
    mounts = mounts_of(pod.spec.containers[0], volumes_of(pod, Materials(Path("/x"), AROUND)), {})
    assert [each.host_path for each in mounts] == ["/etc/hostname"]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "p"),
        ({"hostname": "web"}, "web"),
        ({"hostname": "web", "hostnameOverride": "other"}, "other"),
        ({"setHostnameAsFQDN": True}, "p"),
    ],
)
def test_a_pod_has_its_host_name(spec: dict[str, Any], name: str) -> None:
    assert host_name(make_pod(**spec)) == name


def test_a_name_that_needs_a_cluster_domain_is_refused() -> None:
    with pytest.raises(ConfigError, match="setHostnameAsFQDN: this node has no cluster domain"):
        host_name(make_pod(hostname="a", subdomain="b", setHostnameAsFQDN=True))


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"ports": [{"containerPort": 80, "hostPort": 8080}]}, "hostPort 8080: containers have"),
        ({"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}, "volumeDevices: this node"),
        ({"ports": [{"containerPort": 80, "hostPort": 80}]}, ""),
    ],
)
def test_what_the_machine_cannot_give_is_refused(fields: dict[str, Any], fact: str) -> None:
    one = make_pod(container(**fields)).spec.containers[0]
    if not fact:
        check_machine_fields(one)
        return
    with pytest.raises(ConfigError, match=fact):
        check_machine_fields(one)


# --- mounts ---------------------------------------------------------------------------------------


def options_of(**mount: Any) -> tuple[str, ...]:
    pod = make_pod(
        container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    volumes = volumes_of(pod, Materials(Path("/x"), AROUND))
    (found,) = mounts_of(pod.spec.containers[0], volumes, {})
    return found.options


@pytest.mark.parametrize(
    ("mount", "options"),
    [
        ({}, ("rbind", "rw")),
        ({"mountPropagation": "None", "readOnly": True}, ("rbind", "ro")),
        ({"mountPropagation": "HostToContainer"}, ("rbind", "rw", "rslave")),
        ({"mountPropagation": "Bidirectional"}, ("rbind", "rw", "rshared")),
        ({"readOnly": True, "recursiveReadOnly": "Disabled"}, ("rbind", "ro")),
        ({"readOnly": True, "recursiveReadOnly": "Enabled"}, ("rbind", "ro", "rro")),
        (
            {"readOnly": True, "recursiveReadOnly": "IfPossible"},
            ("rbind", "ro", "rro-if-possible"),
        ),
    ],
)
def test_modes_of_mounts_are_options(mount: dict[str, Any], options: tuple[str, ...]) -> None:
    assert options_of(**mount) == options


@pytest.mark.parametrize(
    ("mount", "fact"),
    [
        ({"mountPropagation": "Sideways"}, "unknown mountPropagation"),
        ({"recursiveReadOnly": "Enabled"}, 'volume "v" requested .* but it is not read-only'),
        (
            {"recursiveReadOnly": "Enabled", "readOnly": True, "mountPropagation": "Bidirectional"},
            'not compatible with propagation "Bidirectional"',
        ),
        ({"recursiveReadOnly": "Perhaps", "readOnly": True}, "unknown recursive read-only mode"),
    ],
)
def test_modes_without_meaning_are_refused(mount: dict[str, Any], fact: str) -> None:
    with pytest.raises(ConfigError, match=fact):
        options_of(**mount)


def mounted(*options: str) -> ContainerEdits:
    mount = Mount(host_path="/tmp", container_path="/mnt/x", options=("rbind", *options))
    return ContainerEdits(mounts=(mount,))


def test_podman_makes_no_mount_read_only_with_all_in_it() -> None:
    spec = shell("a", "true", edits=mounted("ro", "rro"), image="i")
    with pytest.raises(RuntimeRefusedError, match="recursive read-only mode, but it is not supp"):
        run_line("me", spec)
    spec = shell("a", "true", edits=mounted("ro", "rro-if-possible"), image="i")
    assert "--volume=/tmp:/mnt/x:ro" in run_line("me", spec)


def test_a_process_shares_no_mounts_with_the_machine(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        with pytest.raises(RuntimeRefusedError, match="cannot have mountPropagation Bidirectional"):
            await runtime.start(shell("a", "true", edits=mounted("rw", "rshared")))
        assert await told_by(runtime, shell("b", "echo fine")) == "fine\n"

    bench.play(story)


@needs_root
@pytest.mark.parametrize(("option", "told"), [("rro", "no\n"), ("ro", "yes\n")])
def test_read_only_with_all_mounts_in_it(bench: Bench, option: str, told: str) -> None:
    """A file system within a volume is read-only only if the mount says so."""

    async def story(runtime: ProcessRuntime) -> None:
        mount = Mount(host_path="/dev", container_path="/mnt/x", options=("rbind", "ro", option))
        script = "(echo x > /mnt/x/shm/moorage-test) 2>/dev/null && echo yes || echo no"
        script += "; rm -f /dev/shm/moorage-test"
        spec = shell("a", script, edits=ContainerEdits(mounts=(mount,)))
        assert await told_by(runtime, spec) == told

    if not os.path.ismount("/dev/shm"):
        pytest.skip("/dev/shm is no file system of its own")
    bench.play(story)
