"""Sockets appear in the registry folder, and drivers register by them."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

import pytest

from moorage.kit.bulkhead import Fault
from moorage.node import inotify
from moorage.node.dra import plugin_registration, service
from moorage.node.dra.plugin_manager import DraPluginManager
from moorage.node.dra.plugin_registration import PluginInfo, Registrar
from moorage.node.dra.service import REGISTRY
from moorage.node.errors import NotRegisteredError, RegistrationRefusedError
from moorage.wire.services import DEVICE_PLUGIN, DRA_V1, DRA_V1BETA1, HEALTH_V1
from tests.node.dra.worlds import World, connected, play, until
from tests.node.fakedriver import FakeDriver

GPU = "gpu.example.com"


def test_a_driver_is_registered_and_told_so() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            async with FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1)) as driver:
                status = await driver.until_told()
                assert (status.plugin_registered, status.error) == (True, "")
                await connected(dra, GPU)
                instance = dra.drivers.get(GPU)
                assert (instance.version, instance.health_version) == (DRA_V1, HEALTH_V1)
            await until(lambda: not dra.drivers.names())

    play(scenario)


def test_a_driver_that_was_there_before_the_agent_is_found() -> None:
    async def scenario(world: World) -> None:
        async with FakeDriver(world.root, GPU) as driver, world.agent() as dra:
            await connected(dra, GPU)
            assert (await driver.until_told()).plugin_registered

    play(scenario)


def test_sockets_in_sub_folders_are_found() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU)
            driver.registry = world.root / REGISTRY / "a" / "b"
            driver.registration_socket = driver.registry / "r.sock"
            async with driver:
                await connected(dra, GPU)

    play(scenario)


INVALID = (
    "plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin "
    "gpu.example.com at endpoint {endpoint}: "
)
REFUSALS = [
    (
        {"type_": "Other"},
        "no handler registered for plugin type: Other at socket {registration}",
    ),
    (
        {"versions": ()},
        INVALID + "empty list of supported gRPC services (aka supported versions)",
    ),
    (
        {"versions": ("1.0.0", "v2.DRAPlugin")},
        INVALID + 'none of services supported by the plugin (["1.0.0" "v2.DRAPlugin"]) are '
        'supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
    ),
    (
        {"endpoint": "/" + "x" * 200},
        "plugin validation failed with err: endpoint of DRA driver plugin gpu.example.com "
        'cannot be a socket: "/' + "x" * 200 + '"',
    ),
]


@pytest.mark.parametrize(("said", "text"), REFUSALS, ids=["type", "none", "unknown", "endpoint"])
def test_what_cannot_be_used_is_refused_in_the_kubelets_words(
    said: dict[str, object], text: str
) -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU, **said)  # type: ignore[arg-type]
            async with driver:
                status = await driver.until_told()
                places = {"registration": driver.registration_socket, "endpoint": driver.endpoint}
                assert not status.plugin_registered
                assert status.error == f"RegisterPlugin error -- {text.format(**places)}"
                assert dra.drivers.names() == []

    play(scenario)


@pytest.mark.parametrize("name", ["", "Not A Name", "x" * 64, "a..b"])
def test_a_driver_needs_a_name_that_can_be_one(name: str) -> None:
    plugin = PluginInfo("DRAPlugin", name, "/e.sock", (DRA_V1,))
    with pytest.raises(RegistrationRefusedError, match="invalid DRA driver name"):
        DraPluginManager(Nobody()).check(plugin)


class Nobody:
    def usable(self, driver: str) -> None: ...

    def unusable(self, driver: str) -> None: ...


def test_without_an_endpoint_it_is_the_socket_itself() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU, endpoint="")
            async with driver:
                await driver.until_told()
                assert dra.drivers.get(GPU).endpoint == str(driver.registration_socket)

    play(scenario)


def test_a_driver_in_a_pod_names_its_socket_as_the_pod_sees_it() -> None:
    async def scenario(world: World) -> None:
        world.settings["host_folders"] = {"/var/lib/kubelet": str(world.root)}
        async with world.agent() as dra:
            own = world.root / "plugins" / GPU / "dra.sock"
            seen = f"/var/lib/kubelet/plugins/{GPU}/dra.sock"
            async with FakeDriver(world.root, GPU, endpoint=seen) as driver:
                assert (await driver.until_told()).plugin_registered
                assert dra.drivers.get(GPU).endpoint == str(own)

    play(scenario)


def test_foreign_files_are_left_alone() -> None:
    async def scenario(world: World) -> None:
        folder = world.root / REGISTRY
        folder.mkdir()
        (folder / "readme.txt").write_text("no socket")
        (folder / "nowhere").symlink_to("/nonexistent")
        (folder / ".hidden.sock").symlink_to("/dev/null")
        (folder / "up").symlink_to("..")
        async with world.agent() as dra, FakeDriver(world.root, GPU):
            await connected(dra, GPU)
            assert dra.drivers.names() == [GPU]
            assert (folder / "readme.txt").read_text() == "no socket"

    play(scenario)


def test_a_socket_left_behind_or_silent_holds_up_nobody_and_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        folder = world.root / REGISTRY
        folder.mkdir()
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "dead.sock"))
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(folder / "silent.sock"))
            silent.listen()
            drivers = DraPluginManager(Nobody())
            registrar = Registrar({"DRAPlugin": drivers}, info_timeout_s=0.05)
            following = plugin_registration.follow_sockets(folder)
            async with drivers.running(), FakeDriver(world.root, GPU):
                task = asyncio.create_task(registrar.run(following))
                await until(lambda: drivers.is_usable(GPU))
                await until(lambda: len(_about(caplog, "dead")) > 0)
                await until(lambda: len(_about(caplog, "silent")) > 0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await following.aclose()

    with caplog.at_level(logging.WARNING):
        play(scenario)
    assert "again in 0.5 s" in _about(caplog, "dead.sock")[0]


def _about(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def test_a_driver_that_cannot_be_told_is_not_used() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU)
            driver.notify_fails = True
            async with driver:
                await driver.until_told()
                await until(lambda: not dra.drivers.names())
                driver.notify_fails = False
                await driver.until(lambda: len(driver.statuses) == 2)  # tried again
                await connected(dra, GPU)

    play(scenario)


def test_a_driver_that_talks_garbage_is_said_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU)
            driver.is_garbled = True
            async with driver:
                await until(lambda: bool(_about(caplog, "the answer is no PluginInfo")))
                driver.is_garbled = False
                await connected(dra, GPU)

    play(scenario)


def test_the_newest_instance_that_is_connected_is_asked() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        old = FakeDriver(world.root, GPU, instance="-1", versions=(DRA_V1BETA1,))
        new = FakeDriver(world.root, GPU, instance="-2")
        async with world.agent() as dra, old:
            await connected(dra, GPU)
            async with new:
                await new.until_told()
                await until(lambda: dra.drivers.get(GPU).endpoint == new.endpoint)
                await dra.manager.prepare(pod)
                assert (len(old.calls), len(new.calls)) == (0, 1)
                await new.crash()
                await until(lambda: dra.drivers.get(GPU).endpoint == old.endpoint)
                await dra.manager.unprepare(pod)
                assert (len(old.calls), len(new.calls)) == (1, 1)
                await old.crash()
                await until(lambda: not dra.drivers.is_usable(GPU))
                assert dra.drivers.get(GPU).endpoint == new.endpoint  # none: the newest

    play(scenario)


def test_an_endpoint_belongs_to_one_instance() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra, FakeDriver(world.root, GPU) as first:
            await connected(dra, GPU)
            second = FakeDriver(world.root, GPU, instance="-2", endpoint=first.endpoint)
            async with second:
                status = await second.until_told()
                assert status.error == (
                    "RegisterPlugin error -- plugin registration failed with err: endpoint "
                    f"{first.endpoint} already registered for DRA driver plugin {GPU}"
                )
            assert dra.drivers.is_usable(GPU)

    play(scenario)


def test_a_driver_that_crashed_is_connected_again_when_it_is_back() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await driver.crash()
            await until(lambda: not dra.drivers.is_usable(GPU))
            assert dra.drivers.names() == [GPU]  # its sockets are still there
            await driver.serve()
            await connected(dra, GPU)

    play(scenario)


def test_a_socket_made_anew_is_registered_anew() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await driver.until_told()
            await driver.stop()
            await driver.serve()
            await driver.register()
            await driver.until(lambda: len(driver.statuses) == 2)
            await connected(dra, GPU)

    play(scenario)


class Handler:
    def __init__(self) -> None:
        self.plugins: list[PluginInfo] = []

    def check(self, plugin: PluginInfo) -> None: ...

    async def register(self, plugin: PluginInfo) -> None:
        self.plugins.append(plugin)

    async def deregister(self, plugin: PluginInfo) -> None:
        self.plugins.remove(plugin)


def test_plugins_of_other_types_go_to_their_own_handler() -> None:
    async def scenario(world: World) -> None:
        handler = Handler()
        world.settings["handlers"] = {DEVICE_PLUGIN: handler}
        driver = FakeDriver(world.root, "fpga", type_=DEVICE_PLUGIN, versions=("v1beta1",))
        async with world.agent() as dra, driver:
            assert (await driver.until_told()).plugin_registered
            wanted = PluginInfo(DEVICE_PLUGIN, "fpga", driver.endpoint, ("v1beta1",))
            assert handler.plugins == [wanted]
            assert dra.drivers.names() == []
        assert handler.plugins == []

    play(scenario)


@pytest.mark.parametrize("has_events", [True, False], ids=["events", "polling"])
def test_the_folder_is_followed(has_events: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_registration, "POLL_S", 0.005)

    async def scenario(world: World) -> None:
        folder = world.root / REGISTRY
        following = plugin_registration.follow_sockets(folder, has_events=has_events)
        assert await anext(following) == frozenset()
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(folder / "one.sock"))
        (first,) = await anext(following)
        assert first.path == folder / "one.sock"
        (folder / "sub").mkdir()
        with socket.socket(socket.AF_UNIX) as two:
            two.bind(str(folder / "sub" / "two.sock"))
        assert {each.path.name for each in await anext(following)} == {"one.sock", "two.sock"}
        first.path.unlink()
        assert {each.path.name for each in await anext(following)} == {"two.sock"}
        await following.aclose()

    play(scenario)


def test_a_folder_that_cannot_be_watched_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin_registration, "POLL_S", 0.005)
    monkeypatch.setattr(inotify, "_add_watch", lambda *_: errno.ENOSPC)

    async def scenario(world: World) -> None:
        folder = world.root / REGISTRY
        following = plugin_registration.follow_sockets(folder)
        assert await anext(following) == frozenset()
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(folder / "one.sock"))
        (first,) = await anext(following)
        assert first.path == folder / "one.sock"
        await following.aclose()
        assert f"{folder} cannot be watched: No space left on device" in caplog.text

    play(scenario)


def test_what_fails_while_claims_are_served_is_said_and_begun_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, faults: list[Fault]
) -> None:
    monkeypatch.setattr(service, "RETRY_S", 0.005)
    errors = [RuntimeError("of pods")]

    def active() -> list[str]:
        if errors:
            raise errors.pop()
        asked.set()
        return []

    async def scenario(world: World) -> None:
        world.find_active = active
        async with world.agent() as dra, FakeDriver(world.root, GPU):
            await asked.wait()
            await connected(dra, GPU)
        assert "following pods: the node begins again: RuntimeError: of pods" in caplog.text
        assert [each.place for each in faults] == ["following pods"]

    asked = asyncio.Event()
    play(scenario)


def test_a_folder_with_too_many_files_is_read_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin_registration, "ENTRIES_MAX", 10)

    async def scenario(world: World) -> None:
        folder = world.root / REGISTRY
        folder.mkdir()
        for number in range(20):
            (folder / str(number)).touch()
        following = plugin_registration.follow_sockets(folder)
        assert await anext(following) == frozenset()
        await following.aclose()

    play(scenario)
    assert "more than 10 files, some are ignored" in caplog.text


def test_a_driver_that_is_not_there_is_named() -> None:
    with pytest.raises(NotRegisteredError, match=r"DRA driver gpu\.example\.com is not registered"):
        DraPluginManager(Nobody()).get(GPU)
