"""A bench for one driver: an API server, a node, and the folders of a kubelet.

A driver that the bench starts gets all it needs in its command line, through these placeholders:

{kubeconfig}  {node}  {root}  {registry}  {plugins}  {cdi}

and in its environment, under the names that drivers use: KUBECONFIG, NODE_NAME,
KUBELET_DIR, KUBELET_REGISTRAR_DIRECTORY_PATH, KUBELET_PLUGINS_DIRECTORY_PATH and CDI_ROOT.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create

NODE_NAME = "check"
# The environment of a driver; the last three are those of Kubernetes' example driver, which other
# drivers adopted.
VARIABLES = {
    "KUBECONFIG": "kubeconfig",
    "NODE_NAME": "node",
    "KUBELET_DIR": "root",
    "KUBELET_REGISTRAR_DIRECTORY_PATH": "registry",
    "KUBELET_PLUGINS_DIRECTORY_PATH": "plugins",
    "CDI_ROOT": "cdi",
}
START_S = 30.0
STOP_S = 10.0  # of the API server
GRACE_S = 30.0  # of a driver: the default of pods
_SERVER = (sys.executable, "-m", "moorage.cli.main", "server", "--port", "0")


class BenchError(Exception):
    """The bench cannot be set up; the text says why."""


class Folders(Struct, frozen=True):
    """The folders of a kubelet; short, because paths of sockets must be."""

    root: Path
    own_cdi: Path | None = None  # the folder of CDI specs, if not below the root

    @property
    def registry(self) -> Path:
        """Where drivers put their registration sockets."""
        return self.root / "plugins_registry"

    @property
    def plugins(self) -> Path:
        """Where each driver has a folder."""
        return self.root / "plugins"

    @property
    def cdi(self) -> Path:
        """Where drivers write CDI specs."""
        return self.own_cdi or self.root / "cdi"

    def make(self) -> None:
        """Create all of them."""
        for folder in (self.registry, self.plugins, self.cdi):
            folder.mkdir(parents=True, exist_ok=True)


class Bench:
    """An API server and a node, for one driver under test."""

    def __init__(self, folders: Folders, kubeconfig: Path, client: ApiClient, node: Node) -> None:
        self.folders, self.kubeconfig, self.client, self.node = folders, kubeconfig, client, node

    @property
    def words(self) -> dict[str, str]:
        """The values of the placeholders in a command line."""
        return {
            "kubeconfig": str(self.kubeconfig),
            "node": self.node.metadata.name,
            "root": str(self.folders.root),
            "registry": str(self.folders.registry),
            "plugins": str(self.folders.plugins),
            "cdi": str(self.folders.cdi),
        }

    def reboot(self) -> None:
        """Empty the folder of CDI specs, which is in memory, as a reboot does."""
        for path in self.folders.cdi.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


@asynccontextmanager
async def bench(node_name: str = NODE_NAME) -> AsyncIterator[Bench]:
    """Set up a bench; nothing is left of it."""
    root = Path(tempfile.mkdtemp(prefix="moor-", dir=_short_folder()))
    folders = Folders(root)
    folders.make()
    try:
        async with (
            _server(root / "server") as kubeconfig,
            http_client(load_rest_config(str(kubeconfig))) as client,
        ):
            node = await client.write(Create(Node(metadata=ObjectMeta(name=node_name))))
            yield Bench(folders, kubeconfig, client, node)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@asynccontextmanager
async def attached(kubeconfig: str, node_name: str, cdi: Path) -> AsyncIterator[Bench]:
    """Use a cluster and node where a driver runs already as the bench."""
    access = load_rest_config(kubeconfig)
    async with http_client(access) as client:
        node = await client.get(Node, "", node_name)
        if node is None:
            raise BenchError(f"there is no node {node_name} at {access.server}")
        yield Bench(Folders(cdi.parent, cdi), Path(kubeconfig), client, node)


def _short_folder() -> str | None:
    """Return a folder in which socket paths stay short, if there is one."""
    return "/tmp" if os.path.isdir("/tmp") else None  # noqa: S108  # mkdtemp makes it private


@asynccontextmanager
async def _server(folder: Path) -> AsyncIterator[Path]:
    command = (*_SERVER, "--data-dir", str(folder))
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await process.stderr.readline()).decode(errors="replace")
        if not line.startswith("serving at "):
            raise BenchError(f"the API server did not start: {line.strip()}")
        yield folder / "kubeconfig"
    except TimeoutError:
        raise BenchError(f"the API server did not start within {START_S:.0f} s") from None
    finally:
        await end(process)


class DriverProgram(Protocol):
    """A driver that can be started, killed and started again."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None while it runs."""

    async def start(self) -> None:
        """Start it, or raise BenchError."""

    async def kill(self) -> None:
        """Kill it."""

    async def stop(self) -> bool:
        """Send SIGTERM; return whether it ended in time."""

    def last_words(self, lines: int = 20) -> str:
        """Return the end of its output."""


class DriverProcess:
    """A program in any language."""

    def __init__(self, command: Sequence[str], words: Mapping[str, str], log: Path) -> None:
        self._command = [_filled(word, words) for word in command]
        self._environment = {
            **os.environ,
            **{name: words[word] for name, word in VARIABLES.items()},
        }
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                where = self._command[0]
                raise BenchError(f"{where}: cannot be started: {error.strerror}") from None

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None while it runs."""
        return None if self._process is None else self._process.returncode

    async def kill(self) -> None:
        """Kill it, with its child processes."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def stop(self) -> bool:
        """Send SIGTERM; return whether it ended in time."""
        if self._process is None or self._process.returncode is not None:
            return True
        self._process.terminate()
        try:
            async with asyncio.timeout(GRACE_S):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
            return False
        return True

    def last_words(self, lines: int = 20) -> str:
        """Return the end of its output."""
        text = self._log.read_bytes()[-8192:].decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])


def _filled(word: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(f"{{{name}}}", value)
    return word


async def end(process: asyncio.subprocess.Process) -> None:
    """Terminate a process."""
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
