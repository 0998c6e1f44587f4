"""What a stranger meets in the repository: forms, policies, and what they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.cli.main import moor

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TYPES = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "form", [path for path in FORMS if path.stem != "config"], ids=lambda p: p.stem
)
def test_issue_forms_are_forms(form: Path) -> None:
    content = loaded(form)
    assert content.keys() >= {"name", "description", "body"}
    ids = [field["id"] for field in content["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    assert any(field.get("validations", {}).get("required") for field in content["body"])
    for field in content["body"]:
        assert field["type"] in TYPES
        assert field["attributes"].get("label") or field["attributes"].get("value")


def test_there_is_a_form_for_bugs_ideas_and_questions_and_no_empty_issue() -> None:
    assert {form.stem for form in FORMS} == {"bug", "feature", "question", "config"}
    assert loaded(ROOT / ".github/ISSUE_TEMPLATE/config.yml") == {"blank_issues_enabled": False}


def test_commands_that_forms_name_exist_with_their_options() -> None:
    context = moor.make_context("moor", [], resilient_parsing=True)
    for form in FORMS:
        for words in re.findall(r"`moor (\w[^`]*)`", form.read_text(encoding="utf-8")):
            name, *arguments = words.split()
            command = moor.get_command(context, name)
            assert command is not None, words
            known = {option for parameter in command.params for option in parameter.opts}
            assert {each for each in arguments if each.startswith("-")} <= known, words


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT", "GOVERNANCE", "SECURITY", "CONTRIBUTING"])
def test_policies_name_no_address_of_a_person(name: str) -> None:
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    assert not re.search(r"[\w.+-]+@[\w-]+\.\w+", text)
