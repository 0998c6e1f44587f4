"""What is released: reproducible, clean, complete, and without dead links on an index."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

import dev
import moorage
from release import build
from release.lock_file import read_lock
from release.metadata_hook import ReadmeAndUrls, readme_for_index, urls, version_of
from release.sbom import sbom
from release.vendored import ROOT, faults, notices, vendored

REPOSITORY = "https://example.com/moorage"
README = (ROOT / "README.md").read_text(encoding="utf-8")

# --- the README of an index --------------------------------------------------------------------

_TARGET = re.compile(r"\]\(([^)\s]+)\)")


def test_without_an_address_the_readme_has_no_link_into_the_repository() -> None:
    text = readme_for_index(README, "", "0.1.0")
    assert [target for target in _TARGET.findall(text) if "://" not in target] == []
    assert "![" not in text
    assert "<!--" not in text
    assert "dev.py run" not in text  # there is no checkout
    assert "The sdist has the documentation" in text
    assert not re.search(r"repository only|index only", text)
    assert "$ moor plan -f examples/training" in text


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_an_index_says_how_to_install_from_it(repository: str) -> None:
    text = readme_for_index(README, repository, "0.1.0")
    lines = re.findall(r"^pip install (\S+)", text, re.MULTILINE)
    assert lines == ["moorage", "'moorage[all]'"]


def test_with_an_address_links_lead_to_the_files_of_the_version() -> None:
    text = readme_for_index(README, REPOSITORY, "0.1.0")
    targets = _TARGET.findall(text)
    assert len(targets) == len(_TARGET.findall(README))
    for target in targets:
        kind = "raw" if target.endswith((".svg", ".gif")) else "blob"
        address, _, path = target.partition(f"/{kind}/v0.1.0/")
        assert address == REPOSITORY, target
        assert (ROOT / path.partition("#")[0]).exists(), target
    assert "python3 dev.py test" in text
    assert "The sdist has the documentation" not in text


def test_links_in_code_and_absolute_ones_stay() -> None:
    text = "[a](https://e.org/x) [`b`](docs/b.md)\n\n```\n[c](docs/c.md)\n```\n"
    assert readme_for_index(text, "", "1") == text.replace("[`b`](docs/b.md)", "`b`")


def test_urls_are_those_of_the_address_and_none_are_invented() -> None:
    assert urls("") == {}
    assert set(urls(REPOSITORY)) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    assert all(url.startswith(REPOSITORY) for url in urls(REPOSITORY).values())


def test_the_hook_gives_hatchling_both() -> None:
    metadata: dict[str, Any] = {}
    ReadmeAndUrls(str(ROOT), {"repository": REPOSITORY + "/"}).update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert f"{REPOSITORY}/blob/v{moorage.__version__}/docs/index.md" in metadata["readme"]["text"]
    assert metadata["urls"]["Homepage"] == REPOSITORY


def test_the_version_is_declared_once_and_has_a_section_in_the_changelog() -> None:
    assert version_of(ROOT) == moorage.__version__
    released = moorage.__version__.partition(".dev")[0]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(released)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


# --- the bill of materials ---------------------------------------------------------------------


def test_lock_files_are_read_with_what_needs_what() -> None:
    pins = read_lock(ROOT / "requirements" / "server.txt")
    text = (ROOT / "requirements" / "server.txt").read_text(encoding="utf-8")
    assert len(pins) == text.count("==")
    assert sum(len(pin.sha256s) for pin in pins.values()) == text.count("--hash=sha256:")
    assert pins["click"].needed_by == ("moorage", "uvicorn")
    assert "platform_python_implementation" in pins["cffi"].marker


def test_an_unpinned_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("click>=8\n")
    with pytest.raises(ValueError, match="no pinned version: 'click>=8'"):
        read_lock(tmp_path / "run.txt")


def version_in(lock: str, name: str) -> str:
    return read_lock(ROOT / "requirements" / f"{lock}.txt")[name].version


def bill() -> dict[str, Any]:
    text = sbom(
        ROOT / "requirements", vendored(ROOT), version="1.0", wheel_sha256="ab" * 32, epoch_s=86400
    )
    document: dict[str, Any] = json.loads(text)
    return document


def test_the_bill_lists_what_all_brings_and_how_it_hangs_together() -> None:
    document = bill()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    scopes = {each["name"]: each["scope"] for each in document["components"]}
    files = {each.package for each in vendored(ROOT)}
    locked = [read_lock(ROOT / "requirements" / f"{n}.txt") for n in ("run", "server", "drivers")]
    assert scopes.keys() - files == set().union(*locked)
    assert {name for name, scope in scopes.items() if scope == "required"} == {*locked[0], *files}
    refs = [each["bom-ref"] for each in document["components"]]
    assert len(refs) == len(set(refs))
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert edges.keys() == {"pkg:pypi/moorage@1.0", *refs}
    assert "pkg:pypi/click@" in " ".join(
        edges[f"pkg:pypi/uvicorn@{version_in('server', 'uvicorn')}"]
    )
    # Nothing is listed that nothing needs.
    assert {ref for needed in edges.values() for ref in needed} == set(refs)


def test_the_same_input_gives_the_same_bill() -> None:
    assert bill() == bill()


# --- files of others ---------------------------------------------------------------------------

ROW = "| `x.js` | `@y/x`, `dist/x.js` | 1.2.3 | MIT |\n"


def vendor(root: Path, **others: str) -> Path:
    folder = root / "src" / "moorage" / "web" / "vendor"
    folder.mkdir(parents=True)
    digest = hashlib.sha256(b"code").hexdigest()
    files = {
        "x.js": "code",
        "README.md": ROW,
        "x.LICENSE": "Do.",
        "checksums.txt": f"{digest}  x.js",
    }
    for name, text in {**files, **others}.items():
        (folder / name).write_text(text)
    return folder


def test_every_file_of_others_has_a_row_a_checksum_and_a_licence() -> None:
    assert faults(ROOT) == []


def test_the_notice_has_package_version_licence_and_text(tmp_path: Path) -> None:
    vendor(tmp_path)
    assert faults(tmp_path) == []
    text = notices(tmp_path)
    assert "## @y/x 1.2.3\n\n`src/moorage/web/vendor/x.js`, MIT:\n\n```text\nDo.\n```" in text


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"z.js": "more"}, "z.js has no row in README.md"),
        ({"x.LICENSE": ""}, "x.js has no licence beside it"),
        ({"x.js": "changed"}, "x.js is not the file that checksums.txt names"),
        ({"README.md": ROW + ROW.replace("x.js", "z.js")}, "z.js is in README.md only"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_beside_them_is_named(
    files: dict[str, str], fault: str, tmp_path: Path
) -> None:
    vendor(tmp_path, **files)
    assert faults(tmp_path) == [f"src/moorage/web/vendor: {fault}"]


# --- the whole ---------------------------------------------------------------------------------


def test_a_release_is_reproducible_and_its_checks_are_content(tmp_path: Path) -> None:
    """Two builds with the same bytes; twine, check-wheel-contents and pyroma have no complaint."""
    dev.ensure_tools(dev.RELEASE)
    tools = str(dev.python_of(dev.RELEASE).parent)
    (tmp_path / "moorage-0.0.1-py3-none-any.whl").write_text("of before")
    assert build.main(["--offline", "--tools", tools, "--output", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    wheel = f"moorage-{moorage.__version__}-py3-none-any.whl"
    sdist = f"moorage-{moorage.__version__}.tar.gz"
    krew = f"moorage-krew-{moorage.__version__}.tar.gz"  # without an address it has no manifest
    assert names == {wheel, sdist, krew, "sbom.cdx.json", "SHA256SUMS"}
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
        names.remove(name)
    assert names == {"SHA256SUMS"}
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        packed = set(archive.namelist())
        (metadata,) = (name for name in packed if name.endswith(".dist-info/METADATA"))
        fields = message_from_string(archive.read(metadata).decode())
    assert {"moorage/py.typed", "moorage/examples/training/training.yaml"} <= packed
    assert fields.get_all("License-File") == ["LICENSE", "THIRD_PARTY_NOTICES.md"]
    assert "$ moor plan" in fields.get_payload()


def test_builds_that_differ_are_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = iter([{"a.whl": b"1", "a.tar.gz": b"1"}, {"a.whl": b"2", "a.tar.gz": b"1"}])
    monkeypatch.setattr(build, "_built", lambda _: next(outputs))
    with pytest.raises(build.ReleaseError, match=r"two builds differ: a\.whl"):
        build.build(0)
