"""Claims are prepared once, undone wholly, and never given away twice; over real sockets."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.cdi import CdiId
from moorage.api.core import Namespace
from moorage.api.resource.v1 import (
    ADMIN_NAMESPACE_LABEL,
    AllocationResult,
    DeviceAllocationResult,
    ResourceClaimStatus,
)
from moorage.client.api_client import ApiClient
from moorage.client.writes import Patch, Target, Update
from moorage.driver import Claim, ClaimName, Prepared, PrepareError
from moorage.driver.checkpoint import FileSystem
from moorage.driver.claim_files import device_names
from moorage.driver.claim_preparation import LONG_S
from moorage.driver.driver import AllocatedDevice
from moorage.driver.serving import serving
from moorage.kit.clock import ManualClock
from moorage.wire.services import DRA_V1BETA1
from tests.driver.stage import (
    NAME,
    NODE,
    Blinkers,
    Kubelet,
    config,
    drop_claim,
    make_claim,
    played,
    settings_in,
)


def specs(folder: Path) -> list[Any]:
    found = sorted((folder / "cdi").glob("*"))
    return [json.loads(path.read_text()) for path in found]


@played
async def test_a_claim_gets_a_cdi_device(folder: Path, client: ApiClient) -> None:
    claim = await make_claim(client, "lamp", "first=red", "second/small=green")
    uid = claim.metadata.uid
    async with serving(Blinkers(), settings_in(folder), client) as running:
        assert running.socket is not None
        found = (await Kubelet(running.socket).prepare(claim))[uid]
        assert [(d.pool_name, d.device_name, list(d.request_names)) for d in found] == [
            (NODE, "red", ["first"]),
            (NODE, "green", ["second"]),
        ]
        ids = [list(d.cdi_device_ids) for d in found]
        assert ids == [
            [f"{NAME}/claim={uid}_first_red"],
            [f"{NAME}/claim={uid}_second_green"],
        ]
        (spec,) = specs(folder)
        assert spec["kind"] == f"{NAME}/claim"
        assert [each["name"] for each in spec["devices"]] == [
            f"{uid}_first_red",
            f"{uid}_second_green",
        ]
        assert spec["devices"][0]["containerEdits"] == {"env": ["BLINKER=red"]}
        assert await Kubelet(running.socket).unprepare(claim) == {uid: ""}
        assert specs(folder) == []
        assert running.claims == ()


@played
async def test_older_kubelets_are_answered_too(folder: Path, client: ApiClient) -> None:
    claim = await make_claim(client, "lamp", "red")
    async with serving(Blinkers(), settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket, DRA_V1BETA1)
        assert len((await kubelet.prepare(claim))[claim.metadata.uid]) == 1
        assert await kubelet.unprepare(claim) == {claim.metadata.uid: ""}


@played
async def test_a_second_prepare_says_the_same_without_the_driver(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "red")
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        first = await Kubelet(running.socket).prepare(claim)
        assert await Kubelet(running.socket).prepare(claim) == first
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        assert await Kubelet(running.socket).prepare(claim) == first
    assert driver.calls == ["prepare lamp"]


@played
async def test_after_a_start_of_the_machine_all_is_made_again(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "red")
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        first = await Kubelet(running.socket).prepare(claim)
    before = specs(folder)
    for path in (folder / "cdi").iterdir():
        path.unlink()
    async with serving(driver, settings_in(folder, boot_id="boot-2"), client) as running:
        assert running.socket is not None
        assert specs(folder) == before
        assert await Kubelet(running.socket).prepare(claim) == first
    assert driver.calls == ["prepare lamp", "prepare lamp"]


@played
async def test_a_driver_may_wish_to_be_asked_each_time(folder: Path, client: ApiClient) -> None:
    class Forgetful(Blinkers):
        remembers = False

    claim = await make_claim(client, "lamp", "red")
    driver = Forgetful()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        for _ in range(2):
            await Kubelet(running.socket).prepare(claim)
    assert driver.calls == ["prepare lamp"] * 2


@played
async def test_one_claim_that_fails_leaves_the_others(folder: Path, client: ApiClient) -> None:
    class Burning(Blinkers):
        def prepare(self, claim: Claim) -> Iterable[Prepared]:
            if claim.name == "hot":
                raise PrepareError("the lamp is too hot")
            if claim.name == "odd":
                raise KeyError("a bug")
            return super().prepare(claim)

    claims = [
        await make_claim(client, *each)
        for each in (("hot", "red"), ("odd", "green"), ("good", "blue"))
    ]
    async with serving(Burning(), settings_in(folder), client) as running:
        assert running.socket is not None
        found = await Kubelet(running.socket).prepare(*claims)
        hot, odd, good = (found[each.metadata.uid] for each in claims)
        assert hot == "the lamp is too hot"
        assert odd == "KeyError: 'a bug'"
        assert len(good) == 1
        assert (await Kubelet(running.socket).prepare(*claims)).keys() == {
            each.metadata.uid for each in claims
        }


@played
async def test_claims_are_verified(folder: Path, client: ApiClient) -> None:
    waiting = await make_claim(client, "waiting", "red", is_allocated=False)
    replaced = await make_claim(client, "replaced", "green")
    gone = ClaimName("uid-of-gone", "default", "gone")
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        assert list((await kubelet.prepare(waiting)).values()) == [
            "claim default/waiting not allocated"
        ]
        other = ClaimName("another-uid", "default", replaced.metadata.name)
        assert await kubelet.prepare(other) == {
            "another-uid": "claim default/replaced got replaced"
        }
        assert (await kubelet.prepare(gone))["uid-of-gone"].startswith(
            "retrieve claim default/gone: "
        )
    assert driver.calls == []


@pytest.mark.parametrize(
    "name",
    [
        ClaimName("../../etc/passwd", "default", "x"),
        ClaimName("", "default", "x"),
        ClaimName("a", "../..", "x"),
        ClaimName("a", "default", "x/../../y"),
        ClaimName("a" * 1000, "default", "x"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: ClaimName) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        driver = Blinkers()
        async with serving(driver, settings_in(folder), client) as running:
            assert running.socket is not None
            (error,) = (await Kubelet(running.socket).unprepare(name)).values()
            assert "cannot be the" in error
            (error,) = (await Kubelet(running.socket).prepare(name)).values()
            assert "cannot be the" in error
        assert driver.calls == []

    scene()


@played
async def test_drivers_get_only_what_is_theirs(folder: Path, client: ApiClient) -> None:
    heard: list[Claim] = []

    class Listening(Blinkers):
        def prepare(self, claim: Claim) -> Iterable[Prepared]:
            heard.append(claim)
            return []

    claim = await make_claim(
        client,
        "lamp",
        "a=red",
        "b=green",
        configs=[
            config("FromClaim", '{"n":2}', "a"),
            config("FromClass", '{"n":1}'),
            config("FromClaim", '{"n":3}', driver="other.example.com"),
        ],
    )
    foreign = await make_claim(client, "foreign", "red", driver="other.example.com")
    async with serving(Listening(), settings_in(folder), client) as running:
        assert running.socket is not None
        await running.wait_published()
        found = await Kubelet(running.socket).prepare(claim, foreign)
        assert [list(each.cdi_device_ids) for each in found[claim.metadata.uid]] == [[], []]
        assert found[foreign.metadata.uid] == []
    a, b = heard[0].devices
    assert a.configs == ({"n": 1}, {"n": 2})
    assert b.configs == ({"n": 1},)
    assert a.published is not None
    assert a.published.name == "red"
    assert heard[1].devices == ()
    assert not (folder / "cdi").exists()


@played
async def test_a_device_is_never_given_to_two_claims(folder: Path, client: ApiClient) -> None:
    first, second = [await make_claim(client, name, "red") for name in ("first", "second")]
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(first)
        assert list((await kubelet.prepare(second)).values()) == [
            f"device red of pool {NODE} is already prepared for claim default/first"
        ]
        await kubelet.unprepare(first)
        (found,) = (await kubelet.prepare(second)).values()
        assert len(found) == 1


@played
async def test_a_claim_that_is_no_more_may_still_run_and_keeps_its_device(
    folder: Path, client: ApiClient
) -> None:
    first = await make_claim(client, "first", "red")
    clock = ManualClock()
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(first)
        await drop_claim(client, first)
        second = await make_claim(client, "second", "red")
        for _ in range(2):
            (error,) = (await kubelet.prepare(second)).values()
            assert error == (
                f"device red of pool {NODE} is already prepared for claim default/first, "
                "which was deleted: the kubelet has to undo it first"
            )
            await clock.advance(LONG_S - 1)
        assert driver.calls == ["prepare first"]
        await kubelet.unprepare(first)
        (found,) = (await kubelet.prepare(second)).values()
        assert len(found) == 1


@played
async def test_a_claim_that_is_no_more_for_long_is_undone(folder: Path, client: ApiClient) -> None:
    first = await make_claim(client, "first", "red")
    clock = ManualClock()
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(first)
        await drop_claim(client, first)
        second = await make_claim(client, "second", "red")
        await clock.advance(LONG_S)  # counts from when it is seen to be in the way
        assert "was deleted" in (await kubelet.prepare(second))[second.metadata.uid]
        await clock.advance(LONG_S)
        (found,) = (await kubelet.prepare(second)).values()
        assert len(found) == 1
        assert [each.name for each in running.claims] == ["second"]
    assert driver.calls == ["prepare first", "unprepare first", "prepare second"]


@played
async def test_a_claim_that_is_just_being_undone_is_left_to_who_does(
    folder: Path, client: ApiClient
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Slow(Blinkers):
        serialize = False

        async def unprepare(self, claim: ClaimName) -> None:  # type: ignore[override]
            super().unprepare(claim)
            begun.set()
            await may_end.wait()

    first = await make_claim(client, "first", "red")
    clock = ManualClock()
    driver = Slow()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(first)
        await drop_claim(client, first)
        second = await make_claim(client, "second", "red")
        await kubelet.prepare(second)
        undoing = asyncio.create_task(kubelet.unprepare(first))
        await begun.wait()
        await clock.advance(LONG_S)
        assert "was deleted" in (await kubelet.prepare(second))[second.metadata.uid]
        may_end.set()
        assert await undoing == {first.metadata.uid: ""}
        assert len((await kubelet.prepare(second))[second.metadata.uid]) == 1
    assert driver.calls == ["prepare first", "unprepare first", "prepare second"]


@pytest.mark.parametrize(
    "changes",
    [{"admin_access": True}, {"share_id": "d0e2e2f4-1a2b-4c3d-8e9f-0123456789ab"}],
    ids=["admin", "share"],
)
def test_administrators_and_shares_do_not_exclude_each_other(changes: dict[str, Any]) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        namespace = Target(Namespace, "", "default")
        await client.write(
            Patch(namespace, {"metadata": {"labels": {ADMIN_NAMESPACE_LABEL: "true"}}})
        )
        claims = [
            await make_claim(client, "first", "red", changes=changes),
            await make_claim(client, "second", "red", changes=changes),
        ]
        async with serving(Blinkers(), settings_in(folder), client) as running:
            assert running.socket is not None
            for found in (await Kubelet(running.socket).prepare(*claims)).values():
                (device,) = found
                assert device.share_id == changes.get("share_id", "")

    scene()


@played
async def test_calls_are_one_after_the_other(folder: Path, client: ApiClient) -> None:
    inside: list[int] = []

    class Counting(Blinkers):
        def __init__(self) -> None:
            super().__init__()
            self.now = 0
            self.lock = threading.Lock()

        def prepare(self, claim: Claim) -> Iterable[Prepared]:
            with self.lock:
                self.now += 1
                inside.append(self.now)
            yield from super().prepare(claim)
            with self.lock:
                self.now -= 1

    claims = [await make_claim(client, name, name) for name in ("red", "green", "blue")]
    async with serving(Counting(), settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await asyncio.gather(*(kubelet.prepare(each) for each in claims))
    assert inside == [1, 1, 1]


@played
async def test_a_driver_that_can_is_asked_for_several_at_once(
    folder: Path, client: ApiClient
) -> None:
    met = asyncio.Barrier(3)

    class Together(Blinkers):
        serialize = False

        async def prepare(self, claim: Claim) -> list[Prepared]:  # type: ignore[override]
            await met.wait()  # nobody goes on before all three are here
            return [Prepared(each) for each in claim.devices]

    claims = [await make_claim(client, name, name) for name in ("red", "green", "blue")]
    async with serving(Together(), settings_in(folder), client) as running:
        assert running.socket is not None
        found = await Kubelet(running.socket).prepare(*claims)
        assert all(isinstance(each, list) for each in found.values())


@played
async def test_versions_side_by_side_share_what_is_prepared(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "red")
    rival = await make_claim(client, "rival", "red")
    old, new = (settings_in(folder, pod_uid=uid) for uid in ("uid-1", "uid-2"))
    drivers = Blinkers(), Blinkers()
    async with (
        serving(drivers[0], old, client) as first,
        serving(drivers[1], new, client) as second,
    ):
        assert first.socket is not None
        assert second.socket is not None
        said = await Kubelet(first.socket).prepare(claim)
        assert await Kubelet(second.socket).prepare(claim) == said
        (error,) = (await Kubelet(second.socket).prepare(rival)).values()
        assert "already prepared for claim default/lamp" in error
        await Kubelet(second.socket).unprepare(claim)
        assert len((await Kubelet(first.socket).prepare(rival))[rival.metadata.uid]) == 1
    assert drivers[1].calls == ["unprepare lamp"]


@played
async def test_devices_that_nobody_asked_for_are_refused(folder: Path, client: ApiClient) -> None:
    class Lying(Blinkers):
        def prepare(self, claim: Claim) -> Iterable[Prepared]:
            yield Prepared(AllocatedDevice("all", "elsewhere", "sun"))

    claim = await make_claim(client, "lamp", "red")
    async with serving(Lying(), settings_in(folder), client) as running:
        assert running.socket is not None
        (error,) = (await Kubelet(running.socket).prepare(claim)).values()
        assert error == (
            "the driver prepared device sun of pool elsewhere, "
            "which claim default/lamp does not have"
        )


@played
async def test_files_of_others_stay_and_our_own_left_ones_go(
    folder: Path, client: ApiClient
) -> None:
    cdi = folder / "cdi"
    cdi.mkdir()
    stale, half = cdi / f"{NAME}-claim_gone.json", cdi / f".{NAME}-claim_x.json.abc.tmp"
    foreign = cdi / "vendor-gpu.json", cdi / f"{NAME}-other.json", cdi / "README"
    for path in (stale, half, *foreign):
        path.write_text("{}")
    async with serving(Blinkers(), settings_in(folder), client):
        assert sorted(cdi.iterdir()) == sorted(foreign)


def test_names_of_cdi_devices_are_valid_and_distinct() -> None:
    shares = [AllocatedDevice("r/" + "s" * 63, "p", "d" * 63, share_id=each) for each in "abc"]
    names = device_names("0f2c5a6e-8a7d-4d3c-9c3f-0123456789ab", shares)
    assert len(set(names)) == 3
    for name in names:
        assert CdiId.parse(f"{NAME}/claim={name}").name == name


@played
async def test_a_claim_that_is_half_undone_is_prepared_anew(
    folder: Path, client: ApiClient
) -> None:
    class Sticky(Blinkers):
        def unprepare(self, claim: ClaimName) -> None:
            self.lit.clear()
            raise PrepareError("the switch sticks")

    claim = await make_claim(client, "lamp", "red")
    driver = Sticky()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(claim)
        assert await kubelet.unprepare(claim) == {claim.metadata.uid: "the switch sticks"}
        await kubelet.prepare(claim)
    assert driver.lit == {claim.metadata.uid: ("red",)}


# --- faults ---------------------------------------------------------------------------------------


@played
async def test_a_claim_that_is_allocated_anew_gives_back_what_it_had(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "red")
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(claim)
        assert claim.status.allocation is not None
        (result,) = claim.status.allocation.devices.results
        devices = DeviceAllocationResult(results=(replace(result, device="green"),))
        bare = await client.write(Update(replace(claim, status=ResourceClaimStatus()), "status"))
        status = ResourceClaimStatus(allocation=AllocationResult(devices=devices))
        await client.write(Update(replace(bare, status=status), "status"))
        await kubelet.prepare(claim)
        assert driver.calls == ["prepare lamp", "unprepare lamp", "prepare lamp"]
        assert driver.lit == {claim.metadata.uid: ("green",)}


class FullDisk(FileSystem):
    """A disk that has no room while it is told so."""

    is_full = True

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        super().write(path, data, mode, is_durable=is_durable)

    def append(self, path: Path, data: bytes, *, is_durable: bool = True) -> None:
        if self.is_full:
            super().append(path, data[:5], is_durable=is_durable)
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        super().append(path, data, is_durable=is_durable)


@played
async def test_a_full_disk_is_told_of_the_claim_and_over_when_it_is(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "red")
    disk = FullDisk()
    driver = Blinkers()
    async with serving(driver, settings_in(folder), client, files=disk) as running:
        assert running.socket is not None
        (error,) = (await Kubelet(running.socket).prepare(claim)).values()
        assert error.endswith("checkpoint.changes: No space left on device")
        assert driver.calls == []  # what cannot be noted is not begun
        disk.is_full = False
        (found,) = (await Kubelet(running.socket).prepare(claim)).values()
        assert len(found) == 1


class DeadError(Exception):
    """The end of a program, at any step."""


class Mortal(FileSystem):
    """Files of a program that dies before its nth change of a file, and changes none after."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.is_dead = False

    def _step(self) -> None:
        if self.steps <= 0:
            self.is_dead = True
            raise DeadError
        self.steps -= 1

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        self._step()
        super().write(path, data, mode, is_durable=is_durable)

    def append(self, path: Path, data: bytes, *, is_durable: bool = True) -> None:
        self._step()
        super().append(path, data, is_durable=is_durable)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._step()
        super().remove_folder(path)


@pytest.mark.parametrize("steps", range(13))
def test_after_any_step_a_restart_leads_to_the_same_end(steps: int) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        claim = await make_claim(client, "lamp", "red")
        rival = await make_claim(client, "rival", "red")
        driver = Blinkers()
        settings = settings_in(folder, metadata=("metadata.resource.k8s.io/v1beta1",))
        disk = Mortal(steps)
        async with serving(driver, settings, client, files=disk) as running:
            assert running.socket is not None
            await Kubelet(running.socket).prepare(claim)
            if not disk.is_dead:
                await Kubelet(running.socket).unprepare(claim)
        assert disk.is_dead == (steps < 12)
        async with serving(driver, settings, client) as running:
            assert running.socket is not None
            kubelet = Kubelet(running.socket)
            if running.claims:  # Whoever had the device keeps it until it is undone.
                (error,) = (await kubelet.prepare(rival)).values()
                assert "already prepared for claim default/lamp" in error
                assert len((await kubelet.prepare(claim))[claim.metadata.uid]) == 1
                assert await kubelet.unprepare(claim) == {claim.metadata.uid: ""}
            assert driver.lit == {}
            assert running.claims == ()
            assert list((folder / "cdi").glob("*")) == []
            (found,) = (await kubelet.prepare(rival)).values()
            assert len(found) == 1
            assert driver.lit == {rival.metadata.uid: ("red",)}

    scene()
