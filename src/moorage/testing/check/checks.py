"""The checks, in order: registration, publication, claims, faults, termination.

Each is an async function of a trial. It returns if the driver keeps the promise; otherwise it
raises CheckFailedError, or CheckSkippedError if it does not apply. The first line of its docstring
is the promise, the rest says what is required and why. A promise is what a kubelet relies on, and
no more: all that Go's library for drivers (k8s.io/dynamic-resource-allocation/kubeletplugin) allows
passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from moorage.api.names import dns1123_subdomain
from moorage.client.writes import Delete, Target
from moorage.testing.check import CheckAdvisedError, CheckFailedError, CheckSkippedError
from moorage.testing.check.bench import GRACE_S
from moorage.testing.check.claim_checks import (
    batch,
    idempotence,
    parallel,
    partial_errors,
    prepare,
    replaced_claims,
    two_owners,
    unallocated,
    unknown_claims,
    unprepare_again,
)
from moorage.testing.check.plugin_client import (
    DRA_VERSIONS,
    HEALTH_VERSIONS,
    LISTEN_S,
    REPORTS_MAX,
    PluginCallError,
    PluginInfo,
    ask_info,
    describe_devices,
    notify_registered,
    same_devices,
)
from moorage.testing.check.trial import Trial, called
from moorage.wire.services import DRA_PLUGIN, HEALTH_V1

DRIVER_NAME_MAX = 63
SETTLE_S = 0.3  # within which a driver that wants to exit has exited

Check = Callable[[Trial], Awaitable[None]]


# --- who it is ----------------------------------------------------------------------------------


async def registration(trial: Trial) -> None:
    """GetInfo returns a DRA driver with a valid name and an existing socket.

    GetInfo must return the type DRAPlugin, a DNS subdomain of at most 63 characters as the name
    (uppercase is allowed), and the path of a socket, or none if it is the registration socket.
    """
    info = trial.plug.info
    if info.type != DRA_PLUGIN:
        raise CheckFailedError(f"its type is {info.type!r}, not {DRA_PLUGIN}")
    if faults := dns1123_subdomain(info.name.lower()):
        raise CheckFailedError(f"its name {info.name!r} is not valid: {faults[0]}")
    if len(info.name) > DRIVER_NAME_MAX:
        raise CheckFailedError(f"its name has {len(info.name)} characters, over {DRIVER_NAME_MAX}")
    if info.endpoint and not Path(info.endpoint).is_socket():
        raise CheckFailedError(f"its endpoint {info.endpoint} is not a socket")


async def registration_again(trial: Trial) -> None:
    """It can be registered again, as after a restart of the kubelet or a failed registration.

    GetInfo must return the same each time. Notified of a failure, a driver may return an error, or
    exit and be restarted; then it must register as before.
    """
    before = trial.plug.info
    await _register_as(before, trial)
    with suppress(PluginCallError):
        await notify_registered(trial.socket, "a check says so")
    if await _ends_after(trial):
        trial.remark("it exited when its registration failed")
        await called(trial.revive())
    await _register_as(before, trial)


async def _register_as(before: PluginInfo, trial: Trial) -> None:
    again = await called(ask_info(trial.socket))
    await called(notify_registered(trial.socket))
    if again != before:
        raise CheckFailedError(f"GetInfo returned {before}, and now {again}")


async def _ends_after(trial: Trial) -> bool:
    """Return whether the driver exits, at once or after it stopped responding."""
    if await trial.has_ended(SETTLE_S):
        return True
    try:
        await ask_info(trial.socket)
    except PluginCallError:
        return await trial.has_ended(GRACE_S)
    return False


async def versions(trial: Trial) -> None:
    """It serves every version of the DRA API that it lists, including v1.

    A version that is listed and not served (UNIMPLEMENTED) fails. A missing v1.DRAPlugin is advice
    only: current kubelets also accept v1beta1.DRAPlugin.
    """
    info = trial.plug.info
    named = [each for each in info.versions if each in DRA_VERSIONS]
    for version in named:
        async with trial.plugged(info, version) as plug:
            try:
                await plug.prepare()
            except PluginCallError as error:
                # A request without claims is odd, and a driver may reject it.
                if not error.is_answer:
                    raise CheckFailedError(f"{version}: {error}") from None
    if DRA_VERSIONS[0] not in named:
        raise CheckAdvisedError(f"it lists {list(info.versions)}, but not {DRA_VERSIONS[0]}")


# --- what it publishes --------------------------------------------------------------------------


async def slices(trial: Trial) -> None:
    """It publishes complete pools of devices for its node, with unique names.

    Within --timeout there must be ResourceSlices of its name for this node, or for all nodes, and
    resourceSliceCount of them in each pool. The other checks need a device: if a machine has none,
    check the driver on one that has.
    """
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
    """Its slices are owned by their node, so that they are deleted with it.

    Advice: the Node should own slices with spec.nodeName, as with Go's library.
    """
    node = trial.bench.node
    for each in await trial.published():
        if not each.spec.node_name:
            raise CheckSkippedError("its devices are not local to one node")
        owner = next(iter(each.metadata.owner_references), None)
        if owner is None or (owner.kind, owner.uid) != ("Node", node.metadata.uid):
            raise CheckFailedError(f"{each.metadata.name} is not owned by the node")


# --- faults -------------------------------------------------------------------------------------


async def restart(trial: Trial) -> None:
    """After a crash it prepares a claim as before, and unprepares it.

    After SIGKILL it must register within --timeout, and return the same devices.
    """
    claim = await trial.claim()
    before = await trial.prepare(claim)
    await trial.crash()
    await called(trial.begin())
    if not same_devices(after := await trial.prepare(claim), before):
        raise CheckFailedError(
            f"it returned {describe_devices(before)} and then {describe_devices(after)}"
        )
    trial.edits(after[claim.metadata.uid])
    await trial.clear(claim)


async def restart_while_taking_back(trial: Trial) -> None:
    """A claim that was prepared before a crash can be unprepared after it.

    Then its device can be prepared for another claim.
    """
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.crash()
    await called(trial.begin())
    await trial.clear(claim)
    again = await trial.claim()
    await trial.prepare(again)
    await trial.clear(again)


async def reboot(trial: Trial) -> None:
    """After a reboot, which empties the folder of CDI specs, it prepares a claim again.

    Advice: a driver that compares the boot id of the machine is right, but cannot be checked here.
    """
    claim = await trial.claim()
    await trial.prepare(claim)
    await trial.crash()
    trial.bench.reboot()
    await called(trial.begin())
    try:
        trial.edits((await trial.prepare(claim))[claim.metadata.uid])
    except CheckFailedError as error:
        raise CheckFailedError(f"{error}; a driver that compares the boot id is right") from None
    await trial.clear(claim)


async def republish(trial: Trial) -> None:
    """It publishes its slices again after somebody, such as a starting kubelet, deleted them.

    Within --republish-timeout: drivers in Go resync after 30 s by default, some later.
    """
    for each in await trial.published():
        await trial.bench.client.write(Delete(Target.of(each)))
    await trial.republished()


# --- health -------------------------------------------------------------------------------------


async def health(trial: Trial) -> None:
    """If it reports the health of devices, it reports at once, and only published devices.

    The stream must begin with a report, contain published devices, and not repeat itself endlessly.
    The check is skipped for a driver that does not list or implement (UNIMPLEMENTED) the service.
    """
    named = [each for each in HEALTH_VERSIONS if each in trial.plug.info.versions]
    if not named:
        raise CheckSkippedError(f"it does not list {HEALTH_V1}")
    there = {
        (each.spec.pool.name, device.name)
        for each in await trial.published()
        for device in each.spec.devices or ()
    }
    for version in named:
        try:
            reports = await trial.plug.health(version, len(there) + REPORTS_MAX)
        except PluginCallError as error:
            if error.is_unimplemented:
                raise CheckSkippedError("it lists health, but does not implement it") from None
            raise CheckFailedError(str(error)) from None
        if len(reports) > len(there) + REPORTS_MAX:
            raise CheckFailedError(
                f"{version}: over {len(reports) - 1} reports of {len(there)} devices "
                f"within {LISTEN_S} s of the first"
            )
        named_devices = {
            (each.device.pool_name, each.device.device_name)
            for each in chain.from_iterable(reports)
        }
        unknown = ", ".join(sorted(f"{pool}/{name}" for pool, name in named_devices - there))
        if named_devices and not named_devices & there:
            raise CheckFailedError(f"{version}: it reports {unknown}, and no published device")
        if unknown:  # It may have withdrawn devices because they are unhealthy.
            trial.remark(f"{version}: it reports {unknown}, which is not published")


# --- the end ------------------------------------------------------------------------------------


async def end(trial: Trial) -> None:
    """On SIGTERM it exits soon and removes its sockets.

    Advice: within 30 s, the default grace period of pods, and without leaving a socket behind.
    """
    process, info, socket = trial.own_process, trial.plug.info, trial.socket
    if not await process.stop():
        raise CheckFailedError(f"it did not exit within {GRACE_S:.0f} s of SIGTERM")
    left = [path for path in (socket, Path(info.endpoint)) if path.is_socket()]
    if left:
        raise CheckFailedError(f"it left {', '.join(map(str, left))} behind")


def promise_of(check: Check) -> str:
    """Return the promise of a check."""
    return (check.__doc__ or "").strip().partition("\n")[0]


def details_of(check: Check) -> str:
    """Return the details of a check as one paragraph."""
    return " ".join((check.__doc__ or "").partition("\n")[2].split())


# By name, in order.
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
    "restart": restart,
    "restart-unprepare": restart_while_taking_back,
    "reboot": reboot,
    "republish": republish,  # late: other checks need slices
    "end": end,
}
# Checks that nobody requires, but that help users.
ADVICE = {"owners", "partial-errors", "two-owners", "reboot", "end"}
