"""Tokens from a file: lines of token,user,uid[,"group1,group2"], as --token-auth-file has them."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from typing import NamedTuple

from mooring.apiserver.calls import User

BYTES_MAX = 1 << 20
COLUMNS_MIN = 3


class TokenFileError(Exception):
    """A file of tokens that cannot be read; the text names the line."""


class StaticTokens(NamedTuple):
    """Users by their tokens; what is kept of a token is its digest."""

    users: Mapping[bytes, User]

    def find(self, token: str) -> User | None:
        """Return whose token it is.

        A digest is looked up, not the token: how long that takes tells nothing of other tokens.
        """
        return self.users.get(_digest(token))


def read_tokens(text: str, *, source: str = "token file") -> StaticTokens:
    """Return the tokens of a file."""
    if len(text) > BYTES_MAX:
        raise TokenFileError(f"{source}: larger than {BYTES_MAX} bytes")
    users: dict[bytes, User] = {}
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row and not row[0].startswith("#"):
                token, user = _read_row(row, f"{source}, line {reader.line_num}")
                users[_digest(token)] = user
    except csv.Error as error:
        raise TokenFileError(f"{source}, line {reader.line_num}: {error}") from None
    return StaticTokens(users)


def _read_row(row: list[str], place: str) -> tuple[str, User]:
    if len(row) < COLUMNS_MIN:
        raise TokenFileError(f"{place}: token, user name and user uid are needed, found {len(row)}")
    token, name, uid = (cell.strip() for cell in row[:COLUMNS_MIN])
    if not token or not name:
        raise TokenFileError(f"{place}: the token and the user name may not be empty")
    groups = tuple(group.strip() for group in ",".join(row[COLUMNS_MIN:]).split(","))
    return token, User(name, tuple(group for group in groups if group), uid)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
