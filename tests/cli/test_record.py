"""A recording grows by changes, stays within its size, and is read wherever a cluster is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.cli.main import moor
from moorage.cli.record import Recorder, new_recording
from moorage.insight.history.history import Moment
from moorage.insight.history.recording import read_recording, write_recording
from moorage.insight.snapshot.snapshot import key_of
from tests.insight.history.changes import at, change
from tests.web.fleets import SMALL, holding, waiting


def stored(value: Any) -> Any:
    """Return an object as a server has it."""
    return replace(value, metadata=replace(value.metadata, uid="u", resource_version="1"))


CHANGES = [
    change(3, *map(stored, SMALL)),
    change(5, stored(holding("busy", "gpu-1"))),
    change(9, removed=(("ResourceClaim", "team", "busy"),)),
]


def run(*words: str) -> Result:
    return CliRunner().invoke(moor, list(words))


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "night.moorrec"
    path.write_bytes(write_recording(CHANGES, gates=""))
    return str(path)


def recorder(*, bytes_max: int = 1 << 20, redacts: bool = False) -> tuple[Recorder, io.BytesIO]:
    file = io.BytesIO()
    return Recorder(file, bytes_max, "", redacts=redacts), file


def test_what_is_recorded_can_be_read_after_each_change() -> None:
    writer, file = recorder()
    for number, step in enumerate(CHANGES, 1):
        writer.write(Moment(step.revision, step.time), step.written, step.removed)
        history = read_recording(file.getvalue()).history()
        assert len(history) == number
        assert history.last.revision == step.revision
    assert writer.bytes_written == len(file.getvalue())


def test_recording_is_for_its_owner_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "night.moorrec"
    with new_recording(path):
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        new_recording(path)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        new_recording(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_recording_ends_at_its_size() -> None:
    writer, _ = recorder(bytes_max=2000)
    writer.write(Moment(1, at(1)), SMALL, ())
    sizes = [writer.bytes_written]
    for number in range(2, 40):
        writer.write(Moment(number, at(number)), waiting(f"pod-{number}-{'x' * number}"), ())
        sizes.append(writer.bytes_written)
        if writer.is_full:
            break
    assert sizes[-2] < 2000 <= sizes[-1] < 3000


def test_a_small_change_costs_little() -> None:
    writer, _ = recorder()
    writer.write(Moment(1, at(1)), SMALL, ())
    before = writer.bytes_written
    writer.write(Moment(2, at(2)), [holding("busy", "gpu-1")], ())
    assert writer.bytes_written - before < 200


def test_what_decides_nothing_is_left_out_on_request() -> None:
    message = "0/3 nodes: secret-host is full"
    for redacts in (False, True):
        writer, file = recorder(redacts=redacts)
        writer.write(Moment(1, at(1)), waiting("pod", message), ())
        found = read_recording(file.getvalue())
        assert found.header.redacted is redacts
        (pod,) = found.history().snapshot().pods
        assert (message in str(pod)) is not redacts


@given(st.lists(st.sampled_from(SMALL), unique_by=key_of, max_size=8))
def test_any_objects_come_back(objects: list[Any]) -> None:
    writer, file = recorder()
    if objects:
        writer.write(Moment(1, at(1)), objects, ())
        snapshot = read_recording(file.getvalue()).history().snapshot()
        assert {key_of(each) for each in snapshot.objects()} == {key_of(each) for each in objects}


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "holder"),
    [([], ""), (["--at", "3"], "gpu-0"), (["--at", "5"], "gpu-1"), (["--at", str(at(6))], "gpu-1")],
)
def test_devices_are_those_of_the_moment(recorded: str, moment: list[str], holder: str) -> None:
    result = run("devices", "--on", recorded, *moment, "--state", "taken", "-o", "name")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().rpartition("/")[2] == holder


def test_a_moment_that_is_not_recorded_is_an_error(recorded: str) -> None:
    result = run("devices", "--on", recorded, "--at", "1")
    assert result.exit_code == 3
    assert "1 is before the recording" in result.stderr
    result = run("devices", "--on", recorded, "--at", "noon")
    assert "neither a revision nor a time" in result.stderr


def test_a_moment_needs_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    result = run("devices", "--on", str(file), "--at", "1")
    assert result.exit_code == 3
    assert "no recording" in result.stderr
    assert run("devices", "-f", str(file), "--at", "1").exit_code == 2


def test_a_torn_recording_is_read_with_a_warning(recorded: str) -> None:
    path = Path(recorded)
    path.write_bytes(path.read_bytes()[:-3])
    result = run("devices", "--on", recorded, "--state", "taken", "-o", "name")
    assert result.exit_code == 0
    assert "is not whole" in result.stderr
    assert result.stdout.strip().endswith("gpu-1")


def test_a_file_of_another_name_or_one_that_exists_is_refused(recorded: str) -> None:
    kubeconfig = Path(recorded).with_name("config")
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {}}]\n"
    )
    before = Path(recorded).read_bytes()
    result = run("record", "-o", recorded, "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 3
    assert "exists" in result.stderr
    assert Path(recorded).read_bytes() == before
    assert run("record", "-o", "x.tar.gz").exit_code == 2
    assert run("record", "-o", "x.moorrec", "--max-size", "none").exit_code == 2


def test_a_cluster_that_does_not_answer_leaves_no_file(tmp_path: Path) -> None:
    result = run("record", "-o", str(tmp_path / "x.moorrec"), "--kubeconfig", "/nowhere")
    assert result.exit_code == 3
    assert not (tmp_path / "x.moorrec").exists()


def test_live_is_taken_as_other_commands_need_it(tmp_path: Path) -> None:
    path, missing = str(tmp_path / "night.moorrec"), str(tmp_path / "no-kubeconfig")
    result = run("record", "--live", "-o", path, "--kubeconfig", missing)
    assert result.exit_code == 3
    assert "no-kubeconfig" in result.output
