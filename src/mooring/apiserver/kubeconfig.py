"""MOVED."""

from mooring.apiserver.auth.credentials import kubeconfig as kubeconfig  # noqa

__all__ = ["kubeconfig"]  # noqa
