"""Which claims the pods of this node use, and how far they are: the claim info cache (pure).

# attach: a pod begins to use claims; all of them or, if one is refused, none
# detach: a pod stops using claims; after the last pod of a claim it is unprepared
# prepared: drivers said so to this agent; the checkpoint does not have it, so they are called again
#           after a restart
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.claims.pod_claims import ClaimRejection

PREPARE, UNPREPARE, ALL = "NodePrepareResources", "NodeUnprepareResources", "*"
ANY_DRIVER = "<any>"


class ClaimKey(NamedTuple):
    """The namespaced name of a claim."""

    namespace: str
    name: str


class PreparedDevice(Struct, frozen=True):
    """A device as its driver described it when it was prepared."""

    pool: str
    name: str
    share_id: str | None = None
    requests: tuple[str, ...] = ()  # none: for all
    cdi_ids: tuple[str, ...] = ()

    def serves(self, request: str) -> bool:
        """Return whether the device is for a request of the claim; an empty one means any."""
        return not request or not self.requests or request.partition("/")[0] in self.requests


class DriverShare(Struct, frozen=True):
    """One driver's part in a claim."""

    devices: tuple[PreparedDevice, ...] = ()
    skips: tuple[str, ...] = ()  # operations that it need not be called for

    def needs(self, operation: str) -> bool:
        """Return whether the driver must be called for an operation."""
        return operation not in self.skips and ALL not in self.skips


class AllocatedDevice(NamedTuple):
    """A device, or a share of one, that no two claims can have."""

    driver: str
    pool: str
    device: str
    share_id: str = ""


class ClaimPhase(Enum):
    """How far a claim is."""

    WANTED = "wanted"  # drivers may or may not have been called
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"  # no new pod may use it, however many attempts this takes


class ClaimInfo(Struct, frozen=True):
    """A claim that pods of this node use."""

    key: ClaimKey
    uid: str
    pods: frozenset[str] = frozenset()  # by uid
    drivers: Mapping[str, DriverShare] = field(default_factory=dict)
    phase: ClaimPhase = ClaimPhase.WANTED
    # Not in the checkpoint: it comes with the claim.
    allocated: frozenset[AllocatedDevice] = frozenset()

    @property
    def devices(self) -> Iterator[tuple[str, PreparedDevice]]:
        """Its devices, each with the driver."""
        for driver, share in self.drivers.items():
            for device in share.devices:
                yield driver, device

    def drivers_to_ask(self, operation: str) -> list[str]:
        """Return the drivers to call for an operation."""
        return [driver for driver, share in self.drivers.items() if share.needs(operation)]


class ClaimInfoCache:
    """The claims that pods of this node use."""

    def __init__(self, states: Iterable[ClaimInfo] = ()) -> None:
        self._states = {state.key: state for state in states}

    def __iter__(self) -> Iterator[ClaimInfo]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def get(self, key: ClaimKey) -> ClaimInfo | None:
        """Return a claim."""
        return self._states.get(key)

    def of_pod(self, pod: str) -> list[ClaimKey]:
        """Return the claims that a pod uses."""
        return [state.key for state in self if pod in state.pods]

    def attach(self, pod: str, wanted: Sequence[ClaimInfo]) -> list[ClaimInfo] | ClaimRejection:
        """Note that a pod uses claims, and return those that are still to be prepared."""
        if refused := self.refusal(wanted):
            return refused
        for claim in wanted:
            self._states[claim.key] = _attached(self._states.get(claim.key), claim, pod)
        return [each for each in wanted if self._states[each.key].phase is not ClaimPhase.PREPARED]

    def refusal(self, wanted: Sequence[ClaimInfo]) -> ClaimRejection | None:
        """Return why a pod cannot use claims now."""
        return next(filter(None, map(self._refusal, wanted)), None)

    def note_devices(
        self, claim: ClaimInfo, driver: str, devices: tuple[PreparedDevice, ...]
    ) -> None:
        """Replace the devices that a driver prepared."""
        state = self._same(claim)
        if state is not None:
            share = state.drivers.get(driver, DriverShare())
            drivers = {**state.drivers, driver: replace(share, devices=devices)}
            self._states[claim.key] = replace(state, drivers=drivers)

    def note_prepared(self, claims: Iterable[ClaimInfo]) -> None:
        """Note that all drivers have prepared claims."""
        for claim in claims:
            state = self._same(claim)
            if state is not None and state.phase is ClaimPhase.WANTED:
                self._states[claim.key] = replace(state, phase=ClaimPhase.PREPARED)

    def detach(self, pod: str, keys: Iterable[ClaimKey]) -> list[ClaimInfo]:
        """Note that a pod no longer needs claims, and return those that nobody needs.

        Of these, the pod stays the user until drivers have unprepared them.
        """
        last = []
        for key in keys:
            state = self._states.get(key)
            if state is None or pod not in state.pods:
                continue
            if len(state.pods) > 1:
                self._states[key] = replace(state, pods=state.pods - {pod})
                continue
            self._states[key] = state = replace(state, phase=ClaimPhase.UNPREPARING)
            last.append(state)
        return last

    def note_unprepared(self, claims: Iterable[ClaimInfo]) -> None:
        """Forget claims that their drivers have unprepared."""
        for claim in claims:
            if self._same(claim) is not None:
                del self._states[claim.key]

    def inactive(self, active: Iterable[str]) -> dict[str, list[ClaimKey]]:
        """Return the claims of pods that are not active, by pod."""
        alive = set(active)
        found: dict[str, list[ClaimKey]] = {}
        for state in self:
            for pod in sorted(state.pods - alive):
                found.setdefault(pod, []).append(state.key)
        return found

    def in_use(self) -> dict[str, int]:
        """Return how many claims are prepared, by driver and for any."""
        counts = {ANY_DRIVER: 0}
        for state in self:
            if state.phase is ClaimPhase.PREPARED:
                for name in (ANY_DRIVER, *state.drivers):
                    counts[name] = counts.get(name, 0) + 1
        return counts

    def pods_with(self, driver: str, devices: Iterable[tuple[str, str]]) -> set[str]:
        """Return the pods that use any of a driver's devices, given by pool and name."""
        wanted = set(devices)
        found: set[str] = set()
        for state in self:
            share = state.drivers.get(driver)
            if share and any((each.pool, each.name) in wanted for each in share.devices):
                found |= state.pods
        return found

    def _refusal(self, claim: ClaimInfo) -> ClaimRejection | None:
        known = self._states.get(claim.key)
        if known is None:
            return self._holder(claim)
        if known.uid != claim.uid:
            return ClaimRejection(
                f"old ResourceClaim with same name {claim.key.name} and different UID {known.uid} "
                "still exists (previous pod force-deleted?!)"
            )
        if known.phase is ClaimPhase.UNPREPARING:
            return ClaimRejection(f"ResourceClaim {claim.key.name} is being unprepared")
        if known.phase is ClaimPhase.PREPARED and known.allocated != claim.allocated:
            return ClaimRejection(
                f"ResourceClaim {claim.key.name} was allocated anew, but is prepared as before "
                "(previous pod force-deleted?!)"
            )
        return None

    def _holder(self, claim: ClaimInfo) -> ClaimRejection | None:
        """Return why a device is not free here, although the cluster allocated it to a claim."""
        for other in self:
            if other.key != claim.key and not other.allocated.isdisjoint(claim.allocated):
                slot = min(other.allocated & claim.allocated)
                return ClaimRejection(
                    f"device {slot.device} of driver {slot.driver} is still prepared for "
                    f"ResourceClaim {other.key.name} (previous pod force-deleted?!)"
                )
        return None

    def _same(self, claim: ClaimInfo) -> ClaimInfo | None:
        state = self._states.get(claim.key)
        return state if state is not None and state.uid == claim.uid else None


def _attached(known: ClaimInfo | None, claim: ClaimInfo, pod: str) -> ClaimInfo:
    if known is None:
        return replace(claim, pods=claim.pods | {pod})
    known = replace(known, pods=known.pods | {pod})
    if known.phase is ClaimPhase.PREPARED:
        return known
    # It may have been reallocated meanwhile: its old drivers must still unprepare it, but their
    # devices are not for these pods.
    old = {driver: replace(share, devices=()) for driver, share in known.drivers.items()}
    now = {
        driver: replace(share, devices=known.drivers.get(driver, share).devices)
        for driver, share in claim.drivers.items()
    }
    return replace(known, drivers={**old, **now}, allocated=claim.allocated)
