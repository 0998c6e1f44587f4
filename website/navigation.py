"""Decides the place of each page in the navigation.

A section names the pages that come first, and the folders whose other pages follow, sorted by
title. So a new page in such a folder has its place automatically.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from website.staging import ROOT, pages_of

_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


class Section(NamedTuple):
    """A part of the navigation: pages in this order, then the others of the folders, by title."""

    title: str
    first: tuple[str, ...]
    folders: tuple[str, ...] = ()


READERS = ("claim-author", "cluster-operator", "driver-author", "platform-engineer", "contributor")
LESSONS = (
    "first-steps",
    "first-plan",
    "first-cluster",
    "this-machine",
    "kubectl",
    "write-a-driver",
)

SECTIONS = (
    Section("Moorage", ("README.md", "docs/explanation/comparison.md", "docs/differences.md")),
    Section(
        "Readers",
        ("docs/index.md", *(f"docs/readers/{name}.md" for name in READERS)),
        ("docs/readers",),
    ),
    Section("Tutorials", tuple(f"docs/tutorial/{name}.md" for name in LESSONS), ("docs/tutorial",)),
    Section("How to", ("docs/how-to/install.md",), ("docs/how-to",)),
    Section("Background", (), ("docs/explanation",)),
    Section("Reference", ("docs/reference/cli.md",), ("docs/reference",)),
    Section("Examples", ("examples/stories/README.md",), ("examples",)),
    Section("Contributing", ("CONTRIBUTING.md", "ARCHITECTURE.md"), ("docs/contributing",)),
    Section("Decisions", (), ("docs/adr",)),
    Section("Project", ("CHANGELOG.md", "SECURITY.md"), (".", "docs")),
)


def navigation(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the pages of each section; every page of the repository is in one of them."""
    titles = {page.as_posix(): title_of(root / page) for page in pages_of(root)}
    first = {page for section in SECTIONS for page in section.first}
    return {
        section.title: [*section.first, *_others(section, titles, first)] for section in SECTIONS
    }


def title_of(page: Path) -> str:
    """Return the heading of a page, or else its name."""
    found = _HEADING.search(page.read_text(encoding="utf-8"))
    return found[1] if found else page.stem


def as_toml(sections: Mapping[str, Iterable[str]]) -> str:
    """Return the navigation as Zensical's setting."""
    lines = [
        f"    {{ {json.dumps(title)} = {json.dumps(list(pages))} }},"
        for title, pages in sections.items()
    ]
    return "\n".join(["nav = [", *lines, "]"])


def _others(section: Section, titles: Mapping[str, str], first: set[str]) -> list[str]:
    others = [
        page
        for page in titles
        if page not in first and any(_is_below(page, folder) for folder in section.folders)
    ]
    # Decisions are numbered; all other pages are sorted by title.
    return others if section.title == "Decisions" else sorted(others, key=titles.__getitem__)


def _is_below(page: str, folder: str) -> bool:
    parent = Path(page).parent
    # Examples are at any depth below theirs.
    return parent == Path(folder) or (folder == "examples" and page.startswith("examples/"))
