"""MOVED."""

from mooring.apiserver.namespace_controller import create_system_namespaces as make_namespaces  # noqa

__all__ = ["make_namespaces"]  # noqa
