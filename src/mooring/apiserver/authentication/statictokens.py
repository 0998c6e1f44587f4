"""MOVED."""

from mooring.apiserver.auth.users import StaticTokens as StaticTokens  # noqa
from mooring.apiserver.errors import TokenFileError as TokenFileError  # noqa
from mooring.apiserver.auth.users import read_tokens as read_tokens  # noqa

__all__ = ["StaticTokens", "TokenFileError", "read_tokens"]  # noqa
