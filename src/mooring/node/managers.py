"""MOVED."""

from mooring.node.contract import DeviceManagers as Managers  # noqa

__all__ = ["Managers"]  # noqa
