"""The checks of claims: prepared, unprepared, rejected.

`checks` says what a check is.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from moorage.api.cdi import CdiId
from moorage.testing.check import CheckFailedError, CheckSkippedError
from moorage.testing.check.plugin_client import ClaimKey, describe_devices, same_devices
from moorage.testing.check.trial import Trial, called

PARALLEL = 8


async def prepare(trial: Trial) -> None:
    """It prepares the devices of a claim, with CDI ids that exist.

    NodePrepareResources must return the claim, without an error, within 45 s. Its devices must be
    those of the claim, with requests of the claim, and their CDI ids must be in the specs that the
    driver wrote. It may return no devices: a driver may reach containers in another way (NRI), or
    have nothing to give them.
    """
    claim = await trial.claim()
    response = (await trial.prepare(claim))[claim.metadata.uid]
    if not response.devices:
        trial.remark("it lists no device: containers get nothing through CDI")
    elif not any(device.cdi_device_ids for device in response.devices):
        trial.remark("it lists no CDI device: containers get nothing through CDI")
    for device in response.devices:
        for text in device.cdi_device_ids:
            try:
                CdiId.parse(text)
            except ValueError as error:
                raise CheckFailedError(f"CDI id {error}") from None
    trial.edits(response)
    await trial.clear(claim)


async def idempotence(trial: Trial) -> None:
    """Preparing a claim again has the same result.

    The order of devices and of CDI ids does not matter.
    """
    claim = await trial.claim()
    first, second = await trial.prepare(claim), await trial.prepare(claim)
    if not same_devices(first, second):
        raise CheckFailedError(
            f"it returned {describe_devices(first)} and then {describe_devices(second)}"
        )
    await trial.clear(claim)


async def batch(trial: Trial) -> None:
    """It prepares and unprepares several claims in one call.

    Both responses must have an entry for each claim, and no others. This needs two devices.
    """
    one, other = await trial.claim(), await trial.claim()
    await trial.prepare(one, other)
    await trial.clear(one, other)


async def partial_errors(trial: Trial) -> None:
    """An error of one claim does not affect another claim in the same call.

    Advice: Go's library fails the whole call, and a kubelet retries it.
    """
    good, bad = await trial.claim(), await trial.claims.new()
    answer = await called(trial.plug.prepare(ClaimKey.of(good), ClaimKey.of(bad)))
    of_good, of_bad = answer.get(good.metadata.uid), answer.get(bad.metadata.uid)
    if of_good is None or of_good.error:
        raise CheckFailedError(f"for the valid claim it returned {of_good and of_good.error!r}")
    if of_bad is None or not of_bad.error:
        raise CheckFailedError("it returned no error for the claim without devices")
    await trial.clear(good)
    await trial.claims.drop(bad)


async def unallocated(trial: Trial) -> None:
    """It rejects a claim without devices.

    With an error for the claim or the call: the claim has no allocation.
    """
    claim = await trial.claims.new()
    if not await trial.refusal(ClaimKey.of(claim)):
        raise CheckFailedError("it prepared a claim that has no devices")
    await trial.claims.drop(claim)


async def unknown_claims(trial: Trial) -> None:
    """It rejects preparing a claim that does not exist; unpreparing it succeeds.

    NodeUnprepareResources may be called twice, or after a driver lost its state: it must return an
    entry without an error.
    """
    key = ClaimKey("00000000-0000-4000-8000-000000000000", "default", "nobody")
    if not await trial.refusal(key):
        raise CheckFailedError("it prepared a claim that does not exist")
    answer = await called(trial.plug.unprepare(key))
    if answer.get(key.uid):
        raise CheckFailedError(f"unpreparing it failed: {answer[key.uid]}")
    if key.uid not in answer:
        raise CheckFailedError("unpreparing it: the response has no entry for it")


async def replaced_claims(trial: Trial) -> None:
    """It rejects a claim of the same name with another uid.

    A claim may be deleted and created again with the same name; a driver compares metadata.uid.
    """
    claim = await trial.claim()
    stale = replace(ClaimKey.of(claim), uid="00000000-0000-4000-8000-000000000001")
    if not await trial.refusal(stale):
        raise CheckFailedError("it prepared a claim by name, although the uid differs")
    await trial.claims.drop(claim)


async def unprepare_again(trial: Trial) -> None:
    """Unpreparing a claim twice succeeds, and it can be prepared again.

    Then its CDI ids must exist again.
    """
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.unprepare(claim)
    await trial.unprepare(claim)
    trial.edits((await trial.prepare(claim))[claim.metadata.uid])
    await trial.clear(claim)


async def parallel(trial: Trial) -> None:
    """It handles many concurrent calls.

    Up to eight claims, in as many calls; a driver may handle them one after the other.
    """
    made = [await trial.claim()]
    for _ in range(PARALLEL - 1):
        claim = await trial.claims.allocated()
        if claim is None:
            break
        made.append(claim)
    await asyncio.gather(*(trial.prepare(claim) for claim in made))
    await asyncio.gather(*(trial.clear(claim) for claim in made))


async def two_owners(trial: Trial) -> None:
    """It rejects preparing a device for a second claim.

    Advice: this should never happen, and the driver is the last component that can notice.
    """
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
