"""Manual pages: whole, right for groff and man, and made from the commands as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest

import dev
from moorage.cli.main import moor
from reference.command_tree import names_of, options_of, walk
from reference.man_pages import man_page, man_pages

FOLDER = Path(__file__).parents[2] / "docs" / "man"
PAGES = sorted(man_pages())


def test_there_is_a_page_for_every_command_and_no_other() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == PAGES
    assert {"moor.1", "moor-plan.1", "moor-driver-run.1"} <= {*PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_dev_py_docs_writes(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == man_pages()[name]()


def groff(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run groff: the machine's own, or that of Debian in .tools."""
    program, environment = shutil.which("groff"), dict(os.environ)
    if program is None:
        folder = dev.SHELLS / "usr"
        program = str(folder / "bin" / "groff")
        if not Path(program).exists():
            pytest.skip("no groff: `python3 dev.py test` fetches it where it can be had")
        shared = folder / "share" / "groff" / "current"
        environment |= {
            "PATH": f"{folder / 'bin'}{os.pathsep}{environment['PATH']}",
            "GROFF_BIN_PATH": str(folder / "bin"),
            "GROFF_FONT_PATH": str(shared / "font"),
            "GROFF_TMAC_PATH": str(shared / "tmac"),
        }
    return subprocess.run(
        [program, "-man", "-Tutf8", "-ww", *arguments],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_groff_has_no_warnings() -> None:
    done = groff("-z", *(str(FOLDER / name) for name in PAGES))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_shows_text_unchanged() -> None:
    @click.command(epilog="Exit status: 0 done.")
    @click.option("-x", "--ex", metavar="A|B", default="b\\c", show_default=True, help=".TH 'x'…")
    def command(ex: str) -> None:
        """Do \\fBit\\fR.

        .SH is no section; 'neither is' `this` ~ ^ —.

        \b
        moor  x   --ex 'a'
        .PP
        """

    (context,) = walk(command, "x")
    done = groff("-P-c", "-P-b", "-P-u", given=man_page(context))
    assert done.stderr == ""
    for text in (
        r"Do \fBit\fR.",
        ".SH is no section; 'neither is' `this` ~ ^ —.",
        "moor  x   --ex 'a'\n",
        "-x, --ex A|B",
        r".TH 'x'... Default: b\c.",
    ):
        assert text in done.stdout


def test_every_option_is_on_the_page() -> None:
    for context in walk(moor, "moor"):
        page = man_page(context)
        for option in options_of(context):
            for name in names_of(option)[0]:
                assert name.replace("-", r"\-") in page, f"{context.command_path} {name}"
