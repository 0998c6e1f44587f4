"""Builds the site: stages the pages, runs Zensical strictly, checks the result, installs it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from website.checker import problems
from website.navigation import as_toml, navigation
from website.staging import ROOT, StagingError, stage

HERE = Path(__file__).parent
MARK = "search.json"  # marks a folder as a site; other folders are never replaced
NO_SITE = 1
UNUSABLE = 2
BUILD_S_MAX = 300


def main(arguments: Sequence[str]) -> int:
    """Build the site and return an exit status."""
    parser = argparse.ArgumentParser(prog="website", description="Build the site.")
    parser.add_argument("--output", metavar="DIR", type=Path, default=ROOT / "site")
    parser.add_argument("--zensical", metavar="PROGRAM", default="zensical")
    options = parser.parse_args(arguments)
    output: Path = options.output
    if output.exists() and any(output.iterdir()) and not (output / MARK).exists():
        print(f"{output}: this folder has other files; name an empty one", file=sys.stderr)
        return UNUSABLE
    with tempfile.TemporaryDirectory(prefix="moorage-site-") as made:
        site, wrong = built(Path(made), options.zensical)
        for problem in wrong:
            print(problem, file=sys.stderr)
        if wrong:
            return NO_SITE
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(site, output)
    pages = len(list(output.rglob("*.html")))
    print(f"{output}: {pages} pages; to read them: python3 -m http.server -b 127.0.0.1 -d {output}")
    return 0


def built(folder: Path, zensical: str) -> tuple[Path, list[str]]:
    """Build the site below an empty folder; return its path and its problems."""
    site = folder / "site"
    try:
        stage(folder / "content")
    except StagingError as error:
        return site, [str(error)]
    shutil.copytree(HERE / "theme", folder / "theme")
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8")
    # The navigation belongs to the first table.
    before, mark, after = settings.partition("\n[project.theme]")
    text = f"{before}\n{as_toml(navigation())}\n{mark}{after}"
    (folder / "zensical.toml").write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        [zensical, "build", "--strict", "--config-file", "zensical.toml"],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=BUILD_S_MAX,
        check=False,
    )
    if done.returncode:
        return site, [done.stdout + done.stderr]
    return site, problems(site)
