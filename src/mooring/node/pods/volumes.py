"""The volumes of a pod: folders of this machine, given to containers as mounts.

    <pods>/<uid>/volumes/<name>     what is made for an emptyDir or a downwardAPI volume

Which folders and files there are to be is planned first (pure); `make` and `remove` do it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field

from mooring.api.cdi import Mount
from mooring.api.core import Container, Pod
from mooring.node.pods.environment import (
    ConfigError,
    Surroundings,
    expand,
    field_value,
    resource_value,
)

FOLDER_MODE, SHARED_MODE, FILE_MODE = 0o755, 0o777, 0o644


class Volume(Struct, frozen=True):
    """A folder or file of this machine that containers can have."""

    path: Path
    is_made: bool = False  # by us, and removed by us
    is_shared: bool = False  # everyone may write to it
    host_type: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def volumes_of(pod: Pod, folder: Path, around: Surroundings) -> dict[str, Volume]:
    """Return the volumes of a pod by name, or raise ConfigError for one that cannot be."""
    return {
        str(each.get("name", "")): _volume(pod, each, folder, around) for each in pod.spec.volumes
    }


def _volume(pod: Pod, spec: Mapping[str, Any], folder: Path, around: Surroundings) -> Volume:
    name = str(spec.get("name", ""))
    path = folder / "volumes" / name
    if spec.get("emptyDir") is not None:
        return Volume(path, is_made=True, is_shared=True)
    if (host := spec.get("hostPath")) is not None:
        return Volume(Path(str(host.get("path", ""))), host_type=str(host.get("type") or ""))
    if (downward := spec.get("downwardAPI")) is not None:
        items = downward.get("items") or ()
        return Volume(path, is_made=True, files=_files(pod, name, items, around))
    kinds = ", ".join(sorted(key for key in spec if key != "name")) or "no kind"
    if kinds == "projected" and _is_only_token(spec["projected"]):
        return Volume(path, is_made=True)  # the mount is there, but nobody gives it a token here
    raise ConfigError(f'MountVolume.SetUp failed for volume "{name}": {kinds} is not supported')


def _is_only_token(projected: Mapping[str, Any]) -> bool:
    """Tell whether a volume is the one that every pod gets for its account."""
    kinds = {key for source in projected.get("sources") or () for key in source}
    return "serviceAccountToken" in kinds and kinds <= {
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    }


def _files(pod: Pod, volume: str, items: Any, around: Surroundings) -> dict[str, str]:
    found = {}
    for item in items:
        path = PurePosixPath(str(item.get("path", "")))
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ConfigError(f'volume "{volume}": {path} must be a path within the volume')
        found[str(path)] = _text(pod, volume, item, around)
    return found


def _text(pod: Pod, volume: str, item: Mapping[str, Any], around: Surroundings) -> str:
    if reference := item.get("fieldRef"):
        field_path = str(reference.get("fieldPath", ""))
        value = field_value(pod, field_path, around)
        if value is None:
            raise ConfigError(f'volume "{volume}": unsupported fieldPath: {field_path}')
        return value
    reference = item.get("resourceFieldRef") or {}
    return resource_value(pod, Container(), reference, around)


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
        options = ("rbind", "ro" if each.get("readOnly") else "rw")
        target = str(each.get("mountPath", ""))
        found.append(Mount(host_path=str(path), container_path=target, options=options))
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
            text = f'MountVolume.SetUp failed for volume "{name}": {error}'
            raise ConfigError(text) from error


def _make(volume: Volume) -> None:
    path = volume.path
    if volume.is_made:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        if volume.is_shared:
            path.chmod(SHARED_MODE)
        for name, text in volume.files.items():
            file = path / name
            file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(FILE_MODE)
    elif volume.host_type == "DirectoryOrCreate":
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    elif volume.host_type == "FileOrCreate":
        path.touch(mode=FILE_MODE, exist_ok=True)
    else:
        _check(path, volume.host_type)


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
    shutil.rmtree(folder, ignore_errors=True)
