"""Whose a name is on an index: free, ours, of others, or unknown. The index is a folder."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from release import build
from release.index_name import Whose, ask_index

AUTHOR = "The Moorage authors"
REPOSITORY = "https://example.com/moorage"
OURS = f"Author: {AUTHOR}\nSummary: DRA\nProject-URL: Source, {REPOSITORY}\n"
THEIRS = "Author: Ann\nSummary: A place for boats\n"


class Index:
    """A package index of files that pip asks; `pip` itself is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.add("pip", "1.0", THEIRS)

    def add(self, name: str, version: str, metadata: str, tags: str = "py3-none-any") -> None:
        """Publish a wheel."""
        (self.folder / name).mkdir(exist_ok=True)
        wheel = f"{name}-{version}-{tags}.whl"
        with zipfile.ZipFile(self.folder / name / wheel, "w") as archive:
            inside = f"{name}-{version}.dist-info"
            head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            archive.writestr(f"{inside}/METADATA", head + metadata)
            archive.writestr(f"{inside}/WHEEL", f"Wheel-Version: 1.0\nTag: {tags}\n")
            archive.writestr(f"{inside}/RECORD", "")
        self._write_page(name)

    def add_sdist(self, name: str, version: str) -> None:
        """Publish an sdist whose code must not be run."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / f"{name}-{version}.tar.gz").write_bytes(b"")
        self._write_page(name)

    def reserve(self, name: str) -> None:
        """Register a name without any file."""
        (self.folder / name).mkdir()
        self._write_page(name)

    def _write_page(self, name: str) -> None:
        names = [each.name for each in (self.folder / name).iterdir() if each.suffix != ".html"]
        links = "".join(f'<a href="{each}">{each}</a>' for each in sorted(names))
        (self.folder / name / "index.html").write_text(f"<!DOCTYPE html><html>{links}</html>")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    return Index(tmp_path)


def whose(repository: str = "") -> tuple[Whose, str]:
    answer = ask_index("moorage", author=AUTHOR, repository=repository)
    return answer.whose, answer.text


def test_a_name_that_the_index_does_not_have_is_free(index: Index) -> None:
    assert whose() == (Whose.FREE, "the name moorage is free on the package index")


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_a_name_whose_newest_version_names_us_is_ours(index: Index, repository: str) -> None:
    index.add("moorage", "0.1.0", THEIRS)  # before it was given to us
    index.add("moorage", "0.2.0rc1", OURS)
    assert whose(repository) == (
        Whose.OURS,
        "the name moorage is ours on the package index (0.2.0rc1)",
    )


def test_a_name_of_others_is_taken_and_the_sentence_says_by_whom(index: Index) -> None:
    index.add("moorage", "0.1.0", OURS)
    index.add("moorage", "0.5.8", THEIRS)
    found, text = whose()
    assert found is Whose.TAKEN
    assert "its newest version is 0.5.8 by Ann: A place for boats; nothing may" in text


def test_with_an_address_the_author_alone_does_not_make_it_ours(index: Index) -> None:
    index.add("moorage", "0.1.0", f"Author: {AUTHOR}\nProject-URL: Source, https://example.org\n")
    assert whose(REPOSITORY)[0] is Whose.TAKEN


@pytest.mark.parametrize("published", ["a wheel of another system", "an sdist", "nothing"])
def test_a_name_without_a_wheel_for_this_machine_is_not_free(index: Index, published: str) -> None:
    if published == "an sdist":
        index.add_sdist("moorage", "1.0")
    elif published == "nothing":
        index.reserve("moorage")
    else:
        index.add("moorage", "1.0", THEIRS, tags="cp27-cp27m-win32")
    found, text = whose()
    assert found is Whose.TAKEN
    assert "has no wheel that can be read here" in text


def test_an_index_that_does_not_even_have_pip_has_not_answered(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", (index.folder / "gone").as_uri())
    found, text = whose()
    assert found is Whose.UNKNOWN
    assert "--offline builds without asking" in text


def test_nothing_is_built_under_a_name_of_others(
    index: Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index.add("moorage", "0.5.8", THEIRS)
    output = tmp_path / "dist"
    assert build.main(["--tools", str(tmp_path), "--output", str(output)]) == 1
    assert capsys.readouterr().err.startswith(
        "release: the name moorage belongs to another project on the package index: "
    )
    assert not output.exists()
