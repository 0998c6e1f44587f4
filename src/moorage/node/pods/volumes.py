"""The volumes of a pod: folders of this machine, mounted into containers.

    <pods>/<uid>/volumes/<name>     the folder of a volume that is no hostPath

Folders and files are planned first; `make` and `remove` act. Names and paths of volumes, files and
subPaths come from users, and containers can put links into their volumes. So everything below a
pod's folder is reached through `moorage.kit.paths_beneath`.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.api.cdi import Mount
from moorage.api.core import Container, Pod
from moorage.api.names import dns1123_label
from moorage.kit.paths_beneath import (
    UnsafePathError,
    folder_beneath,
    open_beneath,
    parts_of,
    remove_beneath,
    write_beneath,
)
from moorage.node.errors import ConfigError
from moorage.node.host_folders import node_path
from moorage.node.pods.container_environment import (
    CONFIG_MAP,
    SECRET,
    Content,
    Contents,
    NodeContext,
    Tokens,
    content_in,
    expand,
    field_value,
    projections,
    resource_value,
    token_spec,
)
from moorage.node.pods.machine_fields import ETC_FILES, etc_files, mount_options, wanted_files
from moorage.node.pods.volume_claims import ClaimedVolumes
from moorage.node.runtime.contract import SubPathMount
from moorage.node.runtime.security_context import fs_group

LOG = logging.getLogger(__name__)

POD_MODE, FOLDER_MODE, SHARED_MODE, FILE_MODE = 0o750, 0o755, 0o777, 0o644
# Of folders; new entries get the group, too.
GROUP_WRITES, GROUP_READS = stat.S_ISGID | 0o770, stat.S_ISGID | 0o550
VOLUMES = "volumes"
ETC = "..etc"  # the files of /etc that a pod has of its own; no volume has this name
SHOWN_MAX = 128


class VolumeFile(NamedTuple):
    """A file that the node writes into a volume."""

    data: bytes
    mode: int = FILE_MODE


class Volume(Struct, frozen=True):
    """A folder or file of this machine that containers can mount."""

    path: Path
    is_made: bool = False  # and removed by the node
    is_shared: bool = False  # everyone may write to it
    host_type: str = ""
    is_read_only: bool = False
    group: int | None = None  # the fsGroup of the pod, of a volume that the node makes
    files: Mapping[str, VolumeFile] = field(default_factory=dict)

    @property
    def is_written(self) -> bool:
        """Whether the node writes its whole content: no container may change it."""
        return self.is_made and not self.is_shared


class Materials(Struct, frozen=True):
    """What volumes are made from."""

    folder: Path  # of the pod
    node_context: NodeContext = NodeContext()
    contents: Contents = {}
    tokens: Tokens = {}
    claimed: ClaimedVolumes = {}


def volumes_of(pod: Pod, materials: Materials) -> dict[str, Volume]:
    """Return the volumes of a pod by name, or raise ConfigError for an impossible one."""
    found: dict[str, Volume] = {}
    for each in pod.spec.volumes:
        name = str(each.get("name", ""))
        try:
            _check_name(name, found)
            volume = _volume(pod, each, materials)
            found[name] = replace(volume, group=fs_group(pod)) if volume.is_made else volume
        except (ConfigError, UnsafePathError) as error:
            raise ConfigError(_failed(name, error)) from None
    if own := etc_files(pod):
        files = {name: VolumeFile(data) for name, data in own.items()}
        found[ETC] = Volume(materials.folder / VOLUMES / ETC, is_made=True, files=files)
    return found


def has_volumes(pod: Pod) -> bool:
    """Return whether there is anything to make for a pod."""
    return bool(pod.spec.volumes or wanted_files(pod))


def _check_name(name: str, others: Mapping[str, Volume]) -> None:
    """Raise ConfigError for a name that the API server should have rejected: it becomes a path."""
    for fault in dns1123_label(name):
        raise ConfigError(f"the name is invalid: {fault}")
    if name in others:
        raise ConfigError("the pod has two volumes of this name")


def _failed(name: str, error: object) -> str:
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return f'MountVolume.SetUp failed for volume "{shown[:SHOWN_MAX]}" : {error}'


def _volume(pod: Pod, spec: Mapping[str, Any], materials: Materials) -> Volume:
    path = materials.folder / VOLUMES / str(spec.get("name", ""))
    if spec.get("emptyDir") is not None:
        return Volume(path, is_made=True, is_shared=True)
    if (host := spec.get("hostPath")) is not None:
        path = _host_path(host, materials.node_context)
        return Volume(path, host_type=str(host.get("type") or ""))
    if (claimed := materials.claimed.get(path.name)) is not None:
        source = {"path": claimed.path}
        is_read_only = bool((spec.get("persistentVolumeClaim") or {}).get("readOnly"))
        path = _host_path(source, materials.node_context)
        return Volume(path, host_type=claimed.type, is_read_only=is_read_only)
    own = {key: value for key, value in spec.items() if key != "name" and value is not None}
    projected = own.get("projected")
    parts = [own] if projected is None else projections(own)
    mode = (projected or next(iter(own.values()), None) or {}).get("defaultMode")
    files: dict[str, VolumeFile] = {}
    for part in parts:
        files |= _files(pod, part, FILE_MODE if mode is None else int(mode), materials)
    return Volume(path, is_made=True, files=files)


def _host_path(host: Mapping[str, Any], node_context: NodeContext) -> Path:
    """Return a path of the machine."""
    path = str(host.get("path", ""))
    if "\0" in path:
        raise ConfigError(f"hostPath: {path[:SHOWN_MAX]!r} cannot be a path: it contains NUL")
    return node_path(path, node_context.host_folders)


def _files(
    pod: Pod, part: Mapping[str, Any], mode: int, materials: Materials
) -> dict[str, VolumeFile]:
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
            data = materials.tokens.get(token_spec(token), "").encode()
            return {_path(token): VolumeFile(data, mode)}
    raise ConfigError(f"{', '.join(sorted(part)) or 'no kind'} is not supported by this node")


def _selected(content: Content, part: Mapping[str, Any], mode: int) -> dict[str, VolumeFile]:
    (source,) = part.values()
    items = source.get("items")
    if items is None:
        return {_path({"path": key}): VolumeFile(data, mode) for key, data in content.items()}
    found = {}
    for item in items:
        key = str(item.get("key", ""))
        if key in content:
            found[_path(item)] = VolumeFile(content[key], int(item.get("mode") or mode))
        elif not source.get("optional"):
            raise ConfigError(f"references non-existent config key: {key}")
    return found


def _downward(
    pod: Pod, item: Mapping[str, Any], mode: int, materials: Materials
) -> tuple[str, VolumeFile]:
    node_context = materials.node_context
    mode = int(item.get("mode") or mode)
    if reference := item.get("fieldRef"):
        field_path = str(reference.get("fieldPath", ""))
        value = field_value(pod, field_path, node_context)
        if value is None:
            raise ConfigError(f"unsupported fieldPath: {field_path}")
        return _path(item), VolumeFile(value.encode(), mode)
    reference = item.get("resourceFieldRef") or {}
    return _path(item), VolumeFile(
        resource_value(pod, Container(), reference, node_context).encode(), mode
    )


def _path(item: Mapping[str, Any]) -> str:
    path = str(item.get("path", ""))
    try:
        parts = parts_of(path)
    except UnsafePathError as error:
        raise ConfigError(f"a file of it must be a path within the volume: {error}") from None
    if not parts:
        raise ConfigError(f"a file of it must be a path within the volume: {path!r} is none")
    return "/".join(parts)


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
        is_read_only = bool(each.get("readOnly") or volume.is_written or volume.is_read_only)
        options = ("rbind", "ro" if is_read_only else "rw", *mount_options(each, name))
        found.append(_mount(each, str(volume.path), _within(each, values), options))
    return (*found, *_etc_mounts(volumes, {mount.container_path for mount in found}))


def _etc_mounts(volumes: Mapping[str, Volume], taken: Collection[str]) -> Iterator[Mount]:
    """Yield the mounts of files of /etc, but for those that the container has itself."""
    if (volume := volumes.get(ETC)) is not None:
        for name in volume.files:
            if ETC_FILES[name] not in taken:
                path = str(volume.path / name)
                yield Mount(host_path=path, container_path=ETC_FILES[name], options=("rbind", "ro"))


def _mount(
    mount: Mapping[str, Any], root: str, within: str, options: tuple[str, ...]
) -> Mount | SubPathMount:
    # As in Kubernetes, a relative path is one below the root.
    target = "/" + str(mount.get("mountPath", "")).removeprefix("/")
    try:
        if not within:
            return Mount(host_path=root, container_path=target, options=options)
        path = f"{root.rstrip('/')}/{within}"
        return SubPathMount(host_path=path, container_path=target, options=options, root=root)
    except ValueError as error:
        raise ConfigError(f"volumeMounts: {error}") from None


def _within(mount: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """Return the subPath of a mount; empty for the whole volume."""
    part = str(mount.get("subPath") or expand(str(mount.get("subPathExpr") or ""), values))
    try:
        return "/".join(parts_of(part))
    except UnsafePathError as error:
        raise ConfigError(f"volumeMounts: subPath must be within the volume: {error}") from None


# --- on disk --------------------------------------------------------------------------------------


def make(volumes: Mapping[str, Volume]) -> None:
    """Make missing volumes, or raise ConfigError; existing ones stay."""
    for name, volume in volumes.items():
        try:
            _make(volume)
        except (OSError, UnsafePathError) as error:
            raise ConfigError(_failed(name, error)) from error


def _make(volume: Volume) -> None:
    path = volume.path
    if volume.is_made:
        _make_own(volume)
    elif volume.host_type == "DirectoryOrCreate" or _is_to_be_made(volume):
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    elif volume.host_type == "FileOrCreate":
        path.touch(mode=FILE_MODE, exist_ok=True)
    else:
        _check(path, volume.host_type)


def _is_to_be_made(volume: Volume) -> bool:
    """Return whether to make a folder of the machine: container runtimes do if no type is given."""
    return not volume.host_type and not os.path.lexists(volume.path)


def _make_own(volume: Volume) -> None:
    pod = volume.path.parents[1]
    pod.parent.mkdir(mode=POD_MODE, parents=True, exist_ok=True)
    within = f"{VOLUMES}/{volume.path.name}"
    with (
        folder_beneath(pod.parent, pod.name, folder_mode=POD_MODE) as own,
        folder_beneath(own, within, folder_mode=FOLDER_MODE) as folder,
    ):
        if volume.is_shared:
            os.fchmod(folder, SHARED_MODE)
        for name, file in volume.files.items():
            write_beneath(folder, name, file.data, mode=file.mode & 0o777, folder_mode=FOLDER_MODE)
        if volume.group is not None:
            _give_to_group(folder, volume)


def _give_to_group(folder: int, volume: Volume) -> None:
    """Give a volume to the pod's fsGroup: it may read all, and write what others may write.

    An agent that is not in the group cannot; then the runtime refuses the containers.
    """
    may_write = volume.is_shared
    with suppress(PermissionError):
        _give(folder, volume.group, GROUP_WRITES if may_write else GROUP_READS)
        folders = {parent for name in volume.files for parent in Path(name).parents[:-1]}
        for each in folders:
            with folder_beneath(folder, str(each)) as inner:
                _give(inner, volume.group, GROUP_WRITES if may_write else GROUP_READS)
        for name in volume.files:
            file = open_beneath(folder, name, os.O_RDONLY)
            try:
                _give(file, volume.group, 0o440)
            finally:
                os.close(file)


def _give(descriptor: int, group: int | None, more: int) -> None:
    os.fchown(descriptor, -1, -1 if group is None else group)
    os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | more)


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


def make_subpaths(mounts: Iterable[Mount]) -> None:
    """Make the folders that subPaths name, as kubelets do; raise ConfigError for links."""
    for mount in mounts:
        if not isinstance(mount, SubPathMount):
            continue
        try:
            _make_subpath(mount)
        except (OSError, UnsafePathError) as error:
            text = f"failed to prepare subPath for volumeMount at {mount.container_path}: {error}"
            raise ConfigError(text) from None


def _make_subpath(part: SubPathMount) -> None:
    try:
        os.close(open_beneath(part.root, part.within))
    except FileNotFoundError:
        mode = stat.S_IMODE(os.stat(part.root).st_mode)
        flags = os.O_PATH | os.O_DIRECTORY
        os.close(open_beneath(part.root, part.within, flags, folder_mode=mode))


def remove(folder: Path) -> None:
    """Remove the folder of a pod, but nothing that links in it point to."""
    try:
        remove_beneath(folder.parent, folder.name)
    except FileNotFoundError:
        pass
    except (OSError, UnsafePathError) as error:
        fact = getattr(error, "strerror", None) or error
        LOG.warning("%s cannot be removed: %s", folder, fact)
