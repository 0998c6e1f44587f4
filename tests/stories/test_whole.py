"""No story and no example of the seeds is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories import page
from tests.stories.tellers import SEEDS, STORIES

# Examples that are not about nodes or devices, with the reason.
ELSEWHERE = {
    "001-09-unified-semantics": "a rejected design; tests of validation have it",
    "002-11-pod-group": "the group of 002-12 by itself",
}

OTHERS = sorted(set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)})
OUTCOMES = sorted(STORIES.glob("*/outcome.toml"))
TOLD = "".join(path.read_text(encoding="utf-8") for path in (*OTHERS, *OUTCOMES))
PAGE = (STORIES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", sorted(path.stem for path in SEEDS.glob("*.yaml")))
def test_every_example_of_the_seeds_is_in_a_story_or_has_its_place_elsewhere(seed: str) -> None:
    assert (f'"{seed}"' in TOLD) != (seed in ELSEWHERE)


@pytest.mark.parametrize("folder", sorted(path.name for path in STORIES.iterdir() if path.is_dir()))
def test_every_story_is_told(folder: str) -> None:
    assert f"examples/stories/{folder}/" in PAGE
    for file in (STORIES / folder).glob("*.yaml"):
        assert file.stem == "cluster" or f'"{file.stem}"' in TOLD, file


def test_the_page_of_the_stories_is_fresh() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()
