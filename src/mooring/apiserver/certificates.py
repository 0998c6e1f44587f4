"""MOVED."""

from mooring.apiserver.auth.certificates import Pair as Pair  # noqa
from mooring.apiserver.auth.certificates import names_of as names_of  # noqa
from mooring.apiserver.auth.certificates import user_of as user_of  # noqa

__all__ = ["Pair", "names_of", "user_of"]  # noqa
