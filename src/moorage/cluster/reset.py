"""Removing a cluster: stop its containers and delete its files.

Other files in the directory, and then the directory itself, are kept.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from moorage.cluster.node import END_GRACE_S, NodeError, held
from moorage.cluster.run.holder_pod import FOLDER as RUNS
from moorage.cluster.state_folder import (
    CDI,
    CREDENTIALS,
    LOCK,
    LOGS,
    NODE,
    RECORD,
    FolderError,
    NodeState,
    StateFolder,
    link_of,
    remove_short_path,
)
from moorage.node.runtime.contract import RuntimeRefusedError
from moorage.store.errors import StoreError
from moorage.store.sqlite.database import RECORD_FILE as STORE_RECORD
from moorage.store.sqlite.database import Folder

STORE, CONTAINERS = "store", "containers"
# The lock is last: until then nobody starts a cluster here.
OURS = (STORE, STORE_RECORD, CREDENTIALS, "kubeconfig", NODE, CDI, RUNS, LOGS, RECORD, LOCK)


class ResetError(Exception):
    """The cluster cannot be removed now, with the reason."""


def found(folder: Path) -> tuple[str, ...]:
    """Return the names of a cluster's files in a directory."""
    return tuple(name for name in OURS if os.path.lexists(folder / name))


async def reset_cluster(folder: Path) -> tuple[Path, ...]:
    """Stop containers and delete the cluster's files; return the removed items.

    Raises ResetError if the cluster is running or a file cannot be removed.
    """
    state = StateFolder(folder)
    names = found(folder)  # before the lock is made
    try:
        with state.locked():
            _check_store(folder / STORE)
            known = state.read()
            if (folder / NODE).is_dir():
                await _end_containers(folder / NODE, None if known is None else known.node)
            removed = [*_remove(folder / name for name in names), *_remove_link(folder / NODE)]
    except (FolderError, NodeError) as error:
        raise ResetError(str(error)) from None
    for name in (LOGS, LOCK):  # which locking makes
        _remove_one(folder / name)
    with suppress(OSError):  # of a folder that has more in it
        folder.rmdir()
        removed.append(folder)
    return tuple(removed)


def _check_store(store: Path) -> None:
    """Raise ResetError if a server that was started on its own uses the store."""
    if store.is_dir():
        try:
            with Folder(store):
                pass
        except StoreError as error:
            raise ResetError(str(error)) from None


async def _end_containers(node: Path, known: NodeState | None) -> None:
    """Stop the containers of a node whose agent has stopped."""
    try:
        with held(node):
            if known is not None and known.runtime == "podman":
                await _end_podman(known)
            elif (node / CONTAINERS).is_dir():
                await _end_processes(node / CONTAINERS)
    except RuntimeRefusedError as error:
        raise ResetError(f"containers cannot be ended: {error}") from None


async def _end_processes(containers: Path) -> None:
    from moorage.node.runtime.process import ProcessRuntime
    from moorage.node.runtime.shim.shim import LOCK as SHIM_LOCK

    await ProcessRuntime(containers).shut_down(END_GRACE_S)
    with (containers / SHIM_LOCK).open("rb") as lock:  # which the shim holds until it ends
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)


async def _end_podman(known: NodeState) -> None:
    from moorage.node.runtime.podman.runtime import PodmanRuntime

    runtime = await PodmanRuntime.open(f"{known.name} {known.folder}")
    for pod_uid in {each.id.pod_uid for each in await runtime.containers()}:
        await runtime.remove(pod_uid)
    await runtime.close()


def _remove(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        _remove_one(path)
        yield path


def _remove_one(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise ResetError(f"{error.filename or path}: {error.strerror}") from None


def _remove_link(node: Path) -> Iterator[Path]:
    link = link_of(node.absolute())
    if link.is_symlink() and Path(os.readlink(link)) == node.absolute():
        remove_short_path(node)
        yield link
