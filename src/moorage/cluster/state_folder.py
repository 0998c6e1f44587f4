"""The state files of `moor up` in its data directory.

up.lock       locked by the process that runs the cluster; contains its process id
up.json       the running processes, the server's address, the start time
log/NAME.log  the output of each process; NAME.log.1 is the previous file

A disk that takes no more ends nothing: lines of logs are lost and counted, and the log says so once
it can be written again. The state is written again by whoever runs the cluster.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.kit.atomic_file import PRIVATE_FILE, replace_file

LOCK, RECORD, LOGS = "up.lock", "up.json", "log"
CREDENTIALS = "pki"
NODE, CDI = "node", "cdi"  # the node's state, and its drivers' device metadata
LOG_BYTES_MAX = 8 * 1024 * 1024
RECORD_BYTES_MAX = 1024 * 1024


class FolderError(Exception):
    """The directory cannot be used, with the reason."""


class ProcessState(Struct, frozen=True):
    """One process of a cluster, or a part of one."""

    name: str
    pid: int = 0  # 0: it does not run
    restarts: int = 0
    is_working: bool = False
    metrics: str = ""  # the URL of its metrics
    trouble: str = ""  # why it does not run


class NodeState(Struct, frozen=True):
    """This machine as a node of a cluster."""

    name: str
    runtime: str
    folder: str
    drivers: tuple[str, ...] = ()

    def driver_options(self, data_dir: Path) -> str:
        """Return the options of a driver that somebody starts for this node."""
        data_dir = data_dir.absolute()
        return (
            f"--node-name {self.name} --kubelet-dir {self.folder} "
            f"--cdi-dir {data_dir / CDI} --kubeconfig {data_dir / 'kubeconfig'}"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.runtime} runtime; drivers: {', '.join(self.drivers) or 'none'}"


class ClusterState(Struct, frozen=True):
    """The processes running in a directory."""

    pid: int
    began: str
    server: str = ""  # its URL
    profiles: tuple[str, ...] = ()
    node: NodeState | None = None
    is_isolated: bool = True  # server, scheduler and controllers run in separate processes
    processes: tuple[ProcessState, ...] = ()

    @property
    def mode(self) -> str:
        """How the control plane runs, for users."""
        if self.is_isolated:
            return "server, scheduler and controllers are separate processes"
        return "server, scheduler and controllers are one process"

    @property
    def is_working(self) -> bool:
        """Whether all processes are working."""
        return bool(self.processes) and all(each.is_working for each in self.processes)


class StateFolder:
    """The state files of a cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory during a block, or raise FolderError.

        The kernel releases the lock if this process is killed.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.path / LOGS).mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.path, error) from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"{self.path}: a cluster runs here already, as process "
                    f"{_holder(lock) or '?'}; `moor down` stops it"
                ) from None
            try:
                # The old number is overwritten, which needs no space.
                os.ftruncate(lock, os.pwrite(lock, f"{os.getpid()}\n".encode(), 0))
            except OSError as error:
                raise _unusable(self.path, error) from None
            yield
        finally:
            os.close(lock)

    def runner(self) -> int:
        """Return the id of the process that runs the cluster, or 0."""
        try:
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(lock)
        finally:
            os.close(lock)
        return 0

    def write(self, state: ClusterState) -> None:
        """Write the state, or raise OSError and leave the file as it was."""
        text = msgspec.json.format(msgspec.json.encode(state), indent=1)
        replace_file(self.path / RECORD, text, is_durable=False)

    def read(self) -> ClusterState | None:
        """Return the last written state, if it can be read."""
        try:
            with (self.path / RECORD).open("rb") as file:
                return msgspec.json.decode(file.read(RECORD_BYTES_MAX), type=ClusterState)
        except (OSError, msgspec.DecodeError):
            return None

    def log(self, name: str) -> Path:
        """Return the path of a process's log."""
        return self.path / LOGS / f"{name}.log"


class LogFile:
    """A log file that is rotated once it is large.

    Adding a line never fails. A line that the disk does not take is lost and counted, and the next
    one that it takes comes after a line that says so.
    """

    def __init__(self, path: Path, *, bytes_max: int = LOG_BYTES_MAX) -> None:
        self._path, self._bytes_max = path, bytes_max
        self._descriptor = -1
        self.lost = 0  # lines, since the last one that was written
        self.trouble = ""  # why they are lost; empty: none is

    def add(self, line: bytes) -> None:
        """Add a line."""
        note = f"{self.lost} line(s) were lost: {self.trouble}\n" if self.lost else ""
        try:
            self._write(note.encode() + line)
        except OSError as error:
            self.lost += 1
            self.trouble = error.strerror or str(error)
            self.close()  # whatever it is that does not take lines, the next one looks anew
        else:
            self.lost, self.trouble = 0, ""

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, data: bytes) -> None:
        size = self._open()
        if os.write(self._descriptor, data) < len(data):  # the disk became full in the middle
            os.ftruncate(self._descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size + len(data) > self._bytes_max:
            with suppress(OSError):  # else the file grows on, and the next line tries again
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                self.close()

    def _open(self) -> int:
        """Open the file, also if somebody removed it; return its size."""
        if self._descriptor >= 0:
            found = os.fstat(self._descriptor)
            if found.st_nlink:
                return found.st_size
            self.close()
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, PRIVATE_FILE)
        os.fchmod(self._descriptor, PRIVATE_FILE)  # It may have been there.
        return os.fstat(self._descriptor).st_size


def _unusable(path: Path, error: OSError) -> FolderError:
    return FolderError(f"{path}: {error.strerror or error}")


def _holder(lock: int) -> int:
    text = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
    return int(text) if text.isascii() and text.isdigit() else 0


# --- short paths ------------------------------------------------------------------------------
#
# The path of a unix socket has at most 107 bytes. A driver's socket is ROOT/plugins/NAME/dra.sock,
# where NAME has up to 63 characters, so the root directory of a node is reached by a symlink in
# the system's runtime directory. The symlink is recreated on each start, because such directories
# are emptied at boot.

LENGTH_MAX = 26  # bytes of the root directory that leave enough for the longest NAME


class ShortPathError(Exception):
    """No short path can be created, with the reason."""


def short_path(folder: Path) -> Path:
    """Return a path of the folder that is short enough, through a symlink if necessary."""
    folder = folder.absolute()
    if len(os.fsencode(folder)) <= LENGTH_MAX:
        return folder
    try:
        link = link_of(folder)
        link.parent.mkdir(mode=0o700, exist_ok=True)
        _check_private(link.parent)
        if not link.is_symlink() or Path(os.readlink(link)) != folder:
            remove_short_path(folder)
            link.symlink_to(folder)
    except OSError as error:
        raise ShortPathError(f"{error.filename}: {error.strerror}") from None
    return link


def remove_short_path(folder: Path) -> None:
    """Remove the symlink, if there is one."""
    with suppress(FileNotFoundError):
        link_of(folder.absolute()).unlink()


def link_of(folder: Path) -> Path:
    """Return the path of a folder's symlink."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    own = Path(f"/run/user/{os.getuid()}") if os.getuid() else Path("/run")
    if os.access(own, os.W_OK):
        return own / f"moor-{name}"
    return Path(tempfile.gettempdir()) / f"moor-{os.getuid()}" / name


def _check_private(folder: Path) -> None:
    """Raise ShortPathError if others could replace the symlink."""
    found = folder.stat(follow_symlinks=False)
    is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if found.st_uid not in (os.getuid(), 0) or is_open or not stat.S_ISDIR(found.st_mode):
        raise ShortPathError(f"{folder}: others can write there")
