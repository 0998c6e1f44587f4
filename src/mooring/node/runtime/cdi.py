"""What CDI ids mean: looked up in folders of specs, as runtimes of containers do.

    specs = CdiSpecs([Path("/etc/cdi"), Path("/var/run/cdi")])
    specs.edits(["vendor.example/gpu=gpu-0"])      the edits, or UnresolvableError

A device in a later folder is taken before one in an earlier folder. Two files of one folder that
have the same device conflict, and nobody gets it. Files are read again only when they change. A
file that cannot be read hides nothing but itself; `faults` tells of it, and so does the error of
an id that is not found.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mooring.api.cdi import CdiDevice, CdiId, CdiSpec, ContainerEdits
from mooring.api.codec import decode_json, decode_tree
from mooring.api.errors import ApiError

SUFFIXES = (".json", ".yaml")
FILE_BYTES_MAX = 16 * 1024 * 1024
FILES_MAX = 8192  # in one folder
FAULTS_SHOWN_MAX = 3


class UnresolvableError(Exception):
    """Ids that no spec has, or that too many have; the text names them and what is wrong."""


class _Stamp(NamedTuple):
    """What changes with a file."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class _Read(NamedTuple):
    """What a file was when it was read: a spec, or a fault."""

    stamp: _Stamp
    spec: CdiSpec | None
    fault: str


class _Found(NamedTuple):
    """A device, and where it is from."""

    path: Path
    spec: CdiSpec
    device: CdiDevice


class _Conflict(NamedTuple):
    """Files of one folder that have the same device."""

    paths: tuple[Path, ...]


class CdiSpecs:
    """The specs of some folders; the last of the folders comes first."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._files: dict[Path, _Read] = {}
        self._devices: dict[str, _Found | _Conflict] = {}
        self._faults: tuple[str, ...] = ()

    def faults(self) -> tuple[str, ...]:
        """Return what is wrong in the folders now, a line for each fact."""
        self._refresh()
        return self._faults

    def edits(self, ids: Iterable[str]) -> ContainerEdits:
        """Return what the devices bring, in their order, or raise UnresolvableError.

        The edits of a whole spec come before those of the first of its devices, and once.
        """
        wanted = tuple(dict.fromkeys(ids))
        if not wanted:
            return ContainerEdits()
        self._refresh()
        total, seen = ContainerEdits(), set()
        for found in self._all_found(wanted):
            if found.path not in seen:
                seen.add(found.path)
                total += found.spec.container_edits
            total += found.device.container_edits
        return total

    def _all_found(self, ids: Sequence[str]) -> list[_Found]:
        looked_up = {id_: self._devices.get(id_) for id_ in ids}
        found = [each for each in looked_up.values() if isinstance(each, _Found)]
        if len(found) < len(ids):
            lost = {id_: each for id_, each in looked_up.items() if not isinstance(each, _Found)}
            raise UnresolvableError(self._refusal(lost))
        return found

    def _refusal(self, lost: dict[str, _Conflict | None]) -> str:
        facts = []
        for id_, conflict in lost.items():
            if conflict is not None:
                facts.append(_conflict_text(id_, conflict))
            elif (fault := _fault_of_id(id_)) is not None:
                facts.append(fault)
        facts += [each for each in self._faults if each not in facts][:FAULTS_SHOWN_MAX]
        return "; ".join([f"unresolvable CDI devices {', '.join(lost)}", *facts])

    def _refresh(self) -> None:
        """Read what changed since the last time, and put all files together again if any did."""
        files: dict[Path, _Read] = {}
        folder_faults: list[str] = []
        for folder in self._folders:
            for path, stamp in _listed(folder, folder_faults):
                known = self._files.get(path)
                files[path] = known if known and known.stamp == stamp else _read(path, stamp)
        if files != self._files or folder_faults or not self._files:
            self._files = files
            self._devices, conflicts = self._combined()
            faults = (each.fault for each in files.values() if each.fault)
            self._faults = (*folder_faults, *faults, *conflicts)

    def _combined(self) -> tuple[dict[str, _Found | _Conflict], list[str]]:
        devices: dict[str, _Found | _Conflict] = {}
        conflicts = []
        for folder in self._folders:
            of_folder: dict[str, list[_Found]] = {}
            for path, read in self._files.items():
                if read.spec is not None and path.parent == folder:
                    for device in read.spec.devices:
                        id_ = str(CdiId(read.spec.kind, device.name))
                        of_folder.setdefault(id_, []).append(_Found(path, read.spec, device))
            for id_, found in of_folder.items():
                conflict = _Conflict(tuple(each.path for each in found))
                devices[id_] = found[0] if len(found) == 1 else conflict
                if len(found) > 1:
                    conflicts.append(_conflict_text(id_, conflict))
        return devices, conflicts


def _listed(folder: Path, faults: list[str]) -> Iterator[tuple[Path, _Stamp]]:
    """Yield the specs of a folder in the order of their names."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.name.endswith(SUFFIXES))
    except FileNotFoundError:
        return  # a machine without such devices
    except OSError as error:
        faults.append(f"{folder}: {error.strerror}")
        return
    if len(names) > FILES_MAX:
        faults.append(f"{folder}: {len(names)} specs, only the first {FILES_MAX} are read")
    for name in names[:FILES_MAX]:
        path = folder / name
        try:
            status = path.stat()
        except OSError as error:
            if error.errno != 2:  # it has just gone
                faults.append(f"{path}: {error.strerror}")
            continue
        times = status.st_mtime_ns, status.st_ctime_ns
        yield path, _Stamp(status.st_ino, status.st_size, *times)


def _read(path: Path, stamp: _Stamp) -> _Read:
    try:
        spec = _decoded(_content(path), path)
        _check(spec)
    except OSError as error:
        return _Read(stamp, None, f"{path}: {error.strerror}")
    except (ApiError, ValueError) as error:
        text = str(error)[:512]
        return _Read(stamp, None, text if text.startswith(str(path)) else f"{path}: {text}")
    return _Read(stamp, spec, "")


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a pipe would keep us waiting
            raise ValueError("not a regular file")
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ValueError(f"longer than {FILE_BYTES_MAX} bytes")
    return data


def _decoded(data: bytes, path: Path) -> CdiSpec:
    if path.suffix == ".json":
        return decode_json(data, CdiSpec).value
    from mooring.api.documents import read  # most machines have no specs in YAML

    documents = list(read(data, source=str(path)))
    if len(documents) != 1:
        raise ValueError(f"{len(documents)} documents, not one")
    return decode_tree(documents[0].tree, CdiSpec).value


def _check(spec: CdiSpec) -> None:
    """Raise ValueError unless the spec is one that we understand."""
    if spec.cdi_version.removeprefix("v").partition(".")[0] not in ("0", "1"):
        raise ValueError(f"cdiVersion: {spec.cdi_version[:64]!r} is not a version that is known")
    names = set()
    _check_edits("containerEdits", spec.container_edits)
    for index, device in enumerate(spec.devices):
        CdiId.parse(f"{spec.kind}={device.name}")
        if device.name in names:
            raise ValueError(f"devices[{index}].name: a second {device.name!r}")
        names.add(device.name)
        _check_edits(f"devices[{index}].containerEdits", device.container_edits)


def _check_edits(place: str, edits: ContainerEdits) -> None:
    for index, variable in enumerate(edits.env):
        if variable.find("=") < 1 or "\0" in variable:
            raise ValueError(f"{place}.env[{index}]: {variable[:64]!r} is not NAME=VALUE")
    for index, node in enumerate(edits.device_nodes):
        _check_path(f"{place}.deviceNodes[{index}].path", node.path)
    for index, mount in enumerate(edits.mounts):
        _check_path(f"{place}.mounts[{index}].containerPath", mount.container_path)
        if mount.type in ("", "bind"):
            _check_path(f"{place}.mounts[{index}].hostPath", mount.host_path)


def _check_path(place: str, path: str) -> None:
    if not path.startswith("/") or "\0" in path or len(path) > 4095:
        raise ValueError(f"{place}: {path[:128]!r} is not an absolute path")


def _conflict_text(id_: str, conflict: _Conflict) -> str:
    return f"conflicting device {id_} in {', '.join(map(str, conflict.paths))}"


def _fault_of_id(id_: str) -> str | None:
    try:
        CdiId.parse(id_)
    except ValueError as error:
        return str(error)
    return None
