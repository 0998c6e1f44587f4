"""A snapshot answers as the files that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.cli.main import moor

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = ("--now", "2026-01-01T00:00:00Z")

QUESTIONS = [
    ("plan", "-o", "json"),
    ("plan", "-o", "wide"),
    ("explain",),
    ("devices", "-o", "json"),
    ("claims", "-A", "-o", "json"),
    ("fit", "deployment/training", "-o", "json"),
    ("whatif", "--drain", "dgx-h100-0", "-o", "json"),
]


def answer(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(moor, [*arguments, *NOW])
    return result.exit_code, result.stdout


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("redaction", [(), ("--no-redact",)], ids=["redacted", "whole"])
def test_an_archive_answers_as_its_files(
    question: tuple[str, ...], redaction: tuple[str, ...], tmp_path: Path
) -> None:
    given = ("--on", str(EXAMPLES / "training"), "--profile", "dgx-h100")
    archive = str(tmp_path / "cluster.tar.gz")
    assert answer("snapshot", *given, "-o", archive, *redaction)[0] == 0
    assert answer(*question, "--on", archive) == answer(*question, *given)


def test_the_same_objects_make_the_same_archive(tmp_path: Path) -> None:
    given = ("--on", str(EXAMPLES / "training"), "--profile", "dgx-h100")
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    answer("snapshot", *given, "-o", str(first))
    answer("snapshot", "--on", str(first), "-o", str(second))
    assert first.read_bytes() == second.read_bytes()
