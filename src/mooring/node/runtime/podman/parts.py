"""Parts of volumes (subPath): what podman mounted is what was meant, or the container does not run.

Podman is told a path, and follows links in it. A container of the same pod can put a link into the
volume just then, and the new one would get a folder of the host. So with such mounts a container is
not simply run:

1. Each part is opened without following links, and held open.
2. The container is created and initialised: podman makes the mounts, and no program runs yet.
3. The files that are mounted in it are compared with those held. Only if they are the same does it
   start.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from mooring.kit.beneath import UnsafePathError, open_beneath
from mooring.node.runtime.contract import RuntimeRefusedError, VolumePart

MOUNTS_BYTES_MAX = 4 * 1024 * 1024
_ESCAPED = re.compile(r"\\([0-7]{3})")

Identities = Counter[tuple[int, int]]  # device and inode, and how often they are mounted


@contextmanager
def held(parts: Iterable[VolumePart]) -> Iterator[Identities]:
    """Hold parts of volumes open; give what they are, or raise RuntimeRefusedError."""
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


def mounted(pid: int) -> Identities:
    """Return what is mounted in a process's view of the files; nothing if it is gone."""
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
