"""The file of claims: the kubelet's form, whole or refused."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.bulkhead import Fault
from moorage.node.contract import DevicesRefusedError
from moorage.node.dra import checkpoint
from moorage.node.dra.checkpoint import SavedFile, decode, encode, read, write_whole
from moorage.node.dra.claim_info import ClaimInfo, ClaimKey, DriverShare, PreparedDevice
from moorage.node.errors import CheckpointError, SaveError
from tests.node.dra.worlds import World, connected, play
from tests.node.fakedriver import FakeDriver

GPU = "gpu.example.com"

STATE = ClaimInfo(
    ClaimKey("default", "c"),
    "uid-c",
    pods=frozenset({"pod-b", "pod-a"}),
    drivers={
        GPU: DriverShare(
            (
                PreparedDevice("pool", "d", "share", ("req",), (f"{GPU}/device=d",)),
                PreparedDevice("pool", "e"),
            )
        ),
        "nic.example.com": DriverShare(skips=("NodePrepareResources",)),
    },
)
# As a kubelet of 1.37 writes it.
DATA = (
    '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1",'
    '"ClaimInfoStateList":[{"ClaimUID":"uid-c","ClaimName":"c","Namespace":"default",'
    '"PodUIDs":{"pod-a":{},"pod-b":{}},"DriverState":{"gpu.example.com":{"Devices":['
    '{"PoolName":"pool","DeviceName":"d","ShareID":"share","RequestNames":["req"],'
    '"CDIDeviceIDs":["gpu.example.com/device=d"]},'
    '{"PoolName":"pool","DeviceName":"e","ShareID":null,"RequestNames":null,'
    '"CDIDeviceIDs":null}]},'
    '"nic.example.com":{"Devices":null,"skipNodeOperations":["NodePrepareResources"]}}}]}'
)


def kubelets_file(data: str = DATA) -> bytes:
    checksum = zlib.crc32(data.encode())
    return json.dumps({"Data": data, "Checksum": checksum}, separators=(",", ":")).encode()


def test_what_we_write_is_what_a_kubelet_writes() -> None:
    assert encode([STATE]) == kubelets_file()


def test_what_a_kubelet_writes_is_read() -> None:
    assert decode(kubelets_file()) == [STATE]
    empty = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1",'
    assert decode(kubelets_file(empty + '"ClaimInfoStateList":null}')) == []


def test_a_file_of_another_version_is_read_as_far_as_it_is_known() -> None:
    older = DATA.replace('"RequestNames":["req"],', "").replace("/v1", "/v0")
    newer = DATA.replace('"Namespace"', '"Tomorrow":1,"Namespace"').replace("/v1", "/v2")
    (state,) = decode(kubelets_file(older))
    assert [device.requests for _, device in state.devices] == [(), ()]
    assert decode(kubelets_file(newer)) == [STATE]


names = st.text(max_size=8)
devices = st.builds(
    PreparedDevice,
    names,
    names,
    st.none() | names,
    st.lists(names, max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
)
shares = st.builds(
    DriverShare,
    st.lists(devices, max_size=3).map(tuple),
    st.lists(st.sampled_from(["*", "NodePrepareResources"]), max_size=2, unique=True).map(tuple),
)
states = st.builds(
    ClaimInfo,
    st.builds(ClaimKey, names, names),
    names,
    st.frozensets(names, max_size=3),
    st.dictionaries(names, shares, max_size=3),
)


@given(st.lists(states, max_size=4, unique_by=lambda state: state.key))
def test_what_is_written_is_read_again(written: list[ClaimInfo]) -> None:
    assert decode(encode(written)) == sorted(written, key=lambda state: state.key)


@given(st.data())
def test_damage_is_never_taken_for_truth(data: Any) -> None:
    whole = encode([STATE])
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
    cut = whole[:place]
    for content in (damaged, cut):
        with contextlib.suppress(ValueError):
            assert decode(content) == [STATE]  # where the damage means the same, as a space


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "truncated"),
        (b"{}", "missing required field"),
        (kubelets_file().replace(b"uid-c", b"uid-d"), "its checksum is"),
        (kubelets_file('{"kind":"Other"}'), "it is 'Other', not DRACheckpoint"),
        (b"[" * 100_000, ""),
        (b"\xff\xfe", ""),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / checkpoint.FILE_NAME
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: the checkpoint is corrupted: ")
    assert text in str(caught.value)
    assert str(caught.value).endswith("; please drain node and remove DRA state file")


def test_an_agent_does_not_start_on_a_damaged_file() -> None:
    async def scenario(world: World) -> None:
        (world.root / checkpoint.FILE_NAME).write_bytes(b"{")
        with pytest.raises(CheckpointError):
            async with world.agent():
                pass

    play(scenario)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_whole(path, b"old")
    path.with_name(".state.1a.tmp").write_bytes(b"of a crash, longer than what comes")
    SavedFile(path, lambda: b"")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_a_full_disk_is_said_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    write_whole(path, b"old")
    monkeypatch.setattr("moorage.kit.atomic_file.os.fsync", _full)
    with pytest.raises(SaveError, match="state could not be written: No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def _full(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_of_the_pod_and_no_driver_is_asked() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            write, dra.manager.file._write = dra.manager.file._write, _refuse
            with pytest.raises(DevicesRefusedError, match="checkpoint ResourceClaim cache: full"):
                await dra.manager.prepare(pod)
            assert driver.calls == []
            dra.manager.file._write = write
            await dra.manager.prepare(pod)
            dra.manager.file._write = _refuse
            with pytest.raises(DevicesRefusedError, match="checkpoint ResourceClaim state: full"):
                await dra.manager.unprepare(pod)
            with pytest.raises(DevicesRefusedError, match="full"):  # as long as it is not written
                await dra.manager.unprepare(pod)
            dra.manager.file._write = write
            await dra.manager.unprepare(pod)
            assert read(dra.manager.file.path) == []

    play(scenario)


def _refuse(_: Path, __: bytes) -> None:
    raise SaveError("full")


def test_one_write_serves_all_who_wait(tmp_path: Path) -> None:
    async def run() -> None:
        state, written = [0], []
        started, go = threading.Event(), threading.Event()

        def write(_: Path, content: bytes) -> None:
            started.set()
            go.wait(10)
            written.append(content)

        file = SavedFile(tmp_path / "state", lambda: b"%d" % state[0], write)
        first = asyncio.create_task(file.save())
        await asyncio.to_thread(started.wait, 10)
        state[0] = 1
        others = [asyncio.create_task(file.save()) for _ in range(50)]
        await asyncio.sleep(0)
        others[0].cancel()  # nobody else suffers
        go.set()
        await asyncio.gather(first, *others[1:])
        assert written == [b"0", b"1"]

    asyncio.run(run())


def test_an_agent_whose_checkpoint_cannot_be_written_serves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        async with world.agent():
            pass
        dra = world.dra
        dra.manager.file.path.unlink()
        dra.manager.file.path.mkdir()
        async with dra.serving():
            assert dra.manager.file.is_outdated

    play(scenario)
    assert "dra_manager_state could not be written: Is a directory; pods with new" in caplog.text


@pytest.mark.parametrize("record", ["x", {}, {"ClaimUID": 7, "ClaimName": "d", "Namespace": "a"}])
def test_a_record_that_does_not_fit_leaves_the_others(record: Any, faults: list[Fault]) -> None:
    data = json.loads(json.loads(encode([STATE]))["Data"])
    data["ClaimInfoStateList"].insert(0, record)
    text = json.dumps(data)
    content = json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())})
    assert decode(content.encode()) == [STATE]
    assert [each.subject for each in faults] == ["record 0"]
