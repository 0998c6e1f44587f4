"""A correct driver passes every check; a faulty one fails the check of its bug."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from moorage.api.core import Pod
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.client.contract import list_all
from moorage.client.writes import Delete, Target
from moorage.testing.check import Report, Result
from moorage.testing.check import trial as trial_module
from moorage.testing.check.bench import Bench, bench
from moorage.testing.check.checks import ADVICE, CHECKS
from moorage.testing.check.suite import run_checks
from moorage.testing.check.trial import Trial
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire.services import DRA_V1, DRA_V1BETA1
from tests.testing.plaindriver import PlainDriver


class Tried:
    """A bench for all tests of the module, and one driver after the other on it."""

    def __init__(self, runner: asyncio.Runner, place: Bench) -> None:
        self._runner, self._bench = runner, place

    def check(
        self,
        kind: Callable[[Bench], PlainDriver],
        *only: str,
        start_s: float = 5,
        republish_s: float = 5,
    ) -> Report:
        return self._runner.run(self._check(kind, only, start_s, republish_s))

    async def _check(
        self,
        kind: Callable[[Bench], PlainDriver],
        only: tuple[str, ...],
        start_s: float,
        republish_s: float,
    ) -> Report:
        self.progress: list[tuple[str, str]] = []
        async with asyncio.timeout(60):
            trial = Trial(
                self._bench,
                process=kind(self._bench),
                start_s=start_s,
                republish_s=republish_s,
                call_s=1.0,
            )
            try:
                return await run_checks(
                    trial, only=only, progress=lambda *each: self.progress.append(each)
                )
            finally:
                await self._clean()

    async def _clean(self) -> None:
        client = self._bench.client
        left = await list_all(client, ResourceClaim)
        left_pods = await list_all(client, Pod)
        assert not [*left.values, *left_pods.values], "checks clean up after themselves"
        for each in (await list_all(client, ResourceSlice)).values:
            await client.write(Delete(Target.of(each)))
        for folder in (self._bench.folders.plugins, self._bench.folders.registry):
            for path in folder.rglob("*"):
                if not path.is_dir():
                    path.unlink()


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield Tried(runner, runner.run(stack.enter_async_context(bench())))
        runner.run(stack.aclose())


def failed(report: Report) -> dict[str, str]:
    bad = (Result.FAILED, Result.ADVISED)
    return {each.check: each.why for each in report.outcomes if each.result in bad}


def test_a_good_driver_keeps_every_promise(tried: Tried) -> None:
    report = tried.check(PlainDriver)
    assert {each.check: each.why for each in report.outcomes if each.why} == {}
    assert [each.check for each in report.outcomes] == list(CHECKS)
    assert report.is_good
    assert report.driver == PlainDriver.name


# --- drivers that are bad in one way ------------------------------------------------------------


class WrongType(PlainDriver):
    type = "DevicePlugin"


class BadName(PlainDriver):
    name = "Not A Name"

    async def publish(self) -> None:
        """Publish nothing: the server would not take it."""


class PromisesMore(PlainDriver):
    versions = (DRA_V1, DRA_V1BETA1)


class Forgets(PlainDriver):
    """Loses what it prepared when it is killed, and is surprised."""

    async def start(self) -> None:
        self.note_path = self.bench.folders.plugins / self.name / "prepared.json"
        self.note_path.unlink(missing_ok=True)
        await super().start()

    async def unprepare(self, claim: dra.Claim) -> str:
        if claim.uid not in self.prepared() and claim.name != "nobody":
            return f"claim {claim.name} was never prepared"
        return await super().unprepare(claim)


class EachTimeAnother(PlainDriver):
    numbers = itertools.count()

    async def prepare(self, claim: dra.Claim) -> list[dra.Device]:
        (device,) = await super().prepare(claim)
        device.cdi_device_ids.append(f"vendor.example.com/run=n{next(self.numbers)}")
        return [device]


class OnlyTheFirst(PlainDriver):
    async def _prepare(self, request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
        del request.claims[1:]
        return await super()._prepare(request, context)


class AllOrNothing(PlainDriver):
    async def _prepare(self, request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
        answer = await super()._prepare(request, context)
        errors = [each.error for each in answer.claims.values() if each.error]
        for each in answer.claims.values():
            each.error = errors[0] if errors else ""
        return answer


class Meaningless(PlainDriver):
    def write_specs(self) -> None:
        """Name devices that no spec has."""
        (self.bench.folders.cdi / "plain.json").unlink(missing_ok=True)


class NoIds(PlainDriver):
    def device(self, name: str) -> dra.Device:
        device = super().device(name)
        device.cdi_device_ids[:] = ["nonsense"]
        return device


class Unchecked(PlainDriver):
    is_checked = False


class Generous(PlainDriver):
    def prepared(self) -> dict[str, list[str]]:
        return {}


class Mortal(PlainDriver):
    async def prepare(self, claim: dra.Claim) -> list[dra.Device]:
        if claim.name == "nobody":
            await self.die()
        return await super().prepare(claim)


class Flooding(PlainDriver):
    async def _health(self, _: Any, __: Any) -> AsyncIterator[Any]:
        while True:
            yield self.report("a")


class Silent(PlainDriver):
    async def _health(self, _: Any, __: Any) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield


class Inventive(PlainDriver):
    async def _health(self, _: Any, __: Any) -> AsyncIterator[Any]:
        yield self.report("z")


class Stubborn(PlainDriver):
    async def stop(self) -> bool:
        await super().stop()
        return False


class Untidy(PlainDriver):
    async def stop(self) -> bool:
        # A server removes its socket when it is closed: another name of it stays.
        kept = self.socket.with_name("kept")
        kept.hardlink_to(self.socket)
        await super().stop()
        kept.rename(self.socket)
        return True


class Talkative(PlainDriver):
    """Answers for a claim that nobody asked for, which a kubelet takes for an error."""

    async def _prepare(self, request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
        answer = await super()._prepare(request, context)
        answer.claims["another"].error = ""
        return answer


class OtherName(PlainDriver):
    """Publishes under another name than it registers with."""

    published_name = "other.example.com"


class Sharing(PlainDriver):
    def device(self, name: str) -> dra.Device:
        device = super().device(name)
        device.share_id = "00000000-0000-4000-8000-000000000002"
        return device


class Neglectful(PlainDriver):
    def _slice_changed(self, old: Any, new: Any) -> None:
        """Let slices be deleted."""


BAD: tuple[tuple[type[PlainDriver], tuple[str, ...], str, str], ...] = (
    # (driver, checks to make, the one that fails, part of why)
    (WrongType, (), "registration", "its type is 'DevicePlugin', not DRAPlugin"),
    (BadName, ("registration",), "registration", "its name 'Not A Name' is not valid"),
    (PromisesMore, ("versions", "prepare"), "versions", "UNIMPLEMENTED"),
    (EachTimeAnother, ("idempotence", "batch"), "idempotence", "vendor.example.com/run=n"),
    (OnlyTheFirst, ("prepare", "batch"), "batch", "has no entry for the claim"),
    (
        AllOrNothing,
        ("batch", "partial-errors"),
        "partial-errors",
        "for the valid claim it returned",
    ),
    (Meaningless, ("prepare", "idempotence"), "prepare", "plain.example.com/device=a"),
    (NoIds, ("prepare", "idempotence"), "prepare", "nonsense"),
    (Generous, ("prepare", "two-owners"), "two-owners", "prepared for two claims"),
    (Mortal, ("batch", "unknown-claims", "replaced-claims"), "unknown-claims", "panic: no such"),
    (Flooding, ("health", "prepare"), "health", "over 23 reports of 3 devices within 0.2 s"),
    (Silent, ("health", "prepare"), "health", "no report within 1 s"),
    (Inventive, ("health", "prepare"), "health", "reports check/z, and no published device"),
    (Talkative, ("prepare", "unknown-claims"), "prepare", "not requested: ['another']"),
    (Sharing, ("prepare", "unknown-claims"), "prepare", "device a: no share 00000000-"),
    (Stubborn, ("prepare", "end"), "end", "did not exit within"),
    (Untidy, ("prepare", "end"), "end", "dra.sock behind"),
    (Forgets, ("idempotence", "restart-unprepare"), "restart-unprepare", "was never prepared"),
)


@pytest.mark.parametrize(("kind", "only", "check", "why"), BAD, ids=lambda each: str(each)[:40])
def test_a_promise_that_is_not_kept_is_named(
    tried: Tried, kind: type[PlainDriver], only: tuple[str, ...], check: str, why: str
) -> None:
    report = tried.check(kind, *only)
    assert list(failed(report)) == [check]
    assert why in failed(report)[check]
    assert report.is_good == (check in ADVICE)


def test_claims_that_are_not_looked_at_are_prepared_wrongly(tried: Tried) -> None:
    found = failed(tried.check(Unchecked, "prepare", "unallocated", "replaced-claims"))
    assert found == {
        "unallocated": "it prepared a claim that has no devices",
        "replaced-claims": "it prepared a claim by name, although the uid differs",
    }


def test_a_driver_of_no_known_version_cannot_be_tried(tried: Tried) -> None:
    class Unknown(PlainDriver):
        versions = ("v7.DRAPlugin",)

    report = tried.check(Unknown)
    assert [(each.check, each.result) for each in report.outcomes] == [("start", Result.FAILED)]
    assert "no version that is known, of ['v7.DRAPlugin']" in report.outcomes[0].why


def test_what_needs_devices_is_skipped_at_once_where_there_are_none(tried: Tried) -> None:
    class Empty(PlainDriver):
        async def publish(self) -> None:
            """Have nothing."""

    report = tried.check(Empty, "slices", "prepare", "idempotence", "republish", start_s=0.2)
    whys = [(each.result, each.why) for each in report.outcomes]
    assert whys[0][0] is Result.FAILED
    assert "no ResourceSlice of the driver for this node" in whys[0][1]
    assert set(whys[1:]) == {(Result.SKIPPED, "it publishes no devices")}


def test_slices_that_stay_away_fail_one_check_and_leave_the_others(tried: Tried) -> None:
    report = tried.check(Neglectful, republish_s=0.3)
    assert list(failed(report)) == ["republish"]
    why = failed(report)["republish"]
    assert "no ResourceSlice of the driver for this node within 0.3 s" in why
    assert [each.check for each in report.outcomes if each.result is Result.SKIPPED] == []


def test_what_is_waited_for_is_shown(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "PROGRESS_S", 0.1)
    tried.check(Neglectful, "republish", republish_s=0.5)
    check, text = tried.progress[0]
    assert check == "republish"
    assert re.fullmatch(r"waiting for its slices to be published again: \d+ s of 0\.5 s", text)
    assert len(tried.progress) >= 2


# --- drivers that are right in another way ------------------------------------------------------


class Indirect(PlainDriver):
    """Reaches containers without CDI, as dranet does, and looks at who a claim is reserved for."""

    async def prepare(self, claim: dra.Claim) -> list[dra.Device]:
        await super().prepare(claim)
        found = await self.bench.client.get(ResourceClaim, claim.namespace, claim.name)
        assert found is not None
        (reserved,) = found.status.reserved_for
        assert await self.bench.client.get(Pod, claim.namespace, reserved.name) is not None
        return []


class Late(PlainDriver):
    """Publishes anew after a delay, as Go's library does after 30 s."""

    def _slice_changed(self, _: Any, new: Any) -> None:
        if new is None:
            self._later = asyncio.get_running_loop().call_later(0.6, super()._slice_changed, _, new)


class Unordered(PlainDriver):
    """Keeps devices and ids in a map, whose order is another each time."""

    numbers = itertools.count()

    async def prepare(self, claim: dra.Claim) -> list[dra.Device]:
        (device,) = await super().prepare(claim)
        more = ["plain.example.com/device=b", "plain.example.com/device=c"]
        device.cdi_device_ids.extend(more if next(self.numbers) % 2 else reversed(more))
        return [device]


class Capital(PlainDriver):
    name = "Plain.Example.COM"


class ExactlyOne(PlainDriver):
    """Refuses a call without claims, which no kubelet makes."""

    async def _prepare(self, request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
        if not request.claims:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no claims")
        return await super()._prepare(request, context)


class AllOrNone(PlainDriver):
    """Refuses the whole call for one claim, as Go's library does."""

    async def _prepare(self, request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
        answer = await super()._prepare(request, context)
        for each in answer.claims.values():
            if each.error:
                await context.abort(grpc.StatusCode.UNKNOWN, f"get resource claims: {each.error}")
        return answer


class Piecemeal(PlainDriver):
    """Tells of each device in a report of its own, and of one that it has withdrawn."""

    devices = tuple(f"d{number}" for number in range(40))

    async def _health(self, _: Any, __: Any) -> AsyncIterator[Any]:
        for name in (*self.devices, "withdrawn"):
            yield self.report(name)
        await asyncio.Event().wait()


class Ending(PlainDriver):
    """Ends when it hears that it was not registered, to be started again."""

    async def _notify(self, status: Any, context: Any) -> Any:
        if not status.plugin_registered:
            await self.die()
        return await super()._notify(status, context)


class Dotted(PlainDriver):
    """Has a CDI kind whose class has a dot."""

    kind = "plain.example.com/device.large"


RIGHT: tuple[tuple[type[PlainDriver], tuple[str, ...], dict[str, str]], ...] = (
    # (driver, checks to make, remarks by check)
    (Indirect, (), {"prepare": "it lists no device: containers get nothing through CDI"}),
    (Late, (), {}),
    (Unordered, ("idempotence", "restart"), {}),
    (Capital, ("registration", "slices", "prepare"), {}),
    (ExactlyOne, ("versions", "prepare"), {}),
    (
        Piecemeal,
        ("health",),
        {"health": "v1.DRAResourceHealth: it reports check/withdrawn, which is not published"},
    ),
    (
        Ending,
        ("registration-again", "prepare"),
        {"registration-again": "it exited when its registration failed"},
    ),
    (Dotted, ("prepare", "reboot"), {}),
)


@pytest.mark.parametrize(("kind", "only", "remarks"), RIGHT, ids=lambda each: str(each)[:40])
def test_a_driver_may_do_it_in_another_way(
    tried: Tried, kind: type[PlainDriver], only: tuple[str, ...], remarks: dict[str, str]
) -> None:
    report = tried.check(kind, *only, start_s=0.5 if kind is Late else 5)
    assert {each.check: each.why for each in report.outcomes if each.why} == remarks
    assert {each.result for each in report.outcomes} == {Result.PASSED}


class Beta(PlainDriver):
    versions = (DRA_V1BETA1,)
    methods_version = DRA_V1BETA1


class Rebooted(PlainDriver):
    """Writes specs when it prepares a claim, and goes by the boot id for what is prepared."""

    async def start(self) -> None:
        await super().start()
        if self.prepared():
            (self.bench.folders.cdi / "plain.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("kind", "only", "check", "why"),
    [
        (Beta, ("versions", "prepare"), "versions", "but not v1.DRAPlugin"),
        (AllOrNone, ("partial-errors", "unallocated"), "partial-errors", "get resource claims"),
        (Rebooted, ("prepare", "reboot"), "reboot", "a driver that compares the boot id is right"),
    ],
)
def test_what_a_kubelet_allows_is_advice(
    tried: Tried, kind: type[PlainDriver], only: tuple[str, ...], check: str, why: str
) -> None:
    report = tried.check(kind, *only)
    advised = {each.check: each.why for each in report.outcomes if each.result is Result.ADVISED}
    assert list(advised) == [check]
    assert why in advised[check]
    assert report.is_good


def test_slices_of_another_name_are_shown(tried: Tried) -> None:
    found = failed(tried.check(OtherName, "slices", start_s=0.2))
    text = "spec.driver is other.example.com, and plain.example.com is registered"
    assert text in found["slices"]


def test_a_driver_with_one_device_is_spared_what_needs_two(tried: Tried) -> None:
    class Single(PlainDriver):
        devices = ("a",)

    report = tried.check(Single)
    skipped = {each.check for each in report.outcomes if each.result is Result.SKIPPED}
    assert skipped == {"batch"}
    assert failed(report) == {}


def test_a_driver_that_runs_already_is_not_restarted(tried: Tried, tmp_path: Path) -> None:
    async def check() -> Report:
        place = tried._bench
        driver = PlainDriver(place)
        await driver.start()
        try:
            return await run_checks(Trial(place, socket=driver.registrar), only=("prepare", "end"))
        finally:
            await driver.stop()
            await tried._clean()

    report = tried._runner.run(check())
    assert [each.result for each in report.outcomes] == [Result.PASSED, Result.SKIPPED]
    assert report.outcomes[1].why == "the driver was not started here: pass its command"
