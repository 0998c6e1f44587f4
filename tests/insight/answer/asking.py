"""Situations in one file each: ask for the pending pod, and check the cause and the fixes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from moorage.cli.explain import command as explain
from moorage.cli.plan import command as plan
from moorage.cli.validate import command as validate
from moorage.insight.messages import CAUSE_LENGTH_MAX

FOLDER = Path(__file__).parents[1] / "situations"
CHANGE, ADVICE = True, False


class Expected(NamedTuple):
    """Patterns of the cause and the first fix, and how to ask."""

    cause: str
    fix: str
    is_change: bool = CHANGE
    about: str = "pod/train"
    options: tuple[str, ...] = ()


class Situations(NamedTuple):
    """The situations of a folder, with what is expected of each."""

    folder: Path
    expected: dict[str, Expected]

    def check_names(self) -> None:
        """Check that every situation has its expectation."""
        assert {path.stem for path in self.folder.glob("*.yaml")} == set(self.expected)

    def explained(self, name: str, *options: str) -> str:
        """Return what is printed about a situation."""
        expected, file = self.expected[name], str(self.folder / f"{name}.yaml")
        arguments = (expected.about, "-n", "team", "-f", file, *expected.options)
        return run(explain, *arguments, *options)

    def pending(self, name: str) -> Any:
        """Return the answer for the first pod, as JSON."""
        return json.loads(self.explained(name, "-o", "json"))["pending"][0]

    def check_answer(self, name: str) -> None:
        """Check the cause and the first fix."""
        expected, found = self.expected[name], self.pending(name)
        cause, fixes = found["cause"], found["fixes"]
        assert re.search(expected.cause, cause), cause
        assert "\n" not in cause
        assert "…" not in cause
        assert len(cause) <= CAUSE_LENGTH_MAX
        assert fixes, cause
        assert re.search(expected.fix, fixes[0]["text"]), fixes
        assert fixes[0]["kind"] == ("change" if expected.is_change else "advice")

    def check_changes(self, name: str) -> None:
        """Check that every offered change is valid, and places the pod or spares it."""
        found, options = self.pending(name), self.expected[name].options
        before = (self.folder / f"{name}.yaml").read_text("utf-8")
        for number, fix in enumerate(found["fixes"], 1):
            if fix["kind"] != "change":
                continue
            written = self.explained(name, "--write-fix", str(number))
            assert written != before
            valid = CliRunner().invoke(validate, ["-q", "-f", "-", *options], input=written)
            assert valid.exit_code == 0, valid.output
            planned = run(plan, "-o", "json", "-n", "team", *options, text=written)
            nodes = {each["pod"]: each.get("node") for each in json.loads(planned)["pods"]}
            is_spared = found["pods"][0] not in nodes and all(nodes.values())
            assert nodes.get(found["pods"][0]) or is_spared, fix["text"]


def run(command: Any, *arguments: str, text: str | None = None) -> str:
    """Return what a command prints."""
    given = ["-f", "-"] if text is not None else []
    result = CliRunner().invoke(command, [*arguments, *given], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout
