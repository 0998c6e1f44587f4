"""The checks, in their order: who the driver is, what it publishes, claims, faults, the end.

Each is an async function of a trial. It returns if the promise is kept, and else raises
CheckFailedError, or CheckSkippedError if it does not apply. Its docstring is the promise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.cdi import CdiId
from mooring.api.names import dns1123_subdomain
from mooring.client.writes import Delete, Target
from mooring.testing.check.outcomes import CheckFailedError, CheckSkippedError
from mooring.testing.check.plug import (
    DRA_VERSIONS,
    HEALTH_VERSIONS,
    LISTEN_S,
    REPORTS_MAX,
    ClaimKey,
    PlugError,
    ask_info,
    tell_registered,
)
from mooring.testing.check.trial import Trial, shown
from mooring.wire.services import DRA_PLUGIN, HEALTH_V1

DRIVER_NAME_MAX = 63
PARALLEL = 8

T = TypeVar("T")
Check = Callable[[Trial], Awaitable[None]]


# --- who it is ----------------------------------------------------------------------------------


async def registration(trial: Trial) -> None:
    """It answers who it is, as a DRA driver with a valid name and a socket that is there."""
    info = trial.plug.info
    if info.type != DRA_PLUGIN:
        raise CheckFailedError(f"its type is {info.type!r}, not {DRA_PLUGIN}")
    if faults := dns1123_subdomain(info.name):
        raise CheckFailedError(f"its name {info.name!r} is not valid: {faults[0]}")
    if len(info.name) > DRIVER_NAME_MAX:
        raise CheckFailedError(f"its name has {len(info.name)} characters, over {DRIVER_NAME_MAX}")
    if info.endpoint and not Path(info.endpoint).is_socket():
        raise CheckFailedError(f"its endpoint {info.endpoint} is no socket")


async def registration_again(trial: Trial) -> None:
    """It can be registered again, as after a restart of the kubelet, and told that it failed."""
    before = trial.plug.info
    with suppress(PlugError):  # it may well complain
        await tell_registered(trial.socket, "a check says so")
    again = await _called(ask_info(trial.socket))
    await _called(tell_registered(trial.socket))
    if again != before:
        raise CheckFailedError(f"it was {before} and is {again} now")


async def versions(trial: Trial) -> None:
    """It serves every version of the interface that it names, and v1 among them."""
    info = trial.plug.info
    named = [each for each in info.versions if each in DRA_VERSIONS]
    for version in named:
        async with trial.plugged(info, version) as plug:
            answer = await _called(plug.prepare())
            if answer:
                raise CheckFailedError(f"{version}: no claims were asked for, and {answer} came")
    if DRA_VERSIONS[0] not in named:
        raise CheckFailedError(f"it names {list(info.versions)}, and not {DRA_VERSIONS[0]}")


# --- what it publishes --------------------------------------------------------------------------


async def slices(trial: Trial) -> None:
    """It publishes whole pools of devices for its node, without a name twice."""
    seen: set[tuple[str, str]] = set()
    for each in await trial.published():
        for device in each.spec.devices or ():
            place = (each.spec.pool.name, device.name)
            if place in seen:
                raise CheckFailedError(f"device {device.name} is in pool {place[0]} twice")
            seen.add(place)
    if not seen:
        raise CheckFailedError("it publishes no device: the other checks need at least one")


async def owners(trial: Trial) -> None:
    """Its slices belong to their node, so that they go with it."""
    node = trial.bench.node
    for each in await trial.published():
        if not each.spec.node_name:
            raise CheckSkippedError("its devices are not those of one node")
        owner = next(iter(each.metadata.owner_references), None)
        if owner is None or (owner.kind, owner.uid) != ("Node", node.metadata.uid):
            raise CheckFailedError(f"{each.metadata.name} is not owned by the node")


# --- claims -------------------------------------------------------------------------------------


async def prepare(trial: Trial) -> None:
    """It prepares the devices of a claim, with CDI ids that mean something."""
    claim = await trial.claim()
    said = (await trial.prepare(claim))[claim.metadata.uid]
    for device in said.devices:
        for text in device.cdi_device_ids:
            try:
                CdiId.parse(text)
            except ValueError as error:
                raise CheckFailedError(f"CDI id {error}") from None
    trial.edits(said)
    await trial.clear(claim)


async def idempotence(trial: Trial) -> None:
    """Asked again, it prepares the same and says the same."""
    claim = await trial.claim()
    first, second = await trial.prepare(claim), await trial.prepare(claim)
    if first != second:
        raise CheckFailedError(f"it said {shown(first)} and then {shown(second)}")
    await trial.clear(claim)


async def batch(trial: Trial) -> None:
    """It prepares and takes back several claims in one call."""
    one, other = await trial.claim(), await trial.claim()
    await trial.prepare(one, other)
    await trial.clear(one, other)


async def partial_errors(trial: Trial) -> None:
    """One claim that cannot be prepared does not keep another in the same call from it."""
    good, bad = await trial.claim(), await trial.claims.new()
    answer = await _called(trial.plug.prepare(ClaimKey.of(good), ClaimKey.of(bad)))
    of_good, of_bad = answer.get(good.metadata.uid), answer.get(bad.metadata.uid)
    if of_good is None or of_good.error:
        raise CheckFailedError(f"of the good claim it says {of_good and of_good.error!r}")
    if of_bad is None or not of_bad.error:
        raise CheckFailedError("of the claim without devices it says no error")
    await trial.clear(good)
    await trial.claims.drop(bad)


async def unallocated(trial: Trial) -> None:
    """A claim without devices is refused."""
    claim = await trial.claims.new()
    if not await trial.refusal(ClaimKey.of(claim)):
        raise CheckFailedError("it prepared a claim that has no devices")
    await trial.claims.drop(claim)


async def unknown_claims(trial: Trial) -> None:
    """A claim that is not there is refused when prepared, and nothing to do when taken back."""
    key = ClaimKey("00000000-0000-4000-8000-000000000000", "default", "nobody")
    if not await trial.refusal(key):
        raise CheckFailedError("it prepared a claim that is not there")
    answer = await _called(trial.plug.unprepare(key))
    if answer.get(key.uid):
        raise CheckFailedError(f"taking it back is an error: {answer[key.uid]}")
    if key.uid not in answer:
        raise CheckFailedError("taking it back: the answer has no entry for it")


async def replaced_claims(trial: Trial) -> None:
    """A claim of the same name and another uid is another claim, and is refused."""
    claim = await trial.claim()
    stale = replace(ClaimKey.of(claim), uid="00000000-0000-4000-8000-000000000001")
    if not await trial.refusal(stale):
        raise CheckFailedError("it prepared a claim by its name, though the uid is another")
    await trial.claims.drop(claim)


async def unprepare_again(trial: Trial) -> None:
    """Taking a claim back twice is no error, and it can be prepared anew."""
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.unprepare(claim)
    await trial.unprepare(claim)
    trial.edits((await trial.prepare(claim))[claim.metadata.uid])
    await trial.clear(claim)


async def parallel(trial: Trial) -> None:
    """Many calls at once are all answered right."""
    made = [await trial.claim()]
    for _ in range(PARALLEL - 1):
        claim = await trial.claims.allocated()
        if claim is None:
            break
        made.append(claim)
    await asyncio.gather(*(trial.prepare(claim) for claim in made))
    await asyncio.gather(*(trial.clear(claim) for claim in made))


async def two_owners(trial: Trial) -> None:
    """A device that is prepared for one claim is refused to another."""
    claim = await trial.claim()
    assert claim.status.allocation is not None
    if any(result.share_id for result in claim.status.allocation.devices.results):
        raise CheckSkippedError("its devices are for several claims at once")
    await trial.prepare(claim)
    rival = await trial.claims.allocated_like(claim)
    refused = bool(await trial.refusal(ClaimKey.of(rival)))
    if not refused:
        await trial.unprepare(rival)
    await trial.claims.drop(rival)
    await trial.clear(claim)
    if not refused:
        raise CheckFailedError("one device was prepared for two claims")


# --- faults -------------------------------------------------------------------------------------


async def restart(trial: Trial) -> None:
    """Killed and started again, it says the same of a claim, and takes it back."""
    claim = await trial.claim()
    before = await trial.prepare(claim)
    await trial.crash()
    await _called(trial.begin())
    if (after := await trial.prepare(claim)) != before:
        raise CheckFailedError(f"it said {shown(before)} and then {shown(after)}")
    trial.edits(after[claim.metadata.uid])
    await trial.clear(claim)


async def restart_while_taking_back(trial: Trial) -> None:
    """A claim that was prepared before a crash can be taken back after it, without preparing."""
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.crash()
    await _called(trial.begin())
    await trial.clear(claim)
    again = await trial.claim()
    await trial.prepare(again)
    await trial.clear(again)


async def reboot(trial: Trial) -> None:
    """After a reboot, which empties the folder of CDI specs, a prepared claim works again."""
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.crash()
    trial.bench.reboot()
    await _called(trial.begin())
    trial.edits((await trial.prepare(claim))[claim.metadata.uid])
    await trial.clear(claim)


async def republish(trial: Trial) -> None:
    """Slices that somebody deleted, as a kubelet does when it starts, are published again."""
    for each in await trial.published():
        await trial.bench.client.write(Delete(Target.of(each)))
    await trial.published()


# --- health -------------------------------------------------------------------------------------


async def health(trial: Trial) -> None:
    """If it tells the health of devices, it begins at once, says what is new, and lies not."""
    named = [each for each in HEALTH_VERSIONS if each in trial.plug.info.versions]
    if not named:
        raise CheckSkippedError(f"it does not name {HEALTH_V1}")
    there = {
        (each.spec.pool.name, device.name)
        for each in await trial.published()
        for device in each.spec.devices or ()
    }
    for version in named:
        try:
            reports = await trial.plug.health(version)
        except PlugError as error:
            if "UNIMPLEMENTED" in str(error):
                raise CheckSkippedError("it names health, and says that it has none") from None
            raise CheckFailedError(str(error)) from None
        if len(reports) > REPORTS_MAX:
            raise CheckFailedError(
                f"{version}: over {REPORTS_MAX} reports within {LISTEN_S} s of the first"
            )
        for each in chain.from_iterable(reports):
            if (each.device.pool_name, each.device.device_name) not in there:
                name = f"{each.device.pool_name}/{each.device.device_name}"
                raise CheckFailedError(f"{version}: {name} is not published")


# --- the end ------------------------------------------------------------------------------------


async def end(trial: Trial) -> None:
    """Asked to end, it ends soon and takes its sockets with it."""
    process, info, socket = trial.own_process, trial.plug.info, trial.socket
    if not await process.stop():
        raise CheckFailedError("it did not end within 10 s of SIGTERM")
    left = [path for path in (socket, Path(info.endpoint)) if path.is_socket()]
    if left:
        raise CheckFailedError(f"it left {', '.join(map(str, left))} behind")


async def _called(awaitable: Awaitable[T]) -> T:
    """Return what a call gives; one that fails fails the check."""
    try:
        return await awaitable
    except PlugError as error:
        raise CheckFailedError(str(error)) from None


# By their names, in their order.
CHECKS: dict[str, Check] = {
    "registration": registration,
    "registration-again": registration_again,
    "versions": versions,
    "slices": slices,
    "owners": owners,
    "prepare": prepare,
    "idempotence": idempotence,
    "batch": batch,
    "partial-errors": partial_errors,
    "unallocated": unallocated,
    "unknown-claims": unknown_claims,
    "replaced-claims": replaced_claims,
    "unprepare-again": unprepare_again,
    "parallel": parallel,
    "two-owners": two_owners,
    "health": health,
    "republish": republish,
    "restart": restart,
    "restart-unprepare": restart_while_taking_back,
    "reboot": reboot,
    "end": end,
}
# What nobody asks of a driver, and users are better off with.
ADVICE = {"owners", "partial-errors", "two-owners", "end"}
