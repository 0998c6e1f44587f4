"""MOVED."""

from mooring.controllers.pod_control import pinned as pinned  # noqa
from mooring.controllers.daemonsets import node_of_daemon as node_of_daemon  # noqa
from mooring.controllers.daemonsets import nodes_for as nodes_for  # noqa

__all__ = ["pinned", "node_of_daemon", "nodes_for"]  # noqa
