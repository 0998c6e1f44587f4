"""What ends an attempt to schedule a pod.

CycleFault    a plugin failed on a node; no other node is asked
"""

from __future__ import annotations


class CycleFault(Exception):  # noqa: N818 - a fault, as Kubernetes' messages call it
    """A plugin failed; the message is Kubernetes'."""
