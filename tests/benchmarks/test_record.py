"""Records of benchmarks, the plots of them, and the drawings that are made from what they show."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks._record import Record, Row
from reference.diagrams import LAYERS, STAGES, STEPS, architecture, claim_life, funnel
from reference.plots import DATA, plot

ROOT = Path(__file__).parents[2]
ROWS = [Row("a", (1.0, 100.0)), Row("b & c", (None, 10.0))]


def recorded(folder: Path, *, is_logarithmic: bool) -> Path:
    path = folder / "data" / "x.json"
    Record("Title", "pods/s", ("one", "two"), ROWS, "A note.", is_logarithmic).write(path)
    return path


def widths(picture: str, look: str) -> list[int]:
    return [int(w) for w in re.findall(rf'<rect class="{look}"[^>]* width="(\d+)"', picture)][1:]


def test_a_record_names_command_date_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "simulation", "a b", "--runs", "1"])
    content = json.loads(recorded(tmp_path, is_logarithmic=False).read_text(encoding="utf-8"))
    assert content["command"] == "python3 dev.py bench simulation 'a b' --runs 1"
    assert re.match(r"\d{4}-\d\d-\d\d, \d+ cores of ", content["machine"])
    assert content["rows"][1] == {"name": "b & c", "values": [None, 10.0]}


def test_bars_are_as_long_as_their_values(tmp_path: Path) -> None:
    picture = plot(recorded(tmp_path, is_logarithmic=False))
    first, second = widths(picture, "c0"), widths(picture, "c1")
    assert len(first) == 1  # what was not measured has no bar
    assert second[0] == pytest.approx(10 * second[1], abs=6)
    assert second[0] == pytest.approx(100 * first[0], rel=0.1)


def test_logarithmic_bars_grow_by_orders_of_magnitude(tmp_path: Path) -> None:
    picture = plot(recorded(tmp_path, is_logarithmic=True))
    (one,), (hundred, ten) = widths(picture, "c0"), widths(picture, "c1")
    assert hundred - ten == pytest.approx(ten - one, abs=2)
    assert "The scale is logarithmic" in picture


def test_plots_say_what_they_show_and_where_it_was_measured(tmp_path: Path) -> None:
    picture = plot(recorded(tmp_path, is_logarithmic=False))
    root = ElementTree.fromstring(picture)
    assert root.findtext("{*}title") == "Title"
    assert root.findtext("{*}desc") == "pods/s: a one 1, two 100; b & c two 10"
    assert "cores of" in picture


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_figures_have_a_command_that_measures_them_again(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["command"].startswith("python3 dev.py bench ")
    assert content["command"].endswith(f"--record docs/data/{path.name}")
    assert all(len(row["values"]) == len(content["series"]) for row in content["rows"])


# --- drawings ----------------------------------------------------------------------------------


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(picture).iterfind(".//{*}text")]


def test_the_architecture_has_every_layer_with_its_meaning() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == LAYERS)
    packages = [package for layer in layers for package in layer.split(" | ")]
    found = [text for text in texts(architecture()) if text in packages]
    assert found == packages
    assert (
        "clocks, workqueue, backoff, metrics, atomic files: nothing specific to Kubernetes"
        in texts(architecture())
    )


def test_the_funnel_is_the_answer_of_the_readme() -> None:
    shown = texts(funnel())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = re.findall(r"devices: (.*)$", readme, re.MULTILINE)
    assert len(told) == 2
    for heading, stages in zip(
        ("request gpus: 3 wanted", "request nic: 1 wanted"), told, strict=True
    ):
        start = shown.index(heading) + 1
        drawn = shown[start : start + 2 * len(STAGES)]
        counts = dict(zip(drawn[1::2], drawn[0::2], strict=True))
        for stage in stages.split(" → "):
            count, _, name = stage.partition(" ")
            (label,) = (label for _, label in STAGES if label.endswith(name))
            assert counts[label] == count, stage
    (answer,) = (text for text in shown if text.startswith("Answer: "))
    assert answer.startswith("Answer: request gpus wants 3 devices")


def test_the_life_of_a_claim_has_all_steps_in_order() -> None:
    names = [step.name for step in STEPS]
    assert [text for text in texts(claim_life()) if text in names] == names
