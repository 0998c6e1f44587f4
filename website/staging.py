"""Copies the pages, and the files that they link to, into one folder that mirrors the repository.

Pages stay unchanged, with two exceptions. A web server has no pages for folders, so links to a
folder lead to its README, or else to a generated page that shows its files. And the file name after
the language of a code block becomes its title.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LISTED_SUFFIXES = {".yaml": "yaml", ".toml": "toml", ".json": "json", ".txt": "text"}
LISTED_BYTES_MAX = 64 * 1024

_FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^```(?P<language>[\w-]+) (?P<file>[\w./-]+)$", re.MULTILINE)
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]+)(?P<after>[^)]*\))")


class StagingError(Exception):
    """A page links to something that is not in the repository."""


class Staged(NamedTuple):
    """The content of the folder: pages of the repository, and listings of folders."""

    pages: tuple[Path, ...]
    listings: tuple[Path, ...]


def pages_of(root: Path = ROOT) -> list[Path]:
    """Return the paths of all pages, relative to the repository, in a fixed order."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.md")]
    return sorted(page.relative_to(root) for page in found)


def stage(folder: Path, root: Path = ROOT) -> Staged:
    """Copy the pages and what they link to into an empty folder."""
    pages = pages_of(root)
    linked: set[Path] = set()
    for page in pages:
        text, targets = _with_links_to_files((root / page).read_text(encoding="utf-8"), page, root)
        _write(folder / page, text)
        linked |= targets
    listings = sorted(path for path in linked if (root / path).is_dir())
    for listing in listings:
        _write(folder / listing / "index.md", _listing(root / listing, listing))
    for file in sorted(linked - set(pages) - set(listings)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, folder / file)
    return Staged(tuple(pages), tuple(listings))


def _with_links_to_files(text: str, page: Path, root: Path) -> tuple[str, set[Path]]:
    """Return a page whose links lead to files, with the files and folders that it links to."""
    linked: set[Path] = set()

    def replaced(found: re.Match[str]) -> str:
        target = found["target"]
        if ":" in target.partition("/")[0] or target.startswith("/"):
            return found[0]
        path = Path(os.path.normpath(page.parent / target))
        if path.parts[0] == ".." or not (root / path).exists():
            raise StagingError(f"{page}: {target} is not in the repository")
        if not (root / path).is_dir():
            linked.add(path)
            return found[0]
        has_readme = (root / path / "README.md").exists()
        if not has_readme:
            linked.add(path)
        name = "README.md" if has_readme else "index.md"
        return f"{found['before']}{target.rstrip('/')}/{name}{found['after']}"

    return "".join(
        _NAMED.sub(r'```\g<language> title="\g<file>"', part)
        if is_code
        else _LINK.sub(replaced, part)
        for part, is_code in _parts(text)
    ), linked


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield prose and code blocks in turn."""
    end = 0
    for found in _FENCED.finditer(text):
        yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    yield text[end:], False


def _listing(folder: Path, shown: Path) -> str:
    """Return a page with the files of a folder."""
    sections = [f"# {shown.as_posix()}", "The files of this folder of the repository."]
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        language = LISTED_SUFFIXES.get(file.suffix)
        if language is None or file.stat().st_size > LISTED_BYTES_MAX:
            continue
        content = file.read_text(encoding="utf-8").rstrip("\n")
        sections.append(f"## {file.name}\n\n~~~~ {language}\n{content}\n~~~~")
    return "\n\n".join(sections) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
