"""Who talks with the keeper: connections on its socket, and what they ask.

    {"n": 7, "ask": "start", …}   →   {"n": 7, "ok": …} or {"n": 7, "refused": [reason, text]}
    {"ask": "watch"}              →   {"changed": state} for each change from now on

An answer may come much later, and others before it. A connection that asks to execute a command,
or to be attached to a container, is from then on about that only. One that says what cannot be
understood is closed, and so is one that does not take what it asked for.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mooring.node.runtime.shim.attachment import Attachment
from mooring.node.runtime.shim.container import Container, RefusalError, Stage
from mooring.node.runtime.shim.execution import WAITING_BYTES_MAX, Execution
from mooring.node.runtime.shim.frames import (
    INPUT,
    MESSAGE,
    PROTOCOL,
    FrameError,
    Frames,
    frame,
    message_frame,
    read_message,
)
from mooring.node.runtime.shim.keeper import Keeper
from mooring.node.runtime.shim.launches import Key, Launch, LaunchError
from mooring.node.runtime.shim.loop import READ, WRITE, Timer

CHUNK_BYTES = 256 * 1024
UNSENT_BYTES_MAX = 32 * 1024 * 1024
CONNECTIONS_MAX = 1024
ACCEPT_RETRY_S = 0.2
IDLE_S, FIRST_IDLE_S = 60.0, 10.0


class Server:
    """The door of a keeper."""

    def __init__(self, keeper: Keeper, listener: socket.socket, *, idle_s: float = IDLE_S) -> None:
        self.keeper = keeper
        self._listener, self._idle_s = listener, idle_s
        self._connections: set[Connection] = set()
        self._idle: Timer | None = None
        listener.setblocking(False)
        self._listen()
        keeper.on_change = self._changed
        # Whoever had us started is on the way.
        self._idle = keeper.loop.call_later(max(idle_s, FIRST_IDLE_S), self._end_if_idle)

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            self.keeper.loop.watch(self._listener.fileno(), READ, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # too many files are open; it would be ready again at once
            self.keeper.loop.forget(self._listener.fileno())
            self.keeper.loop.call_later(ACCEPT_RETRY_S, self._listen)
            return
        if len(self._connections) >= CONNECTIONS_MAX or not _is_ours(accepted):
            accepted.close()
            return
        accepted.setblocking(False)
        self._connections.add(Connection(self, accepted))

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        self._look_idle()

    def quit(self) -> None:
        """End the keeper once everybody knows."""
        if self._listener.fileno() >= 0:
            self.keeper.loop.forget(self._listener.fileno())
        self._listener.close()
        self.keeper.loop.call_later(0.0, self.keeper.loop.stop)

    def _changed(self, state: dict[str, Any]) -> None:
        told = message_frame({"changed": state})
        for connection in list(self._connections):
            if connection.is_watching:
                connection.write(told)
        self._look_idle()

    def _look_idle(self) -> None:
        """End when for a while nobody was there and nothing ran."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._connections and self.keeper.is_idle:
            self._idle = self.keeper.loop.call_later(self._idle_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._connections and self.keeper.is_idle:
            self.quit()


class Connection:
    """One who talks with us."""

    def __init__(self, server: Server, accepted: socket.socket) -> None:
        self.is_watching = False
        self._server, self._socket = server, accepted
        self._keeper, self._loop = server.keeper, server.keeper.loop
        self._frames = Frames()
        self._unsent = bytearray()
        self._execution: Execution | Attachment | None = None
        self._is_held = self._is_finishing = self._is_closed = False
        self._watch()

    @property
    def waiting_bytes(self) -> int:
        """What it has not taken yet."""
        return len(self._unsent)

    def send(self, channel: int, payload: bytes) -> None:
        """Send bytes of a stream."""
        self.write(frame(channel, payload))

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.write(message_frame(message))

    def write(self, data: bytes) -> None:
        """Send bytes, as soon as they are taken."""
        if self._is_closed:
            return
        self._unsent += data
        self._flush()

    def finish(self) -> None:
        """Send what is left and say no more; it is closed when the other end is.

        Whoever still sends must not be cut off: they would not hear our last words.
        """
        self._execution = None
        self._is_finishing = True
        self._is_held = False
        self._flush()

    def hold(self, *, is_held: bool) -> None:
        """Take no more input for now, or again."""
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
        if self._execution is not None and len(self._unsent) <= WAITING_BYTES_MAX // 2:
            self._execution.flushed()
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
            return  # nobody is left to hear it
        try:
            for channel, payload in self._frames.feed(data):
                self._take(channel, payload)
        except FrameError as error:
            print(f"connection closed: {error}", file=sys.stderr, flush=True)
            self._close()

    def _take(self, channel: int, payload: bytes) -> None:
        if channel == INPUT:
            if self._execution is not None:
                self._execution.feed(payload)
        elif channel == MESSAGE:
            message = read_message(payload)
            if self._execution is not None:
                self._execution.control(message)
            else:
                self._asked(message)

    def _asked(self, message: dict[str, Any]) -> None:
        number = message.get("n")
        try:
            handler = _HANDLERS.get(str(message.get("ask")))
            if handler is None:
                raise LaunchError(f"nothing is known of {str(message.get('ask'))[:64]!r}")
            handler(self, number, message)
        except RefusalError as refusal:
            self.tell({"n": number, "refused": [refusal.reason, str(refusal)]})
        except (LaunchError, TypeError, ValueError) as error:
            self.tell({"n": number, "refused": ["BadRequest", str(error)]})

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        self._unsent.clear()
        if self._execution is not None:
            self._execution.abandoned()
        self._server.closed(self)

    # --- what is asked -------------------------------------------------------------------------

    def _hello(self, number: Any, _: dict[str, Any]) -> None:
        controllers = self._keeper.cgroups.controllers
        told = {"protocol": PROTOCOL, "pid": os.getpid(), "controllers": controllers}
        self.tell({"n": number, "ok": told})

    def _containers(self, number: Any, message: dict[str, Any]) -> None:
        pod_uid = message.get("pod_uid", "")  # empty: of all pods
        states = [
            each.state()
            for key, each in self._keeper.containers.items()
            if each.stage is not Stage.STARTING and (not pod_uid or key.pod_uid == pod_uid)
        ]
        self.tell({"n": number, "ok": states})

    def _watch_changes(self, number: Any, _: dict[str, Any]) -> None:
        self.is_watching = True
        self._containers(number, {})

    def _start(self, number: Any, message: dict[str, Any]) -> None:
        def answer(what: Container | RefusalError) -> None:
            if isinstance(what, RefusalError):
                self.tell({"n": number, "refused": [what.reason, str(what)]})
            else:
                self.tell({"n": number, "ok": what.state()})

        self._keeper.start(Launch.read(message.get("launch")), answer)

    def _stop(self, number: Any, message: dict[str, Any]) -> None:
        grace_s = float(message.get("grace_s", 0.0))
        self._keeper.stop(Key.read(message.get("key")), grace_s, lambda: self._done(number))

    def _remove(self, number: Any, message: dict[str, Any]) -> None:
        self._keeper.remove(str(message.get("pod_uid")), lambda: self._done(number))

    def _forget(self, number: Any, message: dict[str, Any]) -> None:
        self._keeper.forget(Key.read(message.get("key")))
        self._done(number)

    def _execute(self, number: Any, message: dict[str, Any]) -> None:
        key = Key.read(message.get("key"))
        container = self._keeper.containers.get(key)
        command = tuple(map(str, message.get("command", ())))
        if container is None or not command:
            raise RefusalError(
                "ContainerNotFound", f"container {key} is not known, or no command is given"
            )
        execution = Execution(container, self, number)
        try:
            execution.start(command, tty=bool(message.get("tty")), stdin=bool(message.get("stdin")))
        except OSError as error:
            raise RefusalError("StartError", f"{error.strerror or error}") from None
        self._execution = execution

    def _attach(self, number: Any, message: dict[str, Any]) -> None:
        key = Key.read(message.get("key"))
        container = self._keeper.containers.get(key)
        if container is None:
            raise RefusalError("ContainerNotFound", f"container {key} is not known")
        attachment = Attachment(container, self, number, stdin=bool(message.get("stdin")))
        self._execution = attachment
        try:
            attachment.start()
        except RefusalError:
            self._execution = None
            raise

    def _quit(self, number: Any, message: dict[str, Any]) -> None:
        def end() -> None:
            self._done(number)
            self._server.quit()

        self._keeper.stop_all(float(message.get("grace_s", 0.0)), end)

    def _done(self, number: Any) -> None:
        self.tell({"n": number, "ok": None})


Handler = Callable[[Connection, Any, dict[str, Any]], None]
_HANDLERS: dict[str, Handler] = {
    "hello": Connection._hello,
    "containers": Connection._containers,
    "watch": Connection._watch_changes,
    "start": Connection._start,
    "stop": Connection._stop,
    "remove": Connection._remove,
    "forget": Connection._forget,
    "execute": Connection._execute,
    "attach": Connection._attach,
    "quit": Connection._quit,
}


def _is_ours(accepted: socket.socket) -> bool:
    """Return whether the one who connects is our own user, or root."""
    credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, user, _ = struct.unpack("3i", credentials)
    return user in (0, os.geteuid())
