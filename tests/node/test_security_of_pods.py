"""Security contexts of whole pods: the events and states that users see, and groups of volumes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from moorage.api.schema import api_type
from moorage.kit.clock import settle
from moorage.node.pods.admission import check
from moorage.node.pods.container_environment import CONFIG_MAP, NodeContext, ObjectSource
from moorage.node.pods.volumes import Materials, make, volumes_of
from tests.node.world import World, container, make_node, make_pod, play

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")
AROUND = NodeContext("n", "10.0.0.1", "10.0.0.1", {})
GROUP = 4321


def test_a_container_that_must_not_be_root_waits_with_the_kubelets_words(tmp_path: Path) -> None:
    text = 'container\'s runAsUser breaks non-root policy (pod: "p_default(uid-p)", container: c)'

    async def story(world: World) -> None:
        own = {"runAsNonRoot": True, "runAsUser": 0}
        world.cluster.put(make_pod(container(securityContext=own)))
        await settle()
        assert world.runtime.running() == []
        status = world.cluster.pods["p"].status.container_statuses[0]
        waiting = status.state.waiting if status.state else None
        assert waiting == {"reason": "CreateContainerConfigError", "message": text}
        (event,) = world.told
        assert (event.reason, event.message) == ("Failed", f"Error: {text}")

    play(tmp_path, story)


def test_a_user_namespace_is_refused_with_the_sandbox(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(hostUsers=False))
        await settle()
        assert world.runtime.running() == []
        (event,) = world.told
        assert event.reason == "FailedCreatePodSandBox"
        assert "`spec.hostUsers: false`, runtime does not support user namespaces" in event.message

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("name", "more", "fact"),
    [
        ("kernel.msgmax", {}, '"kernel.msgmax" not allowlisted'),
        ("kernel/msgmax", {}, '"kernel.msgmax" not allowlisted'),
        (
            "net.ipv4.tcp_syncookies",
            {},
            '"net.ipv4.tcp_syncookies" not allowed with host net enabled',
        ),
        (
            "kernel.shm_rmid_forced",
            {"hostIPC": True},
            '"kernel.shm_rmid_forced" not allowed with host ipc enabled',
        ),
        ("kernel.shm_rmid_forced", {}, ""),
    ],
)
def test_a_sysctl_of_the_machine_is_forbidden(name: str, more: dict[str, Any], fact: str) -> None:
    context = {"sysctls": [{"name": name, "value": "1"}]}
    found = check(make_pod(securityContext=context, **more), make_node(), {})
    if not fact:
        assert found is None
        return
    assert found is not None
    assert (found.reason, found.message) == ("SysctlForbidden", f"forbidden sysctl: {fact}")


@pytest.mark.parametrize("sysctls", [5, ["x"], [{"name": 7}], [None], {"a": 1}])
def test_malformed_sysctls_are_no_fault(sysctls: Any) -> None:
    check(make_pod(securityContext={"sysctls": sysctls}), make_node(), {})


@needs_root
def test_volumes_belong_to_the_group_of_their_pod(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir(mode=0o700)
    items = [{"key": "k", "path": "deep/k", "mode": 0o400}]
    pod = make_pod(
        securityContext={"fsGroup": GROUP},
        volumes=[
            {"name": "empty", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "c", "items": items}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "host")}},
        ],
    )
    materials = Materials(tmp_path / "uid-p", AROUND, {ObjectSource(CONFIG_MAP, "c"): {"k": b"v"}})
    for _ in range(2):  # and again, as before tokens expire
        make(volumes_of(pod, materials))
        own = tmp_path / "uid-p/volumes"
        modes = {
            str(path.relative_to(own)): oct(stat.S_IMODE(path.stat().st_mode))
            for path in own.rglob("*")
            if path.stat().st_gid == GROUP
        }
        assert modes == {
            "empty": "0o2777",
            "conf": "0o2755",
            "conf/deep": "0o2755",
            "conf/deep/k": "0o440",
        }
    assert (tmp_path / "host").stat().st_gid == os.getgid()


PAGE = Path(__file__).parents[2] / "docs/explanation/process-runtime.md"
# Of scheduling, ownership and naming: no runtime has a part in them.
NOT_OF_A_RUNTIME = {
    *("name", "containers", "initContainers", "nodeName", "nodeSelector", "schedulerName"),
    *("serviceAccount", "priorityClassName", "preemptionPolicy", "topologySpreadConstraints"),
    *("schedulingGroup", "securityContext"),
}


@pytest.mark.parametrize(
    "name", ["SecurityContext", "PodSecurityContext", "Container", "VolumeMount", "PodSpec"]
)
def test_the_page_says_what_happens_to_every_field(name: str) -> None:
    text = PAGE.read_text("utf-8")
    fields = {each.name for each in api_type(f"core/v1.{name}").json_fields()}
    missing = {each for each in fields - NOT_OF_A_RUNTIME if f"`{each}" not in text}
    assert missing == set()
