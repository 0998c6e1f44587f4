"""Another control plane beside ours: `dev.py bench live --peer CMD…` loads both in the same way.

The command is started as `CMD… FOLDER` for each run, in an empty folder. It

    1. starts an API server, a scheduler and controllers, without any objects of before;
    2. writes FOLDER/kubeconfig, whose user may do everything;
    3. prints a line that begins with `ready` to its standard output;
    4. ends, with all that it started, on SIGINT.

CPU time and memory are those of all processes of its session, so it must not leave that (`setsid`).
There are no kubelets: the control plane must not evict pods from nodes that report nothing
(Kubernetes: `--controllers=*,-node-lifecycle-controller`), and must not wait for its clients more
than the load makes it (Kubernetes: `--kube-api-qps`). The taints that an API server puts on new
nodes are removed, as controllers do once a kubelet reports.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks._live_cluster import TICKS_PER_S, Usage, line_of, start, stop
from moorage.api.core import ServiceAccount
from moorage.api.core.node import Node
from moorage.client.api_client import ApiClient
from moorage.client.contract import list_all
from moorage.client.writes import Patch, Target

READY = "ready"
KUBECONFIG = "kubeconfig"
ACCOUNT = "default"  # of the pods; a controller makes it
ACCOUNT_S = 60.0
POLL_S = 0.1
# Fields of /proc/PID/stat after the name; ticks are user, system, and those of ended children.
_STATE, _SESSION, _OWN_AND_CHILDREN_TICKS = 0, 3, slice(11, 15)
_ZOMBIE = "Z"


class PeerProcesses(NamedTuple):
    """The processes of a peer: whatever belongs to the session of its command."""

    session: int

    def usages(self) -> tuple[Usage, Usage, Usage]:
        """Return what the peer has taken, nothing for programs beside it, and this process."""
        return session_usage(self.session), Usage(0.0, 0.0), Usage.of(os.getpid())


def session_usage(session: int) -> Usage:
    """Return the usage of all processes of a session; peaks are added up."""
    ticks = 0
    peak_mib = 0.0
    for process, fields in _members(session):
        ticks += sum(map(int, fields[_OWN_AND_CHILDREN_TICKS]))
        with suppress(OSError, StopIteration):  # it ended meanwhile
            peak_mib += Usage.of(process).peak_mib
    return Usage(ticks / TICKS_PER_S, peak_mib)


def _members(session: int) -> Iterator[tuple[int, list[str]]]:
    """Return the processes of a session that have not ended, with the fields of their `stat`."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[_SESSION]) == session and fields[_STATE] != _ZOMBIE:
                yield int(process.name), fields


@asynccontextmanager
async def peer(command: Sequence[str], folder: Path) -> AsyncIterator[PeerProcesses]:
    """Run a peer for as long as a block lasts, which begins when it is ready."""
    process = start([*command, str(folder)], None, new_session=True)
    try:
        await line_of(process, READY)
        if not (folder / KUBECONFIG).is_file():
            raise RuntimeError(f"{command!r} is ready, but wrote no {KUBECONFIG}")
        yield PeerProcesses(process.pid)
    finally:
        await stop(process)
        await _end_session(process.pid)


async def _end_session(session: int) -> None:
    """End what the command started and left behind."""
    while members := [process for process, _ in _members(session)]:
        for process in members:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await asyncio.sleep(0.01)


async def make_schedulable(client: ApiClient, nodes: Sequence[Node], namespace: str) -> None:
    """Let pods be created and bound: wait for their account, and remove taints of new nodes."""
    tainted = {node.metadata.name for node in nodes if node.spec.taints}
    for node in (await list_all(client, Node)).values:
        if node.spec.taints and node.metadata.name not in tainted:
            await client.write(Patch(Target.of(node), {"spec": {"taints": None}}))
    end_s = time.monotonic() + ACCOUNT_S
    while await client.get(ServiceAccount, namespace, ACCOUNT) is None:
        if time.monotonic() > end_s:
            raise TimeoutError(f"no service account {ACCOUNT} in namespace {namespace}")
        await asyncio.sleep(POLL_S)


# --- ratios ---------------------------------------------------------------------------------------


class Result(NamedTuple):
    """The figures of one run that are compared."""

    pods_per_s: float
    p50_ms: float
    cpu_ms: float  # of the control plane, for a pod
    peak_mib: float  # of the control plane


RATIOS = ("pods/s", "p50", "CPU a pod", "memory")


def ratio_line(name: str, pairs: Sequence[tuple[Result, Result]]) -> str:
    """Return our figures divided by those of the peer, over all pairs: median (least to most)."""
    found = []
    for title, *ratios in zip(RATIOS, *map(_ratios, pairs), strict=True):
        text = f"{title} {median(ratios):.2f} ×"
        found.append(text if len(ratios) == 1 else f"{text} ({min(ratios):.2f}–{max(ratios):.2f})")
    return f"{name}: ours to the peer's: {', '.join(found)}"


def _ratios(pair: tuple[Result, Result]) -> tuple[float, ...]:
    return tuple(ours / theirs for ours, theirs in zip(*pair, strict=True))
