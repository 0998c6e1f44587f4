"""The shim's socket: connections, and their requests.

    {"n": 7, "ask": "start", …}   →   {"n": 7, "ok": …} or {"n": 7, "refused": [reason, text]}
    {"ask": "watch"}              →   {"changed": state} for each change from now on

A response may come much later, and others before it. A connection that executes a command or
attaches to a container is used for nothing else afterwards. The shim closes a connection that sends
malformed data, or does not read the response.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moorage.node.runtime.shim.container import Container, ContainerStage, ShimRefusalError
from moorage.node.runtime.shim.container_io import WAITING_BYTES_MAX
from moorage.node.runtime.shim.exec_attach import Attachment, ExecCommand
from moorage.node.runtime.shim.linux import READ, WRITE, LoopTimer, complain
from moorage.node.runtime.shim.protocol import (
    INPUT,
    MESSAGE,
    PROTOCOL,
    ContainerKey,
    FrameError,
    Frames,
    Launch,
    LaunchError,
    frame,
    message_frame,
    read_message,
)
from moorage.node.runtime.shim.resources import update_limits, usage

if TYPE_CHECKING:
    from moorage.node.runtime.shim.shim import Shim

CHUNK_BYTES = 256 * 1024
UNSENT_BYTES_MAX = 32 * 1024 * 1024
CONNECTIONS_MAX = 1024
ACCEPT_RETRY_S = 0.2
IDLE_S, FIRST_IDLE_S = 60.0, 10.0


class ShimServer:
    """Accepts connections, and ends the shim when it is idle."""

    def __init__(self, shim: Shim, listener: socket.socket, *, idle_s: float = IDLE_S) -> None:
        self.shim = shim
        self._listener, self._idle_s = listener, idle_s
        self._connections: set[_ShimConnection] = set()
        self._idle: LoopTimer | None = None
        listener.setblocking(False)
        self._listen()
        shim.on_change = self._changed
        # The agent that started the shim is about to connect.
        self._idle = shim.loop.call_later(max(idle_s, FIRST_IDLE_S), self._end_if_idle)

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            self.shim.loop.watch(self._listener.fileno(), READ, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # too many open files; the socket would be ready again at once
            self.shim.loop.forget(self._listener.fileno())
            self.shim.loop.call_later(ACCEPT_RETRY_S, self._listen)
            return
        if len(self._connections) >= CONNECTIONS_MAX or not _is_ours(accepted):
            accepted.close()
            return
        accepted.setblocking(False)
        self._connections.add(_ShimConnection(self, accepted))

    def closed(self, connection: _ShimConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        self._look_idle()

    def quit(self) -> None:
        """Stop the shim after pending messages."""
        if self._listener.fileno() >= 0:
            self.shim.loop.forget(self._listener.fileno())
        self._listener.close()
        self.shim.loop.call_later(0.0, self.shim.loop.stop)

    def _changed(self, state: dict[str, Any]) -> None:
        data = message_frame({"changed": state})
        for connection in list(self._connections):
            if connection.is_watching:
                connection.write(data)
        self._look_idle()

    def _look_idle(self) -> None:
        """Stop the shim later, if nobody is connected and nothing runs."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._connections and self.shim.is_idle:
            self._idle = self.shim.loop.call_later(self._idle_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._connections and self.shim.is_idle:
            self.quit()


class _ShimConnection:
    """One client of the shim."""

    def __init__(self, server: ShimServer, accepted: socket.socket) -> None:
        self.is_watching = False
        self._server, self._socket = server, accepted
        self._shim, self._loop = server.shim, server.shim.loop
        self._frames = Frames()
        self._unsent = bytearray()
        self._command: ExecCommand | Attachment | None = None
        self._is_held = self._is_finishing = self._is_closed = False
        self._watch()

    @property
    def waiting_bytes(self) -> int:
        """How many bytes it has not received yet."""
        return len(self._unsent)

    def send(self, channel: int, payload: bytes) -> None:
        """Send bytes of a stream."""
        self.write(frame(channel, payload))

    def send_message(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.write(message_frame(message))

    def write(self, data: bytes) -> None:
        """Send bytes as soon as the socket takes them."""
        if self._is_closed:
            return
        self._unsent += data
        self._flush()

    def finish(self) -> None:
        """Send the remaining data and then nothing more; the client closes the connection.

        A client that is still sending must not be cut off: it would miss the last messages.
        """
        self._command = None
        self._is_finishing = True
        self._is_held = False
        self._flush()

    def hold(self, *, is_held: bool) -> None:
        """Stop or resume reading from it."""
        if self._is_held != is_held:
            self._is_held = is_held
            self._watch()

    def _watch(self) -> None:
        if self._is_closed:
            return
        events = (0 if self._is_held else READ) | (WRITE if self._unsent else 0)
        if events:
            self._loop.watch(self._socket.fileno(), events, self._ready)
        else:
            self._loop.forget(self._socket.fileno())

    def _ready(self) -> None:
        if self._unsent:
            self._flush()
        if not self._is_closed and not self._is_held:
            self._receive()

    def _flush(self) -> None:
        try:
            while self._unsent:
                count = self._socket.send(self._unsent[:CHUNK_BYTES])
                del self._unsent[:count]
        except BlockingIOError:
            pass
        except OSError:
            self._close()
            return
        if len(self._unsent) > UNSENT_BYTES_MAX:
            self._close()
            return
        if self._is_finishing and not self._unsent:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
        if self._command is not None and len(self._unsent) <= WAITING_BYTES_MAX // 2:
            self._command.flushed()
        self._watch()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
            return
        if self._is_finishing:
            return  # the session is over
        try:
            for channel, payload in self._frames.feed(data):
                self._take(channel, payload)
        except FrameError as error:
            complain(f"connection closed: {error}")
            self._close()

    def _take(self, channel: int, payload: bytes) -> None:
        if channel == INPUT:
            if self._command is not None:
                self._command.feed(payload)
        elif channel == MESSAGE:
            message = read_message(payload)
            if self._command is not None:
                self._command.control(message)
            else:
                self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        number = message.get("n")
        try:
            handler = _HANDLERS.get(str(message.get("ask")))
            if handler is None:
                raise LaunchError(f"unknown request {str(message.get('ask'))[:64]!r}")
            handler(self, number, message)
        except ShimRefusalError as refusal:
            self.send_message({"n": number, "refused": [refusal.reason, str(refusal)]})
        except (LaunchError, TypeError, ValueError) as error:
            self.send_message({"n": number, "refused": ["BadRequest", str(error)]})

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        self._unsent.clear()
        if self._command is not None:
            self._command.abandoned()
        self._server.closed(self)

    # --- requests ---------------------------------------------------------------------------------

    def _hello(self, number: Any, _: dict[str, Any]) -> None:
        controllers = self._shim.cgroups.controllers
        hello = {"protocol": PROTOCOL, "pid": os.getpid(), "controllers": controllers}
        self.send_message({"n": number, "ok": hello})

    def _containers(self, number: Any, message: dict[str, Any]) -> None:
        pod_uid = message.get("pod_uid", "")  # empty: all pods
        states = [
            each.state()
            for key, each in self._shim.containers.items()
            if each.stage is not ContainerStage.STARTING and (not pod_uid or key.pod_uid == pod_uid)
        ]
        self.send_message({"n": number, "ok": states})

    def _watch_changes(self, number: Any, _: dict[str, Any]) -> None:
        self.is_watching = True
        self._containers(number, {})

    def _start(self, number: Any, message: dict[str, Any]) -> None:
        def respond(what: Container | ShimRefusalError) -> None:
            if isinstance(what, ShimRefusalError):
                self.send_message({"n": number, "refused": [what.reason, str(what)]})
            else:
                self.send_message({"n": number, "ok": what.state()})

        self._shim.start(Launch.read(message.get("launch")), respond)

    def _stop(self, number: Any, message: dict[str, Any]) -> None:
        grace_s = float(message.get("grace_s", 0.0))
        self._shim.stop(ContainerKey.read(message.get("key")), grace_s, lambda: self._done(number))

    def _update(self, number: Any, message: dict[str, Any]) -> None:
        key = ContainerKey.read(message.get("key"))
        container = self._shim.containers.get(key)
        if container is None:
            raise ShimRefusalError("ContainerNotFound", f"container {key} is unknown")
        cpu, memory = (read_amount(message.get(each)) for each in ("cpu_millis", "memory_bytes"))
        update_limits(container, cpu_millis=cpu, memory_bytes=memory)
        self._done(number)

    def _stats(self, number: Any, _: dict[str, Any]) -> None:
        found = [usage(each) for each in self._shim.containers.values()]
        self.send_message({"n": number, "ok": [each for each in found if each is not None]})

    def _remove(self, number: Any, message: dict[str, Any]) -> None:
        self._shim.remove(str(message.get("pod_uid")), lambda: self._done(number))

    def _forget(self, number: Any, message: dict[str, Any]) -> None:
        self._shim.forget(ContainerKey.read(message.get("key")))
        self._done(number)

    def _execute(self, number: Any, message: dict[str, Any]) -> None:
        key = ContainerKey.read(message.get("key"))
        container = self._shim.containers.get(key)
        command = tuple(map(str, message.get("command", ())))
        if container is None or not command:
            raise ShimRefusalError(
                "ContainerNotFound", f"container {key} is unknown, or the command is empty"
            )
        command_ = ExecCommand(container, self, number)
        try:
            command_.start(command, tty=bool(message.get("tty")), stdin=bool(message.get("stdin")))
        except OSError as error:
            raise ShimRefusalError("StartError", f"{error.strerror or error}") from None
        self._command = command_

    def _attach(self, number: Any, message: dict[str, Any]) -> None:
        key = ContainerKey.read(message.get("key"))
        container = self._shim.containers.get(key)
        if container is None:
            raise ShimRefusalError("ContainerNotFound", f"container {key} is unknown")
        attachment = Attachment(container, self, number, stdin=bool(message.get("stdin")))
        self._command = attachment
        try:
            attachment.start()
        except ShimRefusalError:
            self._command = None
            raise

    def _quit(self, number: Any, message: dict[str, Any]) -> None:
        def end() -> None:
            self._done(number)
            self._server.quit()

        self._shim.stop_all(float(message.get("grace_s", 0.0)), end)

    def _done(self, number: Any) -> None:
        self.send_message({"n": number, "ok": None})


Handler = Callable[[_ShimConnection, Any, dict[str, Any]], None]
_HANDLERS: dict[str, Handler] = {
    "hello": _ShimConnection._hello,
    "containers": _ShimConnection._containers,
    "watch": _ShimConnection._watch_changes,
    "start": _ShimConnection._start,
    "stop": _ShimConnection._stop,
    "update": _ShimConnection._update,
    "stats": _ShimConnection._stats,
    "remove": _ShimConnection._remove,
    "forget": _ShimConnection._forget,
    "execute": _ShimConnection._execute,
    "attach": _ShimConnection._attach,
    "quit": _ShimConnection._quit,
}


def read_amount(value: Any) -> int | None:
    """Return an amount of a resource, or raise LaunchError; None is no limit."""
    if value is None or (isinstance(value, int) and 0 <= value < 2**63):
        return value
    raise LaunchError(f"{str(value)[:64]!r} is not an amount")


def _is_ours(accepted: socket.socket) -> bool:
    """Return whether the client is our own user, or root."""
    credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, user, _ = struct.unpack("3i", credentials)
    return user in (0, os.geteuid())
