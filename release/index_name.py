"""Whose a name is on the package index, asked before anything is built under it.

pip asks, so the index is the one that this machine is set up with. The newest version is ours if
its metadata name our authors, and the address of our repository where pyproject.toml has one. That
notices a name that others have taken; it is no proof against those who copy our metadata.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from email.message import Message
from email.parser import BytesParser
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dev import with_pip

ASKED_S_MAX = 120
KNOWN = "pip"  # what every index has: one that does not know it has not answered
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")


class Whose(StrEnum):
    """Whose a name on the index is."""

    FREE = "free"
    OURS = "ours"
    TAKEN = "taken"
    UNKNOWN = "unknown"


class NameAnswer(NamedTuple):
    """Whose a name is, and the sentence about it."""

    whose: Whose
    text: str

    @property
    def may_be_built(self) -> bool:
        """Whether a release may have the name."""
        return self.whose in (Whose.FREE, Whose.OURS)


def ask_index(name: str, *, author: str, repository: str) -> NameAnswer:
    """Return whose a name is on the index of this machine's pip."""
    if not _is_known(name):
        if _is_known(KNOWN):
            return NameAnswer(Whose.FREE, f"the name {name} is free on the package index")
        return NameAnswer(
            Whose.UNKNOWN,
            f"the package index cannot be asked for {name}: it does not answer, or does not even "
            f"have {KNOWN}; --offline builds without asking",
        )
    metadata = _newest_metadata(name)
    if metadata is not None and _is_ours(metadata, author, repository):
        version = metadata["Version"]
        return NameAnswer(Whose.OURS, f"the name {name} is ours on the package index ({version})")
    theirs = (
        "has no wheel that can be read here" if metadata is None else f"is {_described(metadata)}"
    )
    return NameAnswer(
        Whose.TAKEN,
        f"the name {name} belongs to another project on the package index: its newest version "
        f"{theirs}; nothing may be released under it",
    )


def _is_known(name: str) -> bool:
    """Whether the index has a page for a name, also if nothing of it can be installed here."""
    printed = _pip("index", "versions", "--pre", "-vv", name)[1]
    return re.search(rf"^ *Fetched page \S+/{name}/\S* as ", printed, re.MULTILINE) is not None


def _newest_metadata(name: str) -> Message | None:
    """Return the metadata of the newest version; None if it has no wheel, as all of ours have.

    Nothing of it is run: an sdist would be, to find its metadata.
    """
    with tempfile.TemporaryDirectory(prefix="moorage-release-") as folder:
        options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--pre"]
        if not _pip("download", *options, "--dest", folder, name)[0]:
            return None
        (wheel,) = Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as archive:
            (path,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
            return BytesParser().parsebytes(archive.read(path))


def _is_ours(metadata: Message, author: str, repository: str) -> bool:
    urls = [each.partition(", ")[2] for each in metadata.get_all("Project-URL", [])]
    return metadata["Author"] == author and (not repository or repository in urls)


def _described(metadata: Message) -> str:
    """Return what the metadata say of a version, on one line."""
    author = metadata["Author"] or metadata["Author-email"] or "nobody who is named"
    said = f"{metadata['Version']} by {author}: {metadata['Summary'] or 'no summary'}"
    return " ".join(said.split())[:200]


def _pip(*arguments: str) -> tuple[bool, str]:
    """Return whether pip could do something, and what it printed."""
    command: Sequence[str] = [with_pip(), *PIP, *arguments]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, encoding="utf-8", timeout=ASKED_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return False, ""
    return done.returncode == 0, done.stdout
