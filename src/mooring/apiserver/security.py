"""MOVED."""

from mooring.apiserver.auth.users import ANONYMOUS as ANONYMOUS  # noqa
from mooring.apiserver.auth.users import AUTHENTICATED as AUTHENTICATED  # noqa
from mooring.apiserver.auth.authorizer import AlwaysAllow as AllowAll  # noqa
from mooring.apiserver.auth.users import MASTERS as MASTERS  # noqa
from mooring.apiserver.auth.authorizer import NO_SENDER as NO_SENDER  # noqa
from mooring.apiserver.auth.authorizer import Sender as Sender  # noqa

__all__ = ["ANONYMOUS", "AUTHENTICATED", "AllowAll", "MASTERS", "NO_SENDER", "Sender"]  # noqa
