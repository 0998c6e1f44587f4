"""Which files a container has mounted for its subPaths.

Podman follows links in the path of a mount. With subPath, a container of the same pod could put a
link into the volume just then, and the new container would get a folder of the host. So:

1. Open each subPath without following links, and keep it open.
2. Create and initialize the container: podman makes the mounts, and no program runs yet.
3. Compare the mounted files with the open ones, and start only if they are the same.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from moorage.kit.paths_beneath import UnsafePathError, open_beneath
from moorage.node.runtime.contract import RuntimeRefusedError, SubPathMount

MOUNTS_BYTES_MAX = 4 * 1024 * 1024
_ESCAPED = re.compile(r"\\([0-7]{3})")

Identities = Counter[tuple[int, int]]  # device and inode, and how often they are mounted


@contextmanager
def open_subpaths(parts: Iterable[SubPathMount]) -> Iterator[Identities]:
    """Keep subPaths open; give their identities, or raise RuntimeRefusedError."""
    descriptors: list[int] = []
    try:
        for part in parts:
            try:
                descriptors.append(open_beneath(part.root, part.within))
            except (OSError, UnsafePathError) as error:
                text = (
                    f"failed to prepare subPath for volumeMount at {part.container_path}: {error}"
                )
                raise RuntimeRefusedError("CreateContainerError", text) from None
        yield Counter(map(_identity, descriptors))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def mounted_files(pid: int) -> Identities:
    """Return the identities of all mounts of a process; none if it is gone."""
    found: Identities = Counter()
    with suppress(OSError):
        root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for point in _mount_points(pid):
                with suppress(OSError, UnsafePathError):
                    descriptor = open_beneath(root, point.lstrip("/"))
                    found[_identity(descriptor)] += 1
                    os.close(descriptor)
        finally:
            os.close(root)
    return found


def _mount_points(pid: int) -> list[str]:
    with open(f"/proc/{pid}/mountinfo", "rb") as file:
        lines = os.fsdecode(file.read(MOUNTS_BYTES_MAX)).splitlines()
    points = [line.split(" ")[4] for line in lines if line.count(" ") > 4]
    return [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), each) for each in points]


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
