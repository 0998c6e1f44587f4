"""Whoever is attached to a container: hears what it says from now on, and may tell it something.

    peer ──► Attachment ──► Input ──► the container's standard input
         ◄── Attachment ◄── Container, for each part of its output

A container never waits for who is attached: one who does not take what is said is let go.

# input: one for each container that was started with `stdin`; all who are attached share it
# once: after the first who told it something goes, the input is at its end (stdinOnce)
"""

from __future__ import annotations

from typing import Any

from mooring.node.runtime.shim import child
from mooring.node.runtime.shim.container import Container, RefusalError, Stage
from mooring.node.runtime.shim.execution import Peer

BEHIND_BYTES_MAX = 1024 * 1024  # that a peer has not taken when it is let go


class Attachment:
    """One who is attached."""

    def __init__(self, container: Container, peer: Peer, number: int, *, stdin: bool) -> None:
        self._container, self._peer, self._number = container, peer, number
        self._input = container.input if stdin else None

    def start(self) -> None:
        """Hear what the container says, or raise RefusalError if it does not run."""
        container = self._container
        if container.stage is not Stage.RUNNING:
            raise RefusalError(
                "ContainerNotRunning", f"container {container.record.key} is not running"
            )
        self._peer.tell({"n": self._number, "ok": {}})
        container.attached.add(self)
        if self._input is not None:
            self._input.on_room.append(self._has_room)

    def said(self, channel: int, data: bytes) -> None:
        """Pass on what the container says."""
        self._peer.send(channel, data)
        if self._peer.waiting_bytes > BEHIND_BYTES_MAX:
            self._leave()

    def ended(self) -> None:
        """Tell that the container has ended; how is not told here."""
        self._leave()

    def feed(self, data: bytes) -> None:
        """Give the container input; whoever gives more than it reads has to wait."""
        if self._input is not None:
            self._input.feed(data)
            self._peer.hold(is_held=self._input.is_full)

    def control(self, message: dict[str, Any]) -> None:
        """Do what its user asks."""
        match message.get("ask"):
            case "close_input":
                self._end_input()
            case "resize":
                for descriptor in self._container.terminals():
                    child.resize(descriptor, message)
            case "kill":
                self._leave()

    def abandoned(self) -> None:
        """Let go, as nobody listens any more."""
        self._container.attached.discard(self)
        self._end_input()

    def flushed(self) -> None:
        """Do nothing: the container does not wait."""

    def _leave(self) -> None:
        self.abandoned()
        self._peer.tell({"exited": 0})
        self._peer.finish()

    def _end_input(self) -> None:
        """Take that this one says no more; with `stdinOnce` nobody does."""
        launch = self._container.launch
        if self._input is not None:
            if self._has_room in self._input.on_room:
                self._input.on_room.remove(self._has_room)
            if launch is not None and launch.stdin_once:
                self._input.end()

    def _has_room(self) -> None:
        self._peer.hold(is_held=False)
