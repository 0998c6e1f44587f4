"""The volumes of a pod: folders of this machine, given to containers as mounts.

    <pods>/<uid>/volumes/<name>     what is made for a volume that is no folder of the machine

Which folders and files there are to be is planned first (pure); `make` and `remove` do it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from msgspec import Struct, field

from mooring.api.cdi import Mount
from mooring.api.core import Container, Pod
from mooring.node.pods.environment import (
    ConfigError,
    Surroundings,
    content_in,
    expand,
    field_value,
    resource_value,
)
from mooring.node.pods.sources import (
    CONFIG_MAP,
    SECRET,
    Content,
    Contents,
    Tokens,
    projections,
    wish_of,
)

LOG = logging.getLogger(__name__)

POD_MODE, FOLDER_MODE, SHARED_MODE, FILE_MODE = 0o750, 0o755, 0o777, 0o644
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class File(NamedTuple):
    """A file that we write."""

    data: bytes
    mode: int = FILE_MODE


class Volume(Struct, frozen=True):
    """A folder or file of this machine that containers can have."""

    path: Path
    is_made: bool = False  # by us, and removed by us
    is_shared: bool = False  # everyone may write to it
    host_type: str = ""
    files: Mapping[str, File] = field(default_factory=dict)

    @property
    def is_written(self) -> bool:
        """Whether all that is in it comes from us: no container may change it."""
        return self.is_made and not self.is_shared


class Materials(Struct, frozen=True):
    """What volumes are made from."""

    folder: Path  # of the pod
    around: Surroundings = Surroundings()
    contents: Contents = {}
    tokens: Tokens = {}


def volumes_of(pod: Pod, materials: Materials) -> dict[str, Volume]:
    """Return the volumes of a pod by name, or raise ConfigError for one that cannot be."""
    found = {}
    for each in pod.spec.volumes:
        name = str(each.get("name", ""))
        try:
            found[name] = _volume(pod, each, materials)
        except ConfigError as error:
            text = f'MountVolume.SetUp failed for volume "{name}" : {error}'
            raise ConfigError(text) from None
    return found


def _volume(pod: Pod, spec: Mapping[str, Any], materials: Materials) -> Volume:
    path = materials.folder / "volumes" / str(spec.get("name", ""))
    if spec.get("emptyDir") is not None:
        return Volume(path, is_made=True, is_shared=True)
    if (host := spec.get("hostPath")) is not None:
        return Volume(Path(str(host.get("path", ""))), host_type=str(host.get("type") or ""))
    own = {key: value for key, value in spec.items() if key != "name" and value is not None}
    projected = own.get("projected")
    parts = [own] if projected is None else projections(own)
    mode = (projected or next(iter(own.values()), None) or {}).get("defaultMode")
    files: dict[str, File] = {}
    for part in parts:
        files |= _files(pod, part, FILE_MODE if mode is None else int(mode), materials)
    return Volume(path, is_made=True, files=files)


def _files(pod: Pod, part: Mapping[str, Any], mode: int, materials: Materials) -> dict[str, File]:
    """Return the files that one source brings."""
    contents = materials.contents
    match next(iter(part), ""):
        case "downwardAPI":
            items = part["downwardAPI"].get("items") or ()
            return dict(_downward(pod, item, mode, materials) for item in items)
        case "configMap":
            return _selected(content_in(contents, CONFIG_MAP, part["configMap"]), part, mode)
        case "secret":
            return _selected(content_in(contents, SECRET, part["secret"]), part, mode)
        case "serviceAccountToken":
            token = part["serviceAccountToken"]
            data = materials.tokens.get(wish_of(token), "").encode()
            return {_path(token): File(data, mode)}
    raise ConfigError(f"{', '.join(sorted(part)) or 'no kind'} is not supported by this node")


def _selected(content: Content, part: Mapping[str, Any], mode: int) -> dict[str, File]:
    """Return all keys as files, or those that are named."""
    (source,) = part.values()
    items = source.get("items")
    if items is None:
        return {key: File(data, mode) for key, data in content.items()}
    found = {}
    for item in items:
        key = str(item.get("key", ""))
        if key in content:
            found[_path(item)] = File(content[key], int(item.get("mode") or mode))
        elif not source.get("optional"):
            raise ConfigError(f"references non-existent config key: {key}")
    return found


def _downward(
    pod: Pod, item: Mapping[str, Any], mode: int, materials: Materials
) -> tuple[str, File]:
    around = materials.around
    mode = int(item.get("mode") or mode)
    if reference := item.get("fieldRef"):
        field_path = str(reference.get("fieldPath", ""))
        value = field_value(pod, field_path, around)
        if value is None:
            raise ConfigError(f"unsupported fieldPath: {field_path}")
        return _path(item), File(value.encode(), mode)
    reference = item.get("resourceFieldRef") or {}
    return _path(item), File(resource_value(pod, Container(), reference, around).encode(), mode)


def _path(item: Mapping[str, Any]) -> str:
    """Return where a file is within its volume."""
    path = PurePosixPath(str(item.get("path", "")))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ConfigError(f"{path} must be a path within the volume")
    return str(path)


def mounts_of(
    container: Container, volumes: Mapping[str, Volume], values: Mapping[str, str]
) -> tuple[Mount, ...]:
    """Return the mounts of a container, or raise ConfigError."""
    found = []
    for each in container.volume_mounts:
        name = str(each.get("name", ""))
        volume = volumes.get(name)
        if volume is None:
            raise ConfigError(f'volumeMounts: the pod has no volume "{name}"')
        path = volume.path / _within(each, values)
        options = ("rbind", "ro" if each.get("readOnly") or volume.is_written else "rw")
        # As in Kubernetes, a relative path is one below the root.
        target = "/" + str(each.get("mountPath", "")).removeprefix("/")
        try:
            found.append(Mount(host_path=str(path), container_path=target, options=options))
        except ValueError as error:
            raise ConfigError(f"volumeMounts: {error}") from None
    return tuple(found)


def _within(mount: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """Return which part of a volume a container gets."""
    part = str(mount.get("subPath") or expand(str(mount.get("subPathExpr") or ""), values))
    path = PurePosixPath(part)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"volumeMounts: subPath {part} must be within the volume")
    return part


# --- doing it -----------------------------------------------------------------------------------


def make(volumes: Mapping[str, Volume]) -> None:
    """Make what is not there, or raise ConfigError; what is there stays as it is."""
    for name, volume in volumes.items():
        try:
            _make(volume)
        except OSError as error:
            text = f'MountVolume.SetUp failed for volume "{name}" : {error}'
            raise ConfigError(text) from error


def _make(volume: Volume) -> None:
    path = volume.path
    if volume.is_made:
        path.parent.parent.mkdir(mode=POD_MODE, parents=True, exist_ok=True)
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        if volume.is_shared:
            path.chmod(SHARED_MODE)
        for name, file in volume.files.items():
            _write(path / name, file)
    elif volume.host_type == "DirectoryOrCreate":
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    elif volume.host_type == "FileOrCreate":
        path.touch(mode=FILE_MODE, exist_ok=True)
    else:
        _check(path, volume.host_type)


def _write(path: Path, file: File) -> None:
    """Write a file, so that who reads it sees the old one or the new one."""
    path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    mode = file.mode & 0o777
    with os.fdopen(os.open(new, _NEW, mode), "wb") as written:
        os.fchmod(written.fileno(), mode)  # also what our umask takes away
        written.write(file.data)
    new.replace(path)


def _check(path: Path, type_: str) -> None:
    is_right = {
        "": lambda: True,
        "Directory": path.is_dir,
        "File": path.is_file,
        "Socket": path.is_socket,
        "CharDevice": path.is_char_device,
        "BlockDevice": path.is_block_device,
    }.get(type_, lambda: False)
    if not is_right():
        raise OSError(f"hostPath type check failed: {path} is not a {type_.lower()}")


def make_parts(mounts: Iterable[Mount], volumes: Mapping[str, Volume]) -> None:
    """Make the folders within our volumes that mounts name; raise ConfigError if they lead out."""
    made = [volume.path for volume in volumes.values() if volume.is_made]
    for mount in mounts:
        path = Path(mount.host_path)
        root = next((each for each in made if path != each and path.is_relative_to(each)), None)
        if root is None:
            continue
        if not path.resolve().is_relative_to(root.resolve()):  # a link that a container put there
            raise ConfigError(f"volumeMounts: subPath {path.relative_to(root)} leads out of it")
        if not path.exists():
            path.mkdir(mode=FOLDER_MODE, parents=True)


def remove(folder: Path) -> None:
    """Remove what was made for a pod; nothing of what it only pointed to."""
    shutil.rmtree(folder, ignore_errors=True)  # as much as can be
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        LOG.warning("%s cannot be removed: %s", error.filename or folder, error.strerror or error)
