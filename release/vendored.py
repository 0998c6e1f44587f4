"""Third-party files in the package, and the notice that their licences require.

They are in folders called `vendor`. The README.md of such a folder has a table with a row for
every file: file, package, version, licence. `checksums.txt` has their SHA-256, and the licence of
`NAME.js` is in `NAME.LICENSE`. From these THIRD_PARTY_NOTICES.md is made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NOTICES = "THIRD_PARTY_NOTICES.md"
ABOUT = {"README.md", "checksums.txt"}

_ROW = re.compile(
    r"^\| `(?P<file>[^`]+)` \| `(?P<package>[^`]+)`[^|]* "
    r"\| (?P<version>[^|]+) \| (?P<licence>[^|]+) \|$",
    re.MULTILINE,
)


_INTRODUCTION = """\
The packages that Moorage depends on are installed beside it and come with their own licences;
`sbom.cdx.json` of a release lists them. This page names the files of others that are part of
Moorage itself."""


class Vendored(NamedTuple):
    """A third-party file: its path, its package, and the text of its licence."""

    path: Path
    package: str
    version: str
    licence: str
    licence_text: str

    @property
    def sha256(self) -> str:
        """The checksum of the current file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def vendored(root: Path = ROOT) -> list[Vendored]:
    """Return all third-party files, sorted by path."""
    return [each for folder in _folders(root) for each in _described(folder)]


def faults(root: Path = ROOT) -> list[str]:
    """Return a line for each thing that is missing or wrong about third-party files."""
    return [
        f"{folder.relative_to(root)}: {fault}"
        for folder in _folders(root)
        for fault in _faults(folder)
    ]


def notices(root: Path = ROOT) -> str:
    """Return the text of THIRD_PARTY_NOTICES.md."""
    found = vendored(root)
    sections = [
        "# Third-party notices",
        "<!-- Made by `python3 dev.py docs` from the folders called `vendor`. -->",
        _INTRODUCTION,
    ]
    if not found:
        sections.append("There are none.")
    for each in found:
        where = each.path.relative_to(root).as_posix()
        sections.append(f"## {each.package} {each.version}")
        sections.append(f"`{where}`, {each.licence}:")
        sections.append(f"```text\n{each.licence_text.strip()}\n```")
    return "\n\n".join(sections) + "\n"


def _folders(root: Path) -> Iterator[Path]:
    yield from sorted(path for path in (root / "src").rglob("vendor") if path.is_dir())


def _described(folder: Path) -> Iterator[Vendored]:
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    for found in _ROW.finditer(text):
        path = folder / found["file"]
        licence = path.with_suffix(".LICENSE")
        yield Vendored(
            path,
            found["package"],
            found["version"].strip(),
            found["licence"].strip(),
            licence.read_text(encoding="utf-8") if licence.exists() else "",
        )


def _faults(folder: Path) -> Iterator[str]:
    described = {each.path.name: each for each in _described(folder)}
    sums = folder / "checksums.txt"
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    sum_of = {name: digest for digest, name in (line.split() for line in lines)}
    for path in sorted(folder.iterdir()):
        if path.name in ABOUT or path.suffix == ".LICENSE":
            continue
        entry = described.get(path.name)
        if entry is None:
            yield f"{path.name} has no row in README.md"
        elif not entry.licence_text:
            yield f"{path.name} has no licence beside it"
        elif sum_of.get(path.name) != entry.sha256:
            yield f"{path.name} is not the file that checksums.txt names"
    yield from (
        f"{name} is in README.md only" for name in described if not (folder / name).exists()
    )
