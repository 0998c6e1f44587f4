"""What apply and update do to the owners of fields (structured merge, without metadata rules).

Steps of an apply:

1. What is applied is merged into the live object; nothing goes away yet.
2. The manager owns exactly what it applied.
3. What it applied last time and does not now is taken away, unless somebody owns it (prune).
4. What others own and this changed is a conflict, or with force is theirs no more.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.apiserver.patching.fieldset import FieldSet
from mooring.apiserver.patching.owning.conflicts import Conflicted
from mooring.apiserver.patching.owning.ledger import Ledger, Owner, Share
from mooring.apiserver.patching.owning.reconciling import reconciled
from mooring.apiserver.patching.owning.versions import Typed, in_version
from mooring.apiserver.patching.structured import Comparison, compare, fields_of, merge, remove


class Request(NamedTuple):
    """Who changes an object, in which version, and which fields it cannot change."""

    owner: Owner
    api_version: str
    reset: FieldSet
    force: bool = False


def update(live: Typed, new: Typed, ledger: Ledger, request: Request) -> None:
    """Enter in the ledger that the owner changed an object from live to new."""
    _reconcile(live, ledger)
    change = _settle(live, new, ledger, request._replace(force=True))
    mine = ledger.shares.get(request.owner)
    fields = FieldSet() if mine is None else mine.fields - change.removed
    fields = (fields | change.modified | change.added).without(request.reset)
    if fields.is_empty:
        ledger.shares.pop(request.owner, None)
    else:
        ledger.shares[request.owner] = Share(fields, request.api_version)


def apply(live: Typed, applied: Typed, ledger: Ledger, request: Request) -> Typed:
    """Return the live object with what is applied, or raise Conflicted; keep the ledger."""
    _reconcile(live, ledger)
    merged = live.with_tree(merge(live.shape, live.tree, applied.tree))
    last = ledger.shares.get(request.owner)
    fields = fields_of(applied.shape, applied.tree).without(request.reset)
    ledger.shares[request.owner] = Share(fields, request.api_version)
    if last is not None and _lost_something(last, fields, request):
        merged = _pruned(merged, ledger, last, request)
    _settle(live, merged, ledger, request)
    return merged


def _lost_something(last: Share, fields: FieldSet, request: Request) -> bool:
    """Whether a manager may have had what it does not apply now.

    What is applied names the items and keys above all that it names. So if nothing of the last
    share is missing, nothing can be taken away, and the long way round can be spared.
    """
    if last.api_version != request.api_version:
        return not last.fields.is_empty
    return not (last.fields - fields).is_empty


def _reconcile(live: Typed, ledger: Ledger) -> None:
    """Bring shares to what lists and maps mean now; drop those in versions that are gone."""
    for owner, share in list(ledger.shares.items()):
        there = in_version(live, share.api_version)
        if there is None:
            del ledger.shares[owner]
            continue
        ledger.shares[owner] = share._replace(fields=reconciled(share.fields, there.shape))


def _settle(live: Typed, new: Typed, ledger: Ledger, request: Request) -> Comparison:
    """Take from other owners what changed, or raise Conflicted; return what changed."""
    change = compare(live.shape, live.tree, new.tree).without(request.reset)
    changes = {request.api_version: change}
    conflicts: dict[Owner, FieldSet] = {}
    for owner, share in ledger.shares.items():
        if owner == request.owner:
            continue
        there = changes.get(share.api_version)
        if there is None:
            there = _change_in(share.api_version, live, new).without(request.reset)
            changes[share.api_version] = there
        taken = share.fields & (there.modified | there.added)
        if not taken.is_empty:
            conflicts[owner] = taken
    if conflicts and not request.force:
        raise Conflicted(conflicts)
    for owner in list(ledger.shares):
        gone = changes[ledger.shares[owner].api_version].removed if owner != request.owner else None
        _take(ledger, owner, conflicts.get(owner), gone)
    return change


def _take(ledger: Ledger, owner: Owner, *taken: FieldSet | None) -> None:
    """Take fields from an owner; one that has none left is none."""
    share = ledger.shares[owner]
    fields = share.fields
    for part in taken:
        fields = fields if part is None else fields - part
    if fields.is_empty:
        del ledger.shares[owner]
    elif fields is not share.fields:
        ledger.shares[owner] = share._replace(fields=fields)


def _change_in(api_version: str, live: Typed, new: Typed) -> Comparison:
    old, later = in_version(live, api_version), in_version(new, api_version)
    assert old is not None  # shares in versions that are gone were dropped
    assert later is not None
    return compare(old.shape, old.tree, later.tree)


# --- taking away ---------------------------------------------------------------------------


def _pruned(merged: Typed, ledger: Ledger, last: Share, request: Request) -> Typed:
    """Return the object without what was applied last time and nobody owns now."""
    there = in_version(merged, last.api_version)
    if there is None:
        return merged
    last_fields = last.fields.with_named_fields(there.shape)
    pruned = there.with_tree(remove(there.shape, there.tree, last_fields))
    pruned = _with_owned(there, pruned, ledger, last.api_version)
    pruned = _with_dangling(there, pruned, last)
    back = in_version(pruned, request.api_version)
    assert back is not None
    return back


def _with_owned(merged: Typed, pruned: Typed, ledger: Ledger, first: str) -> Typed:
    """Return the pruned object with what it lost and somebody owns."""
    owned: dict[str, FieldSet] = {}
    for share in ledger.shares.values():
        known = owned.get(share.api_version)
        owned[share.api_version] = share.fields if known is None else known | share.fields
    # First the version in which it was pruned: what is converted then is whole again.
    for version in sorted(owned, key=lambda version: (version != first, version)):
        here, lost = in_version(merged, version), in_version(pruned, version)
        if here is None or lost is None:
            continue
        shape = here.shape
        kept = fields_of(shape, lost.tree).with_named_fields(shape)
        kept = kept | owned[version].with_named_fields(shape)
        gone = fields_of(shape, here.tree).with_named_fields(shape) - kept
        merged, pruned = here, here.with_tree(remove(shape, here.tree, gone))
    return pruned


def _with_dangling(merged: Typed, pruned: Typed, last: Share) -> Typed:
    """Return the object without what the manager itself had; what nobody owns stays."""
    there = in_version(pruned, last.api_version)
    if there is None:
        return merged
    shape = merged.shape
    kept = fields_of(shape, there.tree).with_named_fields(shape)
    gone = fields_of(shape, merged.tree).with_named_fields(shape) - kept
    mine = gone & last.fields.with_named_fields(shape)
    return merged.with_tree(remove(shape, merged.tree, mine))
