"""The hardware of a board as files: a fake sysfs that a test can change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from moorage.drivers.host import Host
from moorage.hardware.board import Profile
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.sysfs import sysfs_entries
from moorage.hardware.sysfs_tree import Link, folder_tree, write_entries


class FakeMachine:
    """A machine of a hardware profile; `root` takes the place of /sys."""

    def __init__(self, root: Path, profile: Profile) -> None:
        self.root, self.profile = root, profile

    @property
    def host(self) -> Host:
        """The machine as Moorage's own drivers see it."""
        proc = self.root.with_name(f"{self.root.name}-proc")
        proc.mkdir(exist_ok=True)
        return Host(folder_tree(self.root), folder_tree(proc))

    def write(self, entries: Mapping[str, str | Link]) -> None:
        """Write or replace files, by their paths below the root."""
        write_entries(self.root, entries)

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all links into it: a device disappears."""
        place = self.root / path
        if not os.path.lexists(place):
            raise FileNotFoundError(f"{place}: there is no such file")
        real = place.resolve()
        if real.is_dir():
            for link in self._links_into(real):
                link.unlink()
            shutil.rmtree(real)
        else:
            place.unlink()

    def _links_into(self, folder: Path) -> list[Path]:
        found = []
        for base, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = Path(base, name)
                if path.is_symlink() and folder in (path.resolve(), *path.resolve().parents):
                    found.append(path)
        return found


def machine(folder: Path, profile: str) -> FakeMachine:
    """Write the sysfs of a board into a folder; raises ProfileError for an unknown one."""
    found = Catalogue().profile(profile)
    root = folder / profile
    write_entries(root, sysfs_entries(found))
    return FakeMachine(root, found)
