"""Lists: pages of objects at one revision.

resourceVersion and resourceVersionMatch mean, as in Kubernetes:

    neither                     the newest revision
    0, or NotOlderThan          the newest revision, which is not older
    Exact                       that revision
    continue                    the next page of a list, at the revision of its first page

A continue token holds that revision and the last key; clients keep it and do not read it. If the
revision is compacted by then, the error has a token that resumes the list at the newest revision.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple, Protocol

from moorage.api.field_path import path_of
from moorage.apiserver.http.status import About, StatusError, bad_request, invalid, too_new, too_old
from moorage.apiserver.resources import Resource
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.selectors import Selection
from moorage.apiserver.worker_threads import WorkerThreads
from moorage.store.contract import Entry, Store
from moorage.store.contract import Page as StorePage
from moorage.store.errors import RevisionError
from moorage.validation.errors import ErrorList, forbidden, not_supported

TOKEN_FORMAT = "meta.k8s.io/v1"  # noqa: S105  # of continue tokens
PAGE = 500  # entries that are read at once for a selection
LIST_OPTIONS = About("listoptions", "ListOptions", "meta.k8s.io")

REVISION_MAX = 2**64 - 1

_MATCH = path_of(("resourceVersionMatch",))
_INITIAL = path_of(("sendInitialEvents",))
_NOT_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"

EXACT = "Exact"
NOT_OLDER = "NotOlderThan"

CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
NOW = -1  # in a token: resume the list at the newest revision


class ListOptions(NamedTuple):
    """The options of a list."""

    limit: int = 0
    continue_: str = ""
    revision: str = ""
    match: str = ""
    wants_initial: bool | None = None  # for watches


class ListPage(NamedTuple):
    """A page of a list."""

    entries: Sequence[Entry]
    revision: int
    continue_: str = ""
    remaining: int | None = None
    warnings: tuple[str, ...] = ()  # about objects that cannot be read, and so not selected


class _Start(NamedTuple):
    """Where a page begins."""

    after: str = ""
    at: int | None = None


class Reading(Protocol):
    """How a request reads lists."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold a turn of reading the store in a block."""

    async def select(
        self, entries: Sequence[Entry], is_selected: Callable[[Entry], bool]
    ) -> list[Entry]:
        """Return the selected entries."""


class _AtOnce:
    """Reads without turns and worker threads."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def select(
        self, entries: Sequence[Entry], is_selected: Callable[[Entry], bool]
    ) -> list[Entry]:
        return list(filter(is_selected, entries))


AT_ONCE = _AtOnce()


class ReadingInTurn(NamedTuple):
    """Reads when it is the user's turn, and selects in a worker thread: it decodes all objects."""

    workers: WorkerThreads
    user: str

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold a turn of reading the store in a block."""
        return self.workers.list_reads.turn(self.user)

    async def select(
        self, entries: Sequence[Entry], is_selected: Callable[[Entry], bool]
    ) -> list[Entry]:
        """Return the selected entries."""
        size = size_of(entries)
        return await self.workers.run(self.user, size, lambda: list(filter(is_selected, entries)))


def size_of(entries: Sequence[Entry]) -> int:
    """Return the number of bytes of stored objects."""
    return sum(len(entry.value) for entry in entries)


async def list_entries(
    registry: Registry,
    resource: Resource,
    namespace: str,
    selection: Selection,
    options: ListOptions,
    reading: Reading = AT_ONCE,
) -> ListPage:
    """Return a page of the selected objects."""
    if options.revision == "0" and not options.match:
        options = options._replace(limit=0)  # Kubernetes' watch cache has no pages.
    store, prefix = registry.store, resource.below(namespace)
    start = await _start(store, prefix, options)
    if selection.is_everything:
        try:
            async with reading.turn():
                found = await store.list(
                    prefix, limit=options.limit or None, after=start.after, at=start.at
                )
        except RevisionError:
            raise _expired(options) from None
        token = ""
        if found.remaining:
            token = encode_token(found.revision, found.entries[-1].key.removeprefix(prefix))
        return ListPage(found.entries, found.revision, token, found.remaining or None)

    left_out: list[str] = []

    def is_selected(entry: Entry) -> bool:
        values, warnings = registry.readable(resource, (entry,))
        left_out.extend(warnings)
        return bool(values) and selection.means(values[0], resource)

    async def read_page(after: str, at: int | None) -> tuple[StorePage, list[Entry]]:
        async with reading.turn():
            page = await store.list(prefix, limit=PAGE, after=after, at=at)
        return page, await reading.select(page.entries, is_selected)

    page = await _selected(prefix, read_page, options, start)
    return page._replace(warnings=tuple(left_out))


async def _selected(
    prefix: str,
    read_page: Callable[[str, int | None], Awaitable[tuple[StorePage, list[Entry]]]],
    options: ListOptions,
    start: _Start,
) -> ListPage:
    """Return a page of selected objects, reading entries until it is full."""
    kept: list[Entry] = []
    after, at = start
    while True:
        try:
            found, selected = await read_page(after, at)
        except RevisionError:
            raise _expired(options) from None
        at = found.revision
        for entry in selected:
            kept.append(entry)
            if options.limit and len(kept) == options.limit and _is_more(found, entry):
                token = encode_token(at, entry.key.removeprefix(prefix))
                return ListPage(kept, at, token)
        if not found.remaining:
            return ListPage(kept, at)
        after = found.entries[-1].key


def _is_more(found: StorePage, entry: Entry) -> bool:
    return bool(found.remaining) or found.entries[-1] is not entry


async def _start(store: Store, prefix: str, options: ListOptions) -> _Start:
    _check(options)
    if options.continue_:
        revision, key = decode_token(options.continue_)
        return _Start(prefix + key, None if revision == NOW else revision)
    revision = read_revision(options.revision)
    if options.match == EXACT:
        await _check_reached(store, revision)
        return _Start(at=revision)
    if revision:
        await _check_reached(store, revision)
    return _Start()


async def _check_reached(store: Store, revision: int) -> None:
    current = await store.revision()
    if revision > current:
        raise too_new(revision, current)


def _check(options: ListOptions) -> None:
    """Raise 422 for options that exclude each other."""
    if errors := _faults(options):
        raise invalid(LIST_OPTIONS, "", errors)


def check_watch(options: ListOptions) -> None:
    """Raise 422 for watch options that exclude each other."""
    if errors := _watch_faults(options):
        raise invalid(LIST_OPTIONS, "", errors)


def _faults(options: ListOptions) -> ErrorList:
    found: ErrorList = []
    if match := options.match:
        if not options.revision:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            found.append(forbidden(_MATCH, text))
        if options.continue_:
            found.append(forbidden(_MATCH, _NOT_WITH_CONTINUE))
        if match not in (EXACT, NOT_OLDER):
            found.append(not_supported(_MATCH, match, (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.revision == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            found.append(forbidden(_MATCH, text))
    if options.wants_initial is not None:
        found.append(forbidden(_INITIAL, "sendInitialEvents is forbidden for list"))
    return found


def _watch_faults(options: ListOptions) -> ErrorList:
    found: ErrorList = []
    match = options.match
    if options.wants_initial is not None and match != NOT_OLDER:
        text = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        found.append(forbidden(_MATCH, text))
    if match:
        if options.wants_initial is None:
            text = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            found.append(forbidden(_MATCH, text))
        if match != NOT_OLDER:
            found.append(not_supported(_MATCH, match, (NOT_OLDER,)))
        if options.continue_:
            found.append(forbidden(_MATCH, _NOT_WITH_CONTINUE))
    return found


def read_revision(text: str) -> int:
    """Return the revision in a resourceVersion; 0 if it is empty."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        message = f'resourceVersion: Invalid value: "{text[:64]}": strconv.ParseUint: parsing '
        raise bad_request(f'{message}"{text[:64]}": invalid syntax')
    if int(text) > REVISION_MAX:
        raise bad_request(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
            "value out of range"
        )
    return int(text)


def _expired(options: ListOptions) -> Exception:
    if options.continue_:
        _, key = decode_token(options.continue_)
        return too_old(CONTINUE_EXPIRED, encode_token(NOW, key))
    return too_old("The resourceVersion for the provided list is too old.")


# --- continue tokens ------------------------------------------------------------------------------


def encode_token(revision: int, key: str) -> str:
    """Return the token of the entries after a key, at a revision."""
    content = {"v": TOKEN_FORMAT, "rv": revision, "start": f"/{key}\0"}
    text = json.dumps(content, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode_token(token: str) -> tuple[int, str]:
    """Return the revision and the last key of a token, or raise 400."""
    try:
        text = base64.urlsafe_b64decode((token + "=" * (-len(token) % 4)).encode())
    except (binascii.Error, ValueError):
        raise _bad_token("illegal base64 data") from None
    try:
        content = json.loads(text)
        version, revision, start = content["v"], content["rv"], content["start"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _bad_token(_json_fault(text)) from None
    if version != TOKEN_FORMAT:
        raise _bad_token(f"server does not recognize this encoded version {str(version)[:32]}")
    if not isinstance(revision, int) or not (revision > 0 or revision == NOW):
        raise _bad_token(f"incorrect encoded start resourceVersion (version {TOKEN_FORMAT})")
    if not isinstance(start, str) or not start:
        raise _bad_token(f"encoded start key empty (version {TOKEN_FORMAT})")
    if any(part in ("", ".", "..") for part in start.removeprefix("/").split("/")):
        raise _bad_token(start[:64])
    return revision, start.removesuffix("\0").removeprefix("/")


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _json_fault(text: bytes) -> str:
    """Return Go's error for a text that is not JSON."""
    first = text.lstrip()[:1]
    if not first:
        return "unexpected end of JSON input"
    shown = first.decode() if first[0] < 0x80 else f"\\x{first[0]:02x}"
    return f"invalid character '{shown}' looking for beginning of value"
