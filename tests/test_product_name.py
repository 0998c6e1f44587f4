"""The product has one name: the former one, which belongs to others, is in the changelog alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORMER = "moor" + "ing"
TELLS_OF_IT = "CHANGELOG.md"
# What commands make in a checkout; all else in an unpacked sdist is of the repository.
MADE = {".git", ".tools", "compiled", "dist", "site", "__pycache__"}


def files() -> Iterator[str]:
    """Yield the paths of all files of the repository, also where it has no history."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        yield from filter(None, done.stdout.decode().split("\0"))
        return
    for folder, below, names in os.walk(ROOT):
        below[:] = [each for each in below if each not in MADE and not each.startswith(".venv")]
        yield from ((Path(folder) / name).relative_to(ROOT).as_posix() for name in names)


def has_former_name(path: str) -> bool:
    """Whether a path or the bytes of its file have the former name, however it is capitalized."""
    content = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b""
    return FORMER in path.lower() or FORMER.encode() in content.lower()


def test_only_the_changelog_has_the_former_name() -> None:
    paths = set(files())
    assert {TELLS_OF_IT, "README.md", "docs/pictures/page-tour.gif"} <= paths
    assert [path for path in sorted(paths) if has_former_name(path)] == [TELLS_OF_IT]
