"""Podman's command lines and outputs, without podman."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.cdi import ContainerEdits, DeviceNode, Hook, Mount, NetDevice
from moorage.api.timestamp import Timestamp
from moorage.node.runtime.contract import (
    ContainerSpec,
    LogRange,
    Phase,
    ResourceLimits,
    RuntimeRefusedError,
)
from moorage.node.runtime.podman import command_line
from tests.node.runtime.contract_suite import MAIN


def spec(**fields: Any) -> ContainerSpec:
    return ContainerSpec(MAIN, "default", "pod", **{"image": "busybox:1", **fields})


def options(**fields: Any) -> set[str]:
    return set(command_line.run_line("me", spec(**fields)))


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"env": {"A": "x y"}}, {"--env=A=x y"}),
        ({"command": ("a", "b c")}, {'--entrypoint=["a", "b c"]'}),
        ({"working_dir": "/work", "tty": True, "stdin": True}, {"--workdir=/work", "--tty"}),
        ({"limits": ResourceLimits(cpu_millis=1500)}, {"--cpus=1.5"}),
        ({"limits": ResourceLimits(memory_bytes=1024)}, {"--memory=1024b"}),
        ({"limits": ResourceLimits(cpus=(0, 2), memory_nodes=(1,))}, {"--cpuset-cpus=0,2"}),
        ({"cdi_ids": ("a.b/c=d",)}, {"--device=a.b/c=d"}),
        ({"annotations": {"k": "v"}}, {"--annotation=k=v"}),
        (
            {"edits": ContainerEdits(device_nodes=(DeviceNode(path="/dev/x"),))},
            {"--device=/dev/x:/dev/x"},
        ),
        ({"edits": ContainerEdits(additional_gids=(44,))}, {"--group-add=44"}),
        (
            {"edits": ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b"),))},
            {"--volume=/a:/b"},
        ),
    ],
)
def test_container_is_told_in_options(fields: dict[str, Any], wanted: set[str]) -> None:
    assert wanted <= options(**fields)


@given(st.dictionaries(st.text("AB =#\n", min_size=1), st.text("v= '#\n\r\0")))
def test_each_variable_is_in_the_file_or_on_the_line(env: dict[str, str]) -> None:
    written = spec(env=env)
    line = command_line.run_line("me", written, env_file="/f")
    in_file = command_line.env_file_of(written).removesuffix("\n").split("\n")
    on_line = [each.removeprefix("--env=") for each in line if each.startswith("--env=")]
    told = sorted([*filter(None, in_file), *on_line])
    assert told == sorted(f"{key}={value}" for key, value in env.items())
    assert all(each[0] not in " #=" for each in in_file if each)


@given(st.lists(st.text().filter(lambda text: "\0" not in text)), st.text(max_size=8))
def test_nothing_of_a_container_is_taken_for_an_option(args: list[str], value: str) -> None:
    line = command_line.run_line("me", spec(args=tuple(args), env={"A": value}, working_dir=value))
    place = line.index("busybox:1")
    assert line[place + 1 :] == args
    assert all(each.startswith("--") for each in line[1:place])


@pytest.mark.parametrize(
    "edits",
    [
        ContainerEdits(hooks=(Hook(hook_name="prestart", path="/x"),)),
        ContainerEdits(net_devices=(NetDevice(host_interface_name="eth1", name="net0"),)),
        ContainerEdits(device_nodes=(DeviceNode(path="/dev/a:b"),)),
    ],
)
def test_what_podman_cannot_do_is_refused(edits: ContainerEdits) -> None:
    with pytest.raises(RuntimeRefusedError):
        options(edits=edits)


def test_log_is_asked_for_in_part() -> None:
    since = Timestamp.parse("2026-11-15T12:00:00Z")
    line = command_line.logs_line("x", LogRange(follow=True, tail_lines=3, since=since))
    assert line == ["logs", "--follow", "--tail=3", "--since=2026-11-15T12:00:00+00:00", "x"]


def inspected(labels: dict[str, str] | None = None, **state: Any) -> bytes:
    known = {
        command_line.POD: MAIN.pod_uid,
        command_line.CONTAINER: MAIN.name,
        command_line.ATTEMPT: "0",
    }
    shape = {"Status": "exited", "StartedAt": "2026-11-15T12:00:00.123456789Z", **state}
    tree = {"id": "abc", "labels": known if labels is None else labels, "state": shape}
    return json.dumps(tree).encode()


def test_memory_that_ran_out_is_told() -> None:
    line = inspected(OOMKilled=True, ExitCode=137, FinishedAt="2026-11-15T12:00:05Z")
    (container,) = command_line.read_inspected(line)
    state = command_line.state_of(container)
    assert state is not None
    assert (state.phase, state.reason, state.exit_code) == (Phase.EXITED, "OOMKilled", 137)
    assert str(state.finished_at) == "2026-11-15T12:00:05Z"


def test_end_that_nobody_saw_is_no_success() -> None:
    line = inspected(ExitCode=0, FinishedAt="0001-01-01T00:00:00Z")
    (container,) = command_line.read_inspected(line)
    state = command_line.state_of(container)
    assert state is not None
    assert (state.exit_code, state.reason) == (137, "ContainerStatusUnknown")
    assert state.finished_at == state.started_at


def test_annotation_that_is_too_long_is_left_out() -> None:
    found = options(annotations={"long": "x" * 100_000, "short": "y"})
    assert "--annotation=short=y" in found
    assert not any(each.startswith("--annotation=long") for each in found)


@pytest.mark.parametrize("status", ["created", "configured", "initialized"])
def test_container_that_never_started_is_none_yet(status: str) -> None:
    (container,) = command_line.read_inspected(inspected(Status=status))
    assert command_line.state_of(container) is None


@pytest.mark.parametrize("attempt", ["", "x", "-1", "²"])
def test_container_with_other_labels_is_not_ours(attempt: str) -> None:
    labels = {command_line.POD: "a", command_line.CONTAINER: "b", command_line.ATTEMPT: attempt}
    (container,) = command_line.read_inspected(inspected(labels))
    assert command_line.state_of(container) is None


@given(st.binary())
def test_whatever_podman_says_is_read_or_passed_over(output: bytes) -> None:
    assert all(each.id is not None for each in command_line.read_inspected(output))
    assert isinstance(command_line.event_id(output), str)
