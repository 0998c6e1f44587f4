"""MOVED."""

from mooring.apiserver.auth.credentials import ADMIN as ADMIN  # noqa
from mooring.apiserver.errors import CredentialsError as CredentialsError  # noqa
from mooring.apiserver.auth.credentials import CredentialsFolder as Folder  # noqa
from mooring.apiserver.auth.credentials import KUBELET_CLIENT as KUBELET_CLIENT  # noqa
from mooring.apiserver.auth.credentials import write_privately as write_privately  # noqa

__all__ = ["ADMIN", "CredentialsError", "Folder", "KUBELET_CLIENT", "write_privately"]  # noqa
