"""A bound on the owners that update: the oldest become one."""

from __future__ import annotations

from mooring.apiserver.patching.owning.ledger import UPDATE, Ledger, Owner, Share, seconds

UPDATERS_MAX = 10

_ANCIENT = "ancient-changes"


def cap_updaters(ledger: Ledger) -> None:
    """Merge the oldest owners that update, by version, until there are few enough."""
    updaters = [owner for owner in ledger.shares if owner.operation == UPDATE]
    count = len(updaters)
    if count <= UPDATERS_MAX:
        return
    updaters.sort(key=lambda owner: (seconds(ledger.times.get(owner)), owner.identifier))
    first_of: dict[str, Owner] = {}  # by version
    for owner in updaters:
        if count <= UPDATERS_MAX:
            return
        share = ledger.shares[owner]
        first = first_of.setdefault(share.api_version, owner)
        if first is owner:
            continue
        bucket = Owner(_ANCIENT, UPDATE, share.api_version)
        if bucket not in ledger.shares:
            ledger.shares[bucket] = ledger.shares.pop(first)
        merged = share.fields | ledger.shares[bucket].fields
        ledger.shares.pop(owner)
        ledger.shares[bucket] = Share(merged, share.api_version)
        count -= 1
        _take_time(ledger, bucket, owner)


def _take_time(ledger: Ledger, bucket: Owner, owner: Owner) -> None:
    """Let the bucket have the time of the owner, which is the later one."""
    if owner in ledger.times:
        ledger.times[bucket] = ledger.times[owner]
    else:
        ledger.times.pop(bucket, None)
