"""The owners of an object's fields, as managedFields has them.

An owner is a manager with what it does: those that apply are one owner for all versions, those
that update one for each version. All that is owned by one is a set of fields in one version.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from mooring.api.errors import ApiError
from mooring.api.timestamp import Timestamp
from mooring.apiserver.patching.elements import ElementError
from mooring.apiserver.patching.fieldset import FieldSet, from_json, to_json
from mooring.apiserver.patching.gotext import quoted
from mooring.apiserver.patching.values import Tree

APPLY, UPDATE = "Apply", "Update"


class LedgerError(ValueError):
    """managedFields that cannot be read."""


class Owner(NamedTuple):
    """Who owns fields."""

    manager: str
    operation: str
    api_version: str = ""  # of those that update
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """What Kubernetes knows the owner by, and sorts by."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({name: part for name, part in parts.items() if part})

    def __str__(self) -> str:
        """Return the owner as conflicts name it."""
        text = quoted(self.manager)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Share(NamedTuple):
    """The fields that an owner has, and the version in which they are told."""

    fields: FieldSet
    api_version: str
    text: Raw | None = None  # of fieldsV1 that `fields` were read from, if that was text


class Ledger:
    """Shares by owner, and when each owner last changed something."""

    def __init__(self) -> None:
        self.shares: dict[Owner, Share] = {}
        self.times: dict[Owner, str] = {}

    def copy(self) -> Ledger:
        """Return a ledger that can be changed without changing this one."""
        copied = Ledger()
        copied.shares.update(self.shares)
        copied.times.update(self.times)
        return copied

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries of managedFields, in Kubernetes' order."""
        entries = []
        for owner, share in self.shares.items():
            entry: dict[str, Any] = {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": share.api_version,
                "time": self.times.get(owner),
                "fieldsType": "FieldsV1",
                "fieldsV1": _written(share),
                "subresource": owner.subresource,
            }
            written = {key: value for key, value in entry.items() if value not in ("", None)}
            entries.append(written)
        return sorted(entries, key=_entry_order)


def read_ledger(entries: Tree) -> Ledger:
    """Return the ledger that managedFields describes, or raise LedgerError."""
    ledger = Ledger()
    if entries and not isinstance(entries, list):
        raise LedgerError("managedFields must be a list")
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise LedgerError("an entry must be a map")
        owner, share = _read_entry(index, entry)
        ledger.shares[owner] = share
        if time := entry.get("time"):
            ledger.times[owner] = str(time)
    return ledger


def _read_entry(index: int, entry: dict[str, Tree]) -> tuple[Owner, Share]:
    operation = entry.get("operation")
    if operation not in (APPLY, UPDATE):
        raise LedgerError("operation must be `Apply` or `Update`")
    if not (api_version := entry.get("apiVersion")):
        raise LedgerError("apiVersion must not be empty")
    match entry.get("fieldsType"):
        case "FieldsV1":
            pass
        case None | "":
            raise LedgerError(f"missing fieldsType in managed fields entry {index}")
        case other:
            raise LedgerError(
                f"invalid fieldsType {quoted(str(other))} in managed fields entry {index}"
            )
    told = entry.get("fieldsV1") or {}
    text = told if isinstance(told, Raw) else None
    try:
        fields = from_json(told) if text is None else _from_text(bytes(text))
    except ElementError as error:
        raise LedgerError(f"error decoding set: {error}") from None
    owner = Owner(
        str(entry.get("manager") or ""),
        operation,
        "" if operation == APPLY else str(api_version),
        str(entry.get("subresource") or ""),
    )
    return owner, Share(fields, str(api_version), text)


# Objects of a kind are mostly alike in their fields. Sets are values, so they can be shared.
@lru_cache(maxsize=4096)
def _from_text(text: bytes) -> FieldSet:
    return from_json(msgspec.json.decode(text))


def _written(share: Share) -> Any:
    """Return fieldsV1 of a share: the text that it was read from, if it is still that."""
    if share.text is not None and share.fields is _from_text(bytes(share.text)):
        return share.text
    return to_json(share.fields)


def seconds(time: str | None) -> int:
    """Return a time of managedFields as seconds; none is the beginning."""
    if not time:
        return 0
    try:
        return int(Timestamp.parse(time).instant.timestamp())
    except ApiError:
        return 0


def _entry_order(entry: dict[str, Any]) -> tuple[Any, ...]:
    return (
        entry["operation"],
        seconds(entry.get("time")),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )
