"""The site: every page is in it and in the navigation, and the checker finds what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import dev
from website import build
from website.checker import problems
from website.navigation import SECTIONS, as_toml, navigation
from website.staging import ROOT, StagingError, pages_of, stage

# --- staging -----------------------------------------------------------------------------------


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_pages_and_what_they_link_to_are_staged_where_they_are(tmp_path: Path) -> None:
    root = written(
        tmp_path / "root",
        {
            "README.md": "# A\n\n[b](docs/b.md) ![c](docs/c.svg) [licence](LICENSE)\n",
            "docs/b.md": "# B\n",
            "docs/c.svg": "<svg/>",
            "docs/unlinked.svg": "<svg/>",
            "LICENSE": "free",
        },
    )
    staged = stage(tmp_path / "content", root)
    assert staged.pages == (Path("README.md"), Path("docs/b.md"))
    found = {path.relative_to(tmp_path / "content") for path in (tmp_path / "content").rglob("*.*")}
    assert found == {Path("README.md"), Path("docs/b.md"), Path("docs/c.svg")}
    assert (tmp_path / "content/LICENSE").read_text() == "free"


def test_a_link_to_a_folder_leads_to_its_readme_or_to_a_page_with_its_files(tmp_path: Path) -> None:
    page = (
        "# A\n\n[with](examples/with) and [without](examples/without#x)\n\n```\n[x](nowhere)\n```\n"
    )
    root = written(
        tmp_path / "root",
        {
            "README.md": page,
            "examples/with/README.md": "# With\n",
            "examples/without/a.yaml": "kind: A\n",
        },
    )
    staged = stage(tmp_path / "content", root)
    assert staged.listings == (Path("examples/without"),)
    text = (tmp_path / "content/README.md").read_text()
    assert "(examples/with/README.md) and [without](examples/without/index.md#x)" in text
    assert "[x](nowhere)" in text  # code is no prose
    assert "kind: A" in (tmp_path / "content/examples/without/index.md").read_text()


def test_the_name_of_a_file_is_the_title_of_its_block(tmp_path: Path) -> None:
    root = written(tmp_path / "root", {"README.md": "# A\n\n```yaml claim.yaml\nkind: A\n```\n"})
    stage(tmp_path / "content", root)
    text = (tmp_path / "content/README.md").read_text()
    assert text == '# A\n\n```yaml title="claim.yaml"\nkind: A\n```\n'


@pytest.mark.parametrize("target", ["missing.md", "../outside.md", "docs/../../outside.md"])
def test_a_link_out_of_the_repository_is_refused(target: str, tmp_path: Path) -> None:
    written(tmp_path, {"outside.md": "# Out\n"})
    root = written(tmp_path / "root", {"README.md": f"[a]({target})"})
    with pytest.raises(StagingError, match="not in the repository"):
        stage(tmp_path / "content", root)


# --- the navigation ----------------------------------------------------------------------------


def test_every_page_is_in_the_navigation_once() -> None:
    places = [page for pages in navigation().values() for page in pages]
    assert sorted(places) == sorted(page.as_posix() for page in pages_of())
    assert len(SECTIONS) == len(navigation())


def test_readers_come_before_all_topics() -> None:
    assert list(navigation())[:2] == ["Moorage", "Readers"]
    assert navigation()["Readers"][0] == "docs/index.md"


def test_a_new_page_of_a_folder_has_its_place_by_title(tmp_path: Path) -> None:
    root = written(
        tmp_path, {"docs/how-to/b.md": "# Ask\n", "docs/how-to/a.md": "# Zoom\n", "X.md": "# X\n"}
    )
    found = navigation(root)
    assert found["How to"][1:] == ["docs/how-to/b.md", "docs/how-to/a.md"]
    assert found["Project"][-1] == "X.md"


def test_titles_are_quoted_for_the_settings() -> None:
    assert as_toml({'a "b"': ["c.md"]}) == 'nav = [\n    { "a \\"b\\"" = ["c.md"] },\n]'


# --- the checker -------------------------------------------------------------------------------

SOUND = {
    "index.html": '<h1 id="a">A</h1><a href="b.html#c">b</a><img src="p.svg"><a href="#a">a</a>',
    "b.html": '<p id="c">C</p><a href="https://example.com/x">x</a><link rel="canonical" '
    'href="https://example.com/">',
    "p.svg": "<svg/>",
    "search.json": json.dumps({"items": [{"location": "index.html"}, {"location": "b.html#c"}]}),
}


def test_a_sound_site_has_no_problems(tmp_path: Path) -> None:
    assert problems(written(tmp_path, SOUND)) == []


@pytest.mark.parametrize(
    ("name", "added", "problem"),
    [
        ("b.html", '<a href="none.html">n</a>', "b.html: none.html leads nowhere"),
        ("b.html", '<a href="index.html#z">n</a>', "b.html: index.html#z names no anchor"),
        ("b.html", '<a href="#z">n</a>', "b.html: #z names no anchor"),
        ("b.html", '<a href="../out.html">n</a>', "b.html: ../out.html leads nowhere"),
        ("b.html", '<img src="none.svg">', "b.html: none.svg leads nowhere"),
        ("b.html", '<img srcset="p.svg 1x, q.svg 2x">', "b.html: q.svg leads nowhere"),
        ("b.html", '<script src="//e.org/x.js"></script>', "loads //e.org/x.js from another host"),
        (
            "b.html",
            '<img src="https://e.org/x.png">',
            "loads https://e.org/x.png from another host",
        ),
        ("b.html", '<link rel="stylesheet" href="https://e.org/x.css">', "from another host"),
        ("b.html", '<iframe src="https://e.org"></iframe>', "from another host"),
        ("s.css", "@import 'https://e.org/x.css'", "s.css: loads @import 'https://e.org/x.css"),
        ("p.svg", "<style>a{fill:url(//e.org/x)}</style>", "p.svg: loads url(//e.org/x"),
        ("b.html", "<p>```yaml a b</p>", "b.html: shows ```"),
        ("new.html", "<p>new</p>", "search.json: new.html is missing"),
    ],
)
def test_what_is_wrong_is_named(name: str, added: str, problem: str, tmp_path: Path) -> None:
    site = written(tmp_path, SOUND)
    written(site, {name: SOUND.get(name, "") + added})
    (found,) = problems(site)
    assert problem in found


def test_a_folder_of_others_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("mine")
    assert build.main(["--output", str(tmp_path)]) == build.UNUSABLE
    assert "has other files" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


# --- the real one ------------------------------------------------------------------------------


def test_the_site_of_the_repository_is_sound(tmp_path: Path) -> None:
    """Every link and anchor of the built pages, nothing from other hosts, search of every page."""
    dev.ensure_tools(dev.SITE)
    zensical = dev.python_of(dev.SITE).with_name("zensical")
    site, wrong = build.built(tmp_path, str(zensical))
    assert wrong == []
    for page in pages_of():
        name = page.with_name("index.md") if page.name == "README.md" else page
        text = (site / name.with_suffix(".html")).read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text, page
        # Each page leads to every part of the navigation.
        for section in SECTIONS:
            assert section.title in text, page
    readme = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<img alt="[^"]+" src="docs/pictures/plan\.svg"', readme)
    assert (site / "docs/pictures/plan.svg").read_bytes() == (
        ROOT / "docs/pictures/plan.svg"
    ).read_bytes()
