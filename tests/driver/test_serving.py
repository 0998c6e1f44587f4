"""A driver is found, known, and left without traces, by its real sockets."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from moorage.client.api_client import ApiClient
from moorage.driver.errors import CheckpointError, RegistrationError, StartError
from moorage.driver.serving import serving
from moorage.driver.settings import rolling_registrar_name
from moorage.wire.registration_pb2 import InfoRequest
from moorage.wire.services import (
    DRA_V1,
    DRA_V1BETA1,
    GET_INFO,
    SOCKET_PATH_BYTES_MAX,
    call,
    open_socket,
)
from tests.driver.stage import (
    NAME,
    NODE,
    Blinkers,
    played,
    published,
    register,
    settings_in,
    slices,
)


@played
async def test_a_driver_tells_who_it_is(folder: Path, client: ApiClient) -> None:
    async with serving(Blinkers(), settings_in(folder), client) as running:
        assert running.registrar_socket == folder / f"kubelet/plugins_registry/{NAME}-reg.sock"
        info = await register(running.registrar_socket)
        assert (info.type, info.name) == ("DRAPlugin", NAME)
        assert info.endpoint == str(folder / f"kubelet/plugins/{NAME}/dra.sock")
        assert list(info.supported_versions) == [DRA_V1, DRA_V1BETA1]
        await running.wait_registered()


@played
async def test_a_refusal_is_reported(folder: Path, client: ApiClient) -> None:
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.registrar_socket is not None
        await register(running.registrar_socket, error="too old")
        (error,) = driver.errors
        assert isinstance(error, RegistrationError)
        assert str(error) == "the node refused the driver: too old"


@played
async def test_devices_are_published_and_republished(folder: Path, client: ApiClient) -> None:
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        await running.wait_published()
        assert await published(client) == ["blue", "green", "red"]
        (only,) = await slices(client)
        assert only.spec.node_name == NODE
        assert only.metadata.owner_references[0].uid
        driver.inventory = driver.inventory[:1]
        await asyncio.to_thread(driver.republish)  # from another thread, as hardware may call
        await asyncio.sleep(0)
        await running.wait_published()
        assert await published(client) == ["red"]


@played
async def test_sockets_are_gone_at_the_end(folder: Path, client: ApiClient) -> None:
    async with serving(Blinkers(), settings_in(folder), client) as running:
        sockets = [running.socket, running.registrar_socket]
        assert all(each is not None and each.is_socket() for each in sockets)
    assert not any(each is not None and each.exists() for each in sockets)


@played
async def test_sockets_left_behind_are_replaced(folder: Path, client: ApiClient) -> None:
    path = settings_in(folder).socket(NAME)
    path.parent.mkdir(parents=True)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    async with serving(Blinkers(), settings_in(folder), client) as running:
        assert running.registrar_socket is not None
        await register(running.registrar_socket)


@played
async def test_other_files_in_the_way_are_left_and_named(folder: Path, client: ApiClient) -> None:
    path = settings_in(folder).socket(NAME)
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    with pytest.raises(StartError, match=r"dra\.sock is in the way: it is no socket"):
        async with serving(Blinkers(), settings_in(folder), client):
            pass
    assert path.read_text() == "precious"


@played
async def test_a_second_instance_is_refused(folder: Path, client: ApiClient) -> None:
    async with serving(Blinkers(), settings_in(folder), client):
        with pytest.raises(StartError, match="another driver runs with the folder"):
            async with serving(Blinkers(), settings_in(folder), client):
                pass


@played
async def test_a_driver_runs_beside_its_next_version(folder: Path, client: ApiClient) -> None:
    old, new = (settings_in(folder, pod_uid=uid) for uid in ("uid-1", "uid-2"))
    async with serving(Blinkers(), new, client) as second:
        async with serving(Blinkers(), old, client) as first:
            assert first.socket != second.socket
            assert first.registrar_socket is not None
            assert first.registrar_socket.name == f"{NAME}-uid-1-reg.sock"
        assert second.registrar_socket is not None
        async with open_socket(second.registrar_socket) as channel:
            info = await call(channel, GET_INFO)(InfoRequest(), timeout=5)
        assert info.endpoint.endswith("/dra-uid-2.sock")


@pytest.mark.parametrize(
    ("driver", "wanted"),
    [
        ("gpu.example.com", "gpu.example.com-0f2c5a6e-8a7d-4d3c-9c3f-0123456789ab-reg.sock"),
        ("a" * 40, "a" * 40 + "-TmQ3oNAP41Y-reg.sock"),
        ("a" * 63, "dra-a1shaQKQ_-7poxraUoMrcA-reg.sock"),
    ],
)
def test_names_of_sockets_stay_short(driver: str, wanted: str) -> None:
    folder = Path("/var/lib/kubelet/plugins_registry")
    found = rolling_registrar_name(folder, driver, "0f2c5a6e-8a7d-4d3c-9c3f-0123456789ab")
    assert len(str(folder / found)) <= SOCKET_PATH_BYTES_MAX
    assert found == wanted


@played
async def test_a_folder_that_is_too_deep_is_named(folder: Path, client: ApiClient) -> None:
    deep = settings_in(folder, kubelet_dir=folder / ("x" * 100))
    with pytest.raises(StartError, match="may have 107 bytes"):
        async with serving(Blinkers(), deep, client):
            pass


@played
async def test_a_corrupted_checkpoint_is_said(folder: Path, client: ApiClient) -> None:
    path = settings_in(folder).data_folder(NAME) / "checkpoint.json"
    path.parent.mkdir(parents=True)
    for data in (b"{", b'{"checksum":1,"data":{"version":"v1","claims":[]}}'):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"is corrupted: .*drain the node"):
            async with serving(Blinkers(), settings_in(folder), client):
                pass


@played
async def test_a_driver_without_a_proper_name_is_refused(folder: Path, client: ApiClient) -> None:
    class Nameless(Blinkers):
        name = "Not a name"

    with pytest.raises(StartError, match="'Not a name' cannot be the name of a driver"):
        async with serving(Nameless(), settings_in(folder), client):
            pass
