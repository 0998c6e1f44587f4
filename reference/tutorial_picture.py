"""The picture in docs/tutorial/library.md, created by running the cells of the tutorial."""

from __future__ import annotations

import re
from contextlib import chdir, redirect_stdout
from doctest import DocTestParser
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial" / "library.md"
_CELL = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sweep_picture() -> str:
    """Return the chart that the tutorial saves, as SVG, without saving it."""
    names: dict[str, Any] = {}
    cells = "\n".join(_CELL.findall(PAGE.read_text(encoding="utf-8")))
    with chdir(ROOT), redirect_stdout(StringIO()):
        for each in DocTestParser().get_examples(cells):
            if ".save(" not in each.source:
                # The page is our own, and the tests run it, too. Output of cells is ignored.
                exec(compile(each.source, PAGE.name, "exec"), names)  # noqa: S102
    return str(names["chart"].svg)
