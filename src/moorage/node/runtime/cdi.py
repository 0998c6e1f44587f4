"""CDI ids, looked up in folders of specs as container runtimes do.

    specs = CdiSpecs([Path("/etc/cdi"), Path("/var/run/cdi")])
    specs.edits(["vendor.example/gpu=gpu-0"])      the edits, or UnresolvableError

A device in a later folder takes precedence over one in an earlier folder. Two files of one folder
with the same device conflict, and nobody gets it. Files are read again only when they change; a
change in place, not by a new file, is noticed when a device of that file is requested, or one is
not found. An unreadable file hides nothing but itself; `faults` reports it, and so does the error
of an id that is not found.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from moorage.api.cdi import CdiDevice, CdiId, CdiSpec, ContainerEdits
from moorage.api.codec import decode_json, decode_tree
from moorage.api.errors import ApiError
from moorage.node.errors import UnresolvableError

SUFFIXES = (".json", ".yaml")
FILE_BYTES_MAX = 16 * 1024 * 1024
FILES_MAX = 8192  # in one folder
FAULTS_SHOWN_MAX = 3
_ALL = None  # of the devices


class _Stamp(NamedTuple):
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


_NO_STAMP = _Stamp(0, 0, 0, 0)


class _Read(NamedTuple):
    """A file as it was when it was read: a spec, or an error."""

    stamp: _Stamp
    spec: CdiSpec | None
    fault: str


class _Found(NamedTuple):
    path: Path
    spec: CdiSpec
    device: CdiDevice


class _Conflict(NamedTuple):
    """Files of one folder with the same device."""

    paths: tuple[Path, ...]


class CdiSpecs:
    """The specs of some folders; later folders take precedence."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(map(_Folder, folders))

    def faults(self) -> tuple[str, ...]:
        """Return the errors in the folders now, one line for each."""
        for folder in self._folders:
            folder.look(_ALL)
        return tuple(fault for folder in self._folders for fault in folder.faults())

    def edits(self, ids: Iterable[str]) -> ContainerEdits:
        """Return the edits of the devices in their order, or raise UnresolvableError.

        The edits of a whole spec come once, before those of the first of its devices.
        """
        wanted = tuple(dict.fromkeys(ids))
        if not wanted:
            return ContainerEdits()
        total, seen = ContainerEdits(), set()
        for found in self._all_found(wanted):
            if found.path not in seen:
                seen.add(found.path)
                total += found.spec.container_edits
            total += found.device.container_edits
        return total

    def _all_found(self, ids: Sequence[str]) -> list[_Found]:
        for folder in self._folders:
            folder.look(ids)
        looked_up = {id_: self._device(id_) for id_ in ids}
        found = [each for each in looked_up.values() if isinstance(each, _Found)]
        if len(found) < len(ids):
            for folder in self._folders:
                folder.look(_ALL)
            looked_up = {id_: self._device(id_) for id_ in ids}
            found = [each for each in looked_up.values() if isinstance(each, _Found)]
        if len(found) < len(ids):
            lost = {id_: each for id_, each in looked_up.items() if not isinstance(each, _Found)}
            raise UnresolvableError(self._refusal(lost))
        return found

    def _device(self, id_: str) -> _Found | _Conflict | None:
        found = (folder.device(id_) for folder in reversed(self._folders))
        return next((each for each in found if each is not None), None)

    def _refusal(self, lost: dict[str, _Conflict | None]) -> str:
        facts = []
        for id_, conflict in lost.items():
            if conflict is not None:
                facts.append(_conflict_text(id_, conflict))
            elif (fault := _fault_of_id(id_)) is not None:
                facts.append(fault)
        faults = [fault for folder in self._folders for fault in folder.faults()]
        facts += [each for each in faults if each not in facts][:FAULTS_SHOWN_MAX]
        return "; ".join([f"unresolvable CDI devices {', '.join(lost)}", *facts])


class _Folder:
    """The specs of one folder, as of the last look.

    There is a file for each prepared claim, and a look for each container that starts. So a look
    lists names and inodes, and reads new files; only files with a requested device are also checked
    for changes in place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, _Read] = {}
        self._holders: dict[str, list[str]] = {}  # by id, the files with the device
        self._fault = ""

    def look(self, ids: Sequence[str] | None) -> None:
        """Read what changed: new and replaced files, and those with these devices, or all."""
        listed = self._listed()
        for name in [name for name in self._files if name not in listed]:
            self._drop(name)
        wanted = {name for id_ in ids for name in self._holders.get(id_, ())} if ids else None
        for name, inode in listed.items():
            known = self._files.get(name)
            if known is None or known.stamp.inode != inode or wanted is None or name in wanted:
                self._look_at(name)

    def device(self, id_: str) -> _Found | _Conflict | None:
        """Return a device, or the conflict if several files have it."""
        names = sorted(self._holders.get(id_, ()))
        if len(names) > 1:
            return _Conflict(tuple(self._path / name for name in names))
        spec = self._files[names[0]].spec if names else None
        if spec is None:
            return None
        device = next(each for each in spec.devices if f"{spec.kind}={each.name}" == id_)
        return _Found(self._path / names[0], spec, device)

    def faults(self) -> list[str]:
        conflicts = [
            _conflict_text(id_, _Conflict(tuple(self._path / name for name in sorted(names))))
            for id_, names in self._holders.items()
            if len(names) > 1
        ]
        of_files = [read.fault for _, read in sorted(self._files.items()) if read.fault]
        return [*filter(None, [self._fault]), *of_files, *conflicts]

    def _look_at(self, name: str) -> None:
        """Read a file, unless it is unchanged."""
        path, known = self._path / name, self._files.get(name)
        try:
            stamp = _stamp(path)
        except FileNotFoundError:  # just removed
            self._drop(name)
            return
        except OSError as error:
            self._drop(name)
            self._files[name] = _Read(_NO_STAMP, None, f"{path}: {error.strerror}")
            return
        if known is None or known.stamp != stamp:
            self._drop(name)
            self._files[name] = read = _read(path, stamp)
            for id_ in _ids_of(read):
                self._holders.setdefault(id_, []).append(name)

    def _drop(self, name: str) -> None:
        read = self._files.pop(name, None)
        for id_ in _ids_of(read) if read is not None else ():
            left = [each for each in self._holders.pop(id_) if each != name]
            if left:
                self._holders[id_] = left

    def _listed(self) -> dict[str, int]:
        self._fault = ""
        try:
            with os.scandir(self._path) as entries:
                found = {each.name: each.inode() for each in entries if _is_spec(each.name)}
        except FileNotFoundError:
            return {}  # a machine without CDI devices
        except OSError as error:
            self._fault = f"{self._path}: {error.strerror}"
            return {}
        if len(found) > FILES_MAX:
            self._fault = f"{self._path}: {len(found)} specs, only the first {FILES_MAX} are read"
            found = dict(sorted(found.items())[:FILES_MAX])
        return found


def _is_spec(name: str) -> bool:
    return name.endswith(SUFFIXES)


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return _Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _ids_of(read: _Read) -> list[str]:
    spec = read.spec
    return [] if spec is None else [f"{spec.kind}={device.name}" for device in spec.devices]


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
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # reading a pipe could block
            raise ValueError("not a regular file")
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ValueError(f"longer than {FILE_BYTES_MAX} bytes")
    return data


def _decoded(data: bytes, path: Path) -> CdiSpec:
    if path.suffix == ".json":
        return decode_json(data, CdiSpec).value
    from moorage.api.documents import read  # most machines have no specs in YAML

    documents = list(read(data, source=str(path)))
    if len(documents) != 1:
        raise ValueError(f"{len(documents)} documents, not one")
    return decode_tree(documents[0].tree, CdiSpec).value


def _check(spec: CdiSpec) -> None:
    if spec.cdi_version.removeprefix("v").partition(".")[0] not in ("0", "1"):
        raise ValueError(f"cdiVersion: {spec.cdi_version[:64]!r} is not a known version")
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
