"""What the endpoint must know of the pods of a node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from mooring.api.core import Pod


class Pods(Protocol):
    """The pods of this node, each with its status as the agent knows it now.

    A container's restart count is the attempt that its log is looked for under, as the runtime
    counts them.
    """

    def find(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, if it is here."""

    def all(self) -> Iterable[Pod]:
        """Return all of them."""


class _NoPods:
    def find(self, namespace: str, name: str) -> Pod | None:  # noqa: ARG002
        return None

    def all(self) -> Iterable[Pod]:
        return ()


NO_PODS: Final = _NoPods()
