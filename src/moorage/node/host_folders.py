"""Maps host folders that pods expect on every node to where this node has them.

A driver in a DaemonSet mounts `/var/lib/kubelet/plugins`, `/var/lib/kubelet/plugins_registry` and
`/var/run/cdi`, and tells the node a socket below them. On a node with another root directory, both
the mounts and the socket mean the node's own folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from moorage.api.cdi import DYNAMIC_FOLDER, STATIC_FOLDER

KUBELET_FOLDER: Final = "/var/lib/kubelet"
CDI_FOLDERS: Final = (DYNAMIC_FOLDER, "/run/cdi")

HostFolders = Mapping[str, str]  # where a node has a folder, by its usual path


def host_folders_of(root: Path, cdi_folders: Sequence[Path]) -> HostFolders:
    """Return the folders that the node has in other places."""
    own = [str(each) for each in cdi_folders if str(each) not in (STATIC_FOLDER, *CDI_FOLDERS)]
    found = dict.fromkeys(CDI_FOLDERS, own[-1]) if own else {}
    return found if str(root) == KUBELET_FOLDER else {KUBELET_FOLDER: str(root), **found}


def node_path(path: str, folders: HostFolders) -> Path:
    """Return the node's path for a path; a relative one is below the root, as in the kubelet."""
    wanted = Path("/", path)
    for usual, own in folders.items():
        if wanted.is_relative_to(usual):
            return Path(own, wanted.relative_to(usual))
    return wanted
