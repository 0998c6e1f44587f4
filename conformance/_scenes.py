"""Scenes: requests of our own and Kubernetes' answers, replayed in order on a server of ours.

The server is a whole one, without the network: its admission, its policies and its controllers for
namespaces and definitions run. The user is its administrator, who is called as in the recording.
What a controller of the server does after a request may come a moment later in both, so an answer
that differs is asked for again while something happens, unless the request changed something.

Addresses and ports that a server chooses are compared by form, and the managers of fields in any
order. Warnings that nothing acts on an object are ours alone, and not compared.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.gates import Gates
from moorage.apiserver.auth.users import MASTERS, read_tokens
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Settings

_TOKEN = "scenes"  # noqa: S105
SETTLE_S = 0.02
TRIES_MAX = 50
# What nothing acts on, as a whole or in part.
OWN_WARNING = re.compile("is stored, but has no effect|^.{0,10}Service (type|with) ")
_CHOSEN = ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


class SceneServer:
    """A server for one scene."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-scenes-"))
        self._stack = AsyncExitStack()
        # With the versions and gates that Kubernetes has by default, as in the recordings.
        settings = Settings(
            self._folder,
            gates=Gates.parse(preset="kubernetes-1.37"),
            has_rbac=True,
            tokens=read_tokens(f'{_TOKEN},admin,admin,"{MASTERS}"'),
        )
        made = self._run(self._stack.enter_async_context(assembled(settings)))
        self._router = made.application.router

    def close(self) -> None:
        """Stop the server and forget its objects."""
        self._run(self._stack.aclose())
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, awaitable: Any) -> Any:
        return self._loop.run_until_complete(awaitable)

    def ask(self, request: Request) -> Response:
        """Return our answer."""
        headers = {**request.headers, "authorization": f"Bearer {_TOKEN}"}
        answer = self._run(self._router.handle(replace(request, headers=headers)))
        assert isinstance(answer, Response)
        return answer

    def settle(self) -> None:
        """Let the controllers of the server see what happened."""
        self._run(asyncio.sleep(SETTLE_S))


def without_choices(tree: Any) -> Any:
    """Return a tree without addresses and ports that a server chose."""
    match tree:
        case dict():
            return {key: _without_choice(key, value) for key, value in tree.items()}
        case list():
            return [without_choices(item) for item in tree]
    return tree


def _without_choice(key: str, value: Any) -> Any:
    if key in _CHOSEN:
        return _form(value)
    if key == "managedFields":  # Their order depends on the seconds in which they wrote.
        value = sorted(value, key=_owner)
    return without_choices(value)


def _owner(entry: dict[str, Any]) -> tuple[str, ...]:
    return (entry["manager"], entry.get("subresource", ""), entry["apiVersion"])


def _form(value: Any) -> Any:
    if isinstance(value, list):
        return [_form(item) for item in value]
    if isinstance(value, str):
        return _ADDRESS.sub("ADDRESS", value)
    return type(value).__name__


def without_order(tree: Any) -> Any:
    """Return a Status with its causes in the order of their fields, and the same in its message."""
    match tree:
        case {"details": {"causes": list(causes)} as details, "message": str(message)}:
            head, _, _ = message.partition(" is invalid: ")
            ordered = sorted(causes, key=lambda cause: (cause["field"], cause["message"]))
            return {**tree, "details": {**details, "causes": ordered}, "message": head}
    return tree
