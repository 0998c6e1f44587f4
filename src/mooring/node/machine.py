"""MOVED."""

from mooring.node.node_status import address_towards as address_towards  # noqa
from mooring.node.node_status import read_machine as read_machine  # noqa

__all__ = ["address_towards", "read_machine"]  # noqa
