"""Device plugins register, are watched and called; allocations persist; none can do harm."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from moorage.kit.clock import REAL, Clock, ManualClock
from moorage.node.contract import DevicesRefusedError, PodRefusedError
from moorage.node.device_plugins import plugins
from moorage.node.device_plugins.inventory import GRACE_S, PluginDevice
from moorage.node.device_plugins.manager import CHECKPOINT_NAME, DevicePlugins, load_checkpoint
from moorage.node.errors import PluginError
from moorage.wire import deviceplugin_pb2 as wire
from tests.node.device_plugins.plugins import RESOURCE, FakePlugin, listing, pod

WAIT_S_MAX = 20


class Bench:
    """A manager, and what it told."""

    def __init__(self, folder: Path, clock: Clock = REAL, running: tuple[str, ...] = ()) -> None:
        self.pods_told: list[frozenset[str]] = []
        self._told = asyncio.Event()
        self.manager = DevicePlugins(
            folder,
            clock,
            on_change=self._told.set,
            on_health=self._note,
            is_running=lambda uid, _: uid in running,
        )

    def _note(self, pods: frozenset[str]) -> None:
        self.pods_told.append(pods)
        self._told.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._told.clear()
            await asyncio.wait_for(self._told.wait(), WAIT_S_MAX)

    async def until_amounts(self, capacity: int, allocatable: int, name: str = RESOURCE) -> None:
        await self.until(lambda: self.manager.resources().get(name) == (capacity, allocatable))


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    yield made
    shutil.rmtree(made)


@asynccontextmanager
async def bench(
    folder: Path, *ids: str, clock: Clock = REAL, options: wire.DevicePluginOptions | None = None
) -> AsyncIterator[tuple[Bench, FakePlugin]]:
    """A manager with one plugin that lists devices."""
    made = Bench(folder, clock)
    async with made.manager, FakePlugin(folder) as fake:
        fake.options = options or fake.options
        await fake.register()
        fake.say(*ids)
        await made.until_amounts(len(ids), len(ids))
        yield made, fake


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), WAIT_S_MAX))


def refused(error: pytest.ExceptionInfo[PodRefusedError]) -> str:
    assert error.value.reason == "UnexpectedAdmissionError"
    text = str(error.value)
    assert text.startswith("Allocate failed due to ")
    assert text.endswith(", which is unexpected")
    return text.removeprefix("Allocate failed due to ").removesuffix(", which is unexpected")


# --- plugins ----------------------------------------------------------------------------------


def test_healthy_devices_are_allocatable_and_all_are_capacity(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b") as (made, fake):
            await made.until_amounts(2, 2)
            fake.say("a", "b", "c", sick=["b"])
            await made.until_amounts(3, 2)
            healthy = (PluginDevice("a"), PluginDevice("c"))
            assert made.manager.allocatable() == {RESOURCE: healthy}

    run(main)


def test_resource_of_a_plugin_that_ended_stays_for_a_while(folder: Path) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with bench(folder, "a", "b", clock=clock) as (made, fake):
            fake.end()
            await made.until_amounts(2, 0)
            await clock.advance(GRACE_S - 1)
            assert made.manager.resources() == {RESOURCE: (2, 0)}
            await clock.advance(2)
            assert made.manager.resources() == {}
            assert load_checkpoint(folder / CHECKPOINT_NAME).resources == ()

    run(main)


def test_plugin_that_comes_again_takes_its_place(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            await fake.register()
            fake.say("a", "b")
            await made.until_amounts(2, 2)

    run(main)


def test_second_plugin_of_a_resource_takes_over(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, first), FakePlugin(folder, name="2.sock") as second:
            await second.register()
            second.say("a", "b")
            await made.until_amounts(2, 2)
            await made.manager.prepare(pod())
            assert (len(first.allocated), len(second.allocated)) == (0, 1)
            second.end()
            first.say("a", "b", "c")
            await made.until_amounts(3, 3)
            while (
                not first.allocated
            ):  # the second may be asked until the end of its stream arrives
                with suppress(PodRefusedError):
                    await made.manager.prepare(pod(f"uid-{len(second.allocated) + 1}"))

    run(main)


def test_plugin_that_ends_while_it_is_asked_refuses(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.may_answer.clear()
            asking = asyncio.create_task(made.manager.prepare(pod()))
            await fake.asked.wait()
            fake.end()
            with pytest.raises(PodRefusedError) as error:
                await asking
            assert refused(error) == (
                "rpc error: code = Canceled desc = grpc: the client connection is closing"
            )
            assert made.manager.taken() == {}

    run(main)


def test_cancelled_allocation_is_cancelled(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.may_answer.clear()
            asking = asyncio.create_task(made.manager.prepare(pod()))
            await fake.asked.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert made.manager.taken() == {}

    run(main)


def test_plugin_that_is_disconnected_refuses(folder: Path) -> None:
    async def main() -> None:
        async with FakePlugin(folder) as fake:
            plugin = plugins.DevicePlugin(RESOURCE, folder / fake.name)
            await plugin.connect()
            await plugin.close()
            with pytest.raises(PluginError, match="the client connection is closing"):
                await plugin.allocate(["a"])

    run(main)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"version": "v1"},
            'not supported by kubelet. Supported version is ["v1beta1"]',
        ),
        ({"resource_name": "cpu"}, 'the ResourceName "cpu" is invalid'),
        ({"endpoint": "../gpu.sock"}, "the Endpoint '../gpu.sock' is not the name of a socket"),
        ({"endpoint": ""}, "the Endpoint '' is not the name of a socket"),
    ],
)
def test_registration_is_refused_with_the_reason(
    folder: Path, fields: dict[str, str], text: str
) -> None:
    async def main() -> None:
        async with Bench(folder).manager as manager, FakePlugin(folder) as fake:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await fake.register(**fields)
            assert text in (error.value.details() or "")
            assert manager.resources() == {}

    run(main)


def test_plugin_that_does_not_answer_is_not_taken_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "CONNECT_S_MAX", 0.05)

    async def main() -> None:
        async with Bench(folder).manager as manager, FakePlugin(folder) as fake:
            with pytest.raises(grpc.aio.AioRpcError, match="failed to get device plugin options"):
                await fake.register(endpoint="nobody.sock")
            assert manager.resources() == {}

    run(main)


def test_sockets_left_behind_are_removed_and_nothing_else(folder: Path) -> None:
    async def main() -> None:
        (folder / "notes.txt").write_text("kept")
        async with FakePlugin(folder, name="old.sock"):
            assert (folder / "old.sock").is_socket()
            async with Bench(folder).manager:
                names = {path.name for path in folder.iterdir()}
                assert names == {"notes.txt", "kubelet.sock"}

    run(main)


@pytest.mark.parametrize(
    "message",
    [
        listing(*map(str, range(65_537))),
        listing("x" * 1025),
        listing(""),
    ],
    ids=["too many", "long", "empty"],
)
def test_plugin_that_lists_nonsense_is_left(
    folder: Path, message: wire.ListAndWatchResponse, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.say_message(message)
            await made.until_amounts(1, 0)
            assert f"device plugin of {RESOURCE} disconnected: " in caplog.text

    run(main)


def test_devices_listed_twice_count_once_and_are_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.say("a", "b", "b")
            await made.until_amounts(2, 2)
            assert "lists 1 devices more than once" in caplog.text

    run(main)


# --- pods -------------------------------------------------------------------------------------


def test_container_gets_what_the_plugin_gives(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b") as (made, fake):
            answer = fake.answer = wire.ContainerAllocateResponse(envs={"B": "2", "A": "1"})
            answer.devices.add(container_path="/dev/x", host_path="/dev/y", permissions="rw")
            answer.mounts.add(container_path="/in", host_path="/out", read_only=True)
            answer.annotations["k"] = "v"
            answer.cdi_devices.add(name="example.com/gpu=a")
            await made.manager.prepare(pod())
            given = made.manager.run_options(pod(), "main")
            assert fake.allocated == [("a",)]
            assert given.edits.env == ("A=1", "B=2")
            (node,) = given.edits.device_nodes
            assert (node.path, node.host_path, node.permissions) == ("/dev/x", "/dev/y", "rw")
            (mount,) = given.edits.mounts
            assert (mount.container_path, mount.host_path) == ("/in", "/out")
            assert "ro" in mount.options
            assert given.annotations == {"k": "v"}
            assert given.cdi_ids == ("example.com/gpu=a",)

    run(main)


def test_prepare_again_asks_the_plugin_nothing(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b") as (made, fake):
            await made.manager.prepare(pod())
            await made.manager.prepare(pod())
            assert len(fake.allocated) == 1
            assert made.manager.taken() == {RESOURCE: 1}

    run(main)


def test_too_many_are_refused_as_kubernetes_does(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b", "c") as (made, _):
            await made.manager.prepare(pod())
            with pytest.raises(PodRefusedError) as error:
                await made.manager.prepare(pod("uid-2", containers={"main": 3}))
            text = f"requested number of devices unavailable for {RESOURCE}. "
            assert refused(error) == text + "Requested: 3, Available: 2"

    run(main)


def test_devices_are_free_again_when_the_pod_is_gone(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            await made.manager.prepare(pod())
            await made.manager.unprepare(pod())
            await made.manager.unprepare(pod())
            await made.manager.prepare(pod("uid-2"))
            assert fake.allocated == [("a",), ("a",)]
            assert made.manager.run_options(pod(), "main").edits.env == ()

    run(main)


def test_containers_use_devices_of_init_containers_after_them(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b", "c") as (made, fake):
            wanted = pod(
                inits={"init-1": 2, "sidecar": 1, "init-2": 1},
                containers={"main": 1, "other": 1},
                sidecars=["sidecar"],
            )
            await made.manager.prepare(wanted)
            # The sidecar keeps one of the first two for good, the others take turns.
            assert fake.allocated == [("a", "b"), ("a",), ("b",), ("b",), ("c",)]
            assert made.manager.taken() == {RESOURCE: 3}

    run(main)


def test_what_claims_serve_is_not_asked_of_plugins(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            mapping = {"containerName": "main", "resourceName": RESOURCE, "requestName": "r"}
            served = {"requestMappings": [mapping], "resourceClaimName": "claim"}
            wanted = pod(
                containers={"main": 1, "other": 1}, status={"extendedResourceClaimStatus": served}
            )
            await made.manager.prepare(wanted)
            assert fake.allocated == [("a",)]
            assert made.manager.held("uid-1", "main") == ()
            assert made.manager.held("uid-1", "other")[0].ids == ("a",)

    run(main)


def test_resource_that_no_plugin_has_is_passed_over(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, _):
            await made.manager.prepare(pod(resource="example.com/other"))
            assert made.manager.taken() == {}

    run(main)


def test_plugin_is_asked_what_it_prefers(folder: Path) -> None:
    options = wire.DevicePluginOptions(get_preferred_allocation_available=True)

    async def main() -> None:
        async with bench(folder, "a", "b", "c", options=options) as (made, fake):
            fake.prefers = lambda available: ["unknown", *reversed(available)]
            await made.manager.prepare(pod(containers={"main": 2}))
            (asked,) = fake.preferences
            assert list(asked.available_deviceIDs) == ["a", "b", "c"]
            assert (list(asked.must_include_deviceIDs), asked.allocation_size) == ([], 2)
            assert fake.allocated == [("c", "b")]

    run(main)


def test_refusal_of_the_plugin_is_told_and_its_devices_stay_free(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.refusal = "broken"
            with pytest.raises(PodRefusedError) as error:
                await made.manager.prepare(pod())
            assert refused(error) == "rpc error: code = Unknown desc = broken"
            assert made.manager.taken() == {}

    run(main)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "no containers return in allocation response"),
        (wire.ContainerAllocateResponse(envs={"A=B": ""}), "'A=B' cannot be the name of an"),
        (
            wire.ContainerAllocateResponse(cdi_devices=[wire.CDIDevice(name="nonsense")]),
            "'nonsense' is not of the form vendor/class=name",
        ),
        (
            wire.ContainerAllocateResponse(mounts=[wire.Mount(host_path="x")]),
            "'x' is not an absolute path",
        ),
        (
            wire.ContainerAllocateResponse(
                devices=[wire.DeviceSpec(host_path="/x", container_path="/x", permissions="all")]
            ),
            "permissions 'all' are not of r, w and m",
        ),
    ],
)
def test_senseless_answers_are_refused(
    folder: Path, answer: wire.ContainerAllocateResponse | None, text: str
) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.has_answer = answer is not None
            fake.answer = answer or fake.answer
            with pytest.raises(PodRefusedError) as error:
                await made.manager.prepare(pod())
            assert text in refused(error)
            assert made.manager.taken() == {}

    run(main)


def test_plugin_that_hangs_keeps_only_its_own_pods_waiting(folder: Path) -> None:
    async def main() -> None:
        async with (
            bench(folder, "a", "b") as (made, slow),
            FakePlugin(folder, "example.com/nic", "nic.sock") as quick,
        ):
            await quick.register()
            quick.say("n")
            await made.until_amounts(1, 1, "example.com/nic")
            slow.may_answer.clear()
            waiting = asyncio.create_task(made.manager.prepare(pod()))
            await made.manager.prepare(pod("uid-2", resource="example.com/nic"))
            assert not waiting.done()
            slow.may_answer.set()
            await waiting

    run(main)


def test_plugin_that_hangs_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "ALLOCATE_S_MAX", 0.05)

    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            fake.may_answer.clear()
            with pytest.raises(PodRefusedError) as error:
                await made.manager.prepare(pod())
            assert "code = DeadlineExceeded" in refused(error)
            assert made.manager.taken() == {}

    run(main)


def test_pods_that_come_together_get_different_devices(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, *map(str, range(20))) as (made, fake):
            pods = [pod(f"uid-{number}") for number in range(20)]
            await asyncio.gather(*map(made.manager.prepare, pods))
            assert sorted(fake.allocated, key=lambda ids: int(ids[0])) == [
                (str(number),) for number in range(20)
            ]

    run(main)


def test_plugin_is_told_of_each_start_if_it_wants(folder: Path) -> None:
    async def main() -> None:
        options = wire.DevicePluginOptions(pre_start_required=True)
        async with bench(folder, "a", options=options) as (made, fake):
            await made.manager.prepare(pod())
            await made.manager.before_start(pod(), "main")
            await made.manager.before_start(pod(), "main")
            assert fake.prestarted == [("a",), ("a",)]
            fake.refusal = "not ready"
            with pytest.raises(DevicesRefusedError, match="PreStartContainer rpc failed"):
                await made.manager.before_start(pod(), "main")

    run(main)


def test_pods_hear_of_the_health_of_their_devices(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a", "b") as (made, fake):
            await made.manager.prepare(pod())
            fake.say("a", "b", sick=["b"])
            fake.say("a", "b", sick=["a"])
            await made.until(lambda: made.pods_told == [frozenset({"uid-1"})])
            assert not made.manager.is_healthy(RESOURCE, "a")
            assert made.manager.is_healthy(RESOURCE, "b")

    run(main)


# --- restart ----------------------------------------------------------------------------------


async def _held_before(folder: Path) -> None:
    async with bench(folder, "a", "b") as (made, _):
        await made.manager.prepare(pod())


def test_devices_of_pods_outlive_the_agent(folder: Path) -> None:
    async def main() -> None:
        await _held_before(folder)
        async with bench(folder, "a", "b") as (made, fake):
            await made.manager.prepare(pod())
            await made.manager.prepare(pod("uid-2"))
            assert fake.allocated == [("b",)]
            assert made.manager.run_options(pod(), "main").edits.env == ("GIVEN=yes",)

    run(main)


def test_resource_has_no_devices_until_its_plugin_comes_again(folder: Path) -> None:
    async def main() -> None:
        await _held_before(folder)
        clock = ManualClock()
        async with Bench(folder, clock).manager as manager:
            assert manager.resources() == {RESOURCE: (0, 0)}
            assert manager.taken() == {RESOURCE: 1}
            await clock.advance(GRACE_S + 1)
            assert manager.resources() == {}

    run(main)


def test_pod_waits_for_the_plugin_after_a_reboot_but_not_if_it_still_runs(folder: Path) -> None:
    async def main() -> None:
        await _held_before(folder)
        async with Bench(folder).manager as manager:
            with pytest.raises(DevicesRefusedError, match="no healthy devices present") as error:
                await manager.prepare(pod())
            assert not isinstance(error.value, PodRefusedError)
        async with Bench(folder, running=("uid-1",)).manager as manager:
            await manager.prepare(pod())

    run(main)


def test_device_that_is_sick_after_a_reboot_is_refused(folder: Path) -> None:
    async def main() -> None:
        await _held_before(folder)
        async with bench(folder, "b") as (made, _):
            with pytest.raises(PodRefusedError) as error:
                await made.manager.prepare(pod())
            assert "previously allocated devices are no longer healthy" in refused(error)

    run(main)


def test_pods_that_went_meanwhile_lose_their_devices(folder: Path) -> None:
    async def main() -> None:
        await _held_before(folder)
        async with bench(folder, "a", "b") as (made, _):
            made.manager.keep_only({"uid-2"})
            assert made.manager.taken() == {}
            assert load_checkpoint(folder / CHECKPOINT_NAME).allotments == ()

    run(main)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "truncated"),
        (b'{"version":2,"checksum":"","data":{}}', "version 2 is unknown"),
        (b'{"version":1,"checksum":"","data":{}}', "the checksum is not that of the data"),
    ],
)
def test_broken_checkpoint_is_told_and_put_aside(
    folder: Path, content: bytes, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        (folder / CHECKPOINT_NAME).write_bytes(content)
        async with bench(folder, "a") as (made, _):
            await made.manager.prepare(pod())
        assert text in caplog.text
        assert (folder / f"{CHECKPOINT_NAME}.corrupt").read_bytes() == content

    run(main)


def test_pod_waits_while_nothing_can_be_written(folder: Path) -> None:
    async def main() -> None:
        async with bench(folder, "a") as (made, fake):
            obstacle = folder / CHECKPOINT_NAME
            obstacle.unlink()
            obstacle.mkdir()
            with pytest.raises(DevicesRefusedError, match="failed to write checkpoint file"):
                await made.manager.prepare(pod())
            obstacle.rmdir()
            await made.manager.prepare(pod())
            assert len(fake.allocated) == 1
            assert len(load_checkpoint(folder / CHECKPOINT_NAME).allotments) == 1

    run(main)
