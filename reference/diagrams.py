"""Drawings generated from code and answers: the layers of the packages, the funnel of an
explanation, the plan of the example, and the life of a claim.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from click.testing import CliRunner

from moorage.cli.main import moor
from moorage.insight.topology.elements import rectangle, words
from reference.drawing import LINE_HEIGHT, PADDING, TITLE_HEIGHT, Box, arrow, canvas

ROOT = Path(__file__).parents[1]
WIDTH = 960
INNER = WIDTH - 2 * PADDING

# --- architecture -------------------------------------------------------------------------

LAYERS = "Lower packages never import upper ones"
GAP = 8
# The colours of boxes: what packages are for, and which. All others are foundations.
COLOURS = {
    "c6": ("what people run", {"cli", "library", "testing", "cluster", "web"}),
    "c2": (
        "decides and answers",
        {"insight", "allocator", "claims", "cel", "scheduler"},
    ),
    "c4": ("keeps a cluster going", {"controllers", "apiserver", "node", "client", "store"}),
    "c1": ("hardware and drivers", {"driver", "drivers", "hardware"}),
}
FOUNDATION = "blocked"
_PACKAGE = re.compile(r"^(\w+)/ +(.+)$", re.MULTILINE)


def architecture() -> str:
    """Return the packages in their layers, as import-linter enforces them."""
    meanings = dict(_PACKAGE.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    parts, y = [], TITLE_HEIGHT
    for layer in _layers():
        height = 34 if len(layer) == 1 else 84
        width = (INNER - GAP * (len(layer) - 1)) // len(layer)
        for number, package in enumerate(layer):
            x = PADDING + number * (width + GAP)
            parts.append(_package(x, y, width, height, package, meanings.get(package, "")))
        y += height + GAP
    text = "Packages from top to bottom; each imports only packages below it: "
    text += "; ".join(", ".join(layer) for layer in _layers())
    title = "The packages of Moorage: upper ones import lower ones, never the reverse"
    return canvas(title, text, WIDTH, y + PADDING + 14, [*parts, _legend(y + GAP)])


def _legend(y: int) -> str:
    entries = [*((look, text) for look, (text, _) in COLOURS.items()), (FOUNDATION, "foundation")]
    step = INNER // len(entries)
    return "".join(
        rectangle(PADDING + number * step, y, 14, 14, look, 3)
        + words(PADDING + number * step + 22, y + 11, text, "own text")
        for number, (look, text) in enumerate(entries)
    )


def _layers() -> list[list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == LAYERS
    )
    return [layer.split(" | ") for layer in layers]


def _package(x: int, y: int, width: int, height: int, package: str, meaning: str) -> str:
    looks = (look for look, (_, names) in COLOURS.items() if package in names)
    look = next(looks, FOUNDATION)
    plain = meaning.replace("`", "").removesuffix(" (pure)")
    if width == INNER:
        ink = "on" if look.startswith("c") else "text"
        box = Box(x, y, width, height, look, package).drawn
        return box + words(x + 130, y + 21, plain, f"own {ink}")
    short = re.split(r"[:;]|, and ", plain)[0]
    lines = textwrap.wrap(short, width // 6 - 4)[:4]
    return Box(x, y, width, height, look, package, lines).drawn


# --- the funnel ---------------------------------------------------------------------------

QUESTION = "explain pod/training-1 -f examples/training --profile dgx-h100 -o json"
STAGES = (
    ("inFleet", "in the fleet"),
    ("onNode", "on the node"),
    ("ofClass", "of the class"),
    ("selected", "selected by expressions"),
    ("free", "free"),
    ("tolerated", "without taints that are not tolerated"),
    ("fitting", "with enough capacity"),
    ("together", "that satisfy the constraints together"),
)
ALWAYS = ("inFleet", "onNode", "together")
# As wide as a README is shown, so that letters are as large there as in the text.
FUNNEL_WIDTH, BAR_WIDTH, BAR_HEIGHT, BAR_STEP = 830, 400, 24, 32


def funnel() -> str:
    """Return what becomes of the devices for a pending pod: the answer of `moor explain`.

    As there, steps that take no device away are left out.
    """
    arguments = [
        str(ROOT / part) if part.startswith("examples/") else part for part in QUESTION.split()
    ]
    answer = json.loads(CliRunner().invoke(moor, arguments).stdout)["pending"][0]
    (verdict,) = answer["verdicts"]
    parts: list[str] = []
    y = TITLE_HEIGHT + 6
    told = []
    for request in verdict["diagnosis"]["requests"]:
        heading = f"request {request['request']}: {request['wanted']} wanted"
        counts = [(request[key], label) for key, label in _steps(request)]
        parts.append(words(PADDING, y + 14, heading, "text bold s14"))
        y += 28
        for count, label in counts:
            parts.append(_bar(y, count, request["inFleet"], label))
            y += BAR_STEP
        told.append(f"{heading}; " + ", ".join(f"{count} {label}" for count, label in counts))
        y += 12
    for line in textwrap.wrap(f"Answer: {answer['cause']}", 100):
        parts.append(words(PADDING, y + 12, line, "own strong s14"))
        y += LINE_HEIGHT + 5
    title = (
        f"Why {answer['title']} gets no node: what becomes of the devices of {verdict['nodes'][0]}"
    )
    return canvas(title, ". ".join(told), FUNNEL_WIDTH, y + PADDING, parts)


def _steps(request: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the steps of a request that take devices away, and those that are always shown."""
    before = 0
    for key, label in STAGES:
        if key in ALWAYS or request[key] != before:
            yield key, label
        before = request[key]


def _bar(y: int, count: int, whole: int, label: str) -> str:
    width = round(count / whole * BAR_WIDTH)
    bar = rectangle(PADDING, y, BAR_WIDTH, BAR_HEIGHT, "track", 3)
    if count:
        bar += rectangle(PADDING, y, width, BAR_HEIGHT, "c0", 3)
    look = "alarm bold s14" if count == 0 else "text bold s14"
    right = PADDING + BAR_WIDTH + 40
    number = words(right, y + 17, str(count), f"{look} last")
    return bar + number + words(right + 12, y + 17, label, "own text s14")


# --- the plan -----------------------------------------------------------------------------


def plan_picture() -> str:
    """Return the picture of the example's plan, as `moor plan --picture` draws it."""
    with TemporaryDirectory() as folder, chdir(ROOT):
        path = Path(folder) / "plan.svg"
        plan = ["plan", "-f", "examples/training", "--profile", "dgx-h100", "--picture", str(path)]
        CliRunner().invoke(moor, plan)
        return path.read_text(encoding="utf-8")


# --- the life of a claim ------------------------------------------------------------------


class Step(NamedTuple):
    """A step in the life of a claim: the actor, and the state of the claim afterwards."""

    name: str
    actor: str
    lines: tuple[str, ...]


STEPS = (
    Step(
        "created",
        "resourceclaim controller",
        ("from the pod's", "ResourceClaimTemplate,", "or by a user"),
    ),
    Step(
        "allocated",
        "scheduler",
        ("status.allocation names", "devices and their node;", "a finalizer holds them"),
    ),
    Step(
        "reserved", "scheduler", ("status.reservedFor", "names the pod;", "then the pod is bound")
    ),
    Step(
        "prepared",
        "node agent, driver",
        ("NodePrepareResources,", "CDI devices into", "the containers"),
    ),
    Step("in use", "pod", ("up to 256 pods share it;", "status.devices may", "report its health")),
    Step(
        "unprepared",
        "node agent, driver",
        ("NodeUnprepareResources", "after the last pod", "here has ended"),
    ),
    Step(
        "deallocated",
        "resourceclaim controller",
        ("pods leave reservedFor;", "no allocation and no", "finalizer: devices free"),
    ),
    Step(
        "deleted",
        "garbage collector",
        ("with its pod, if a", "template made it; else", "it can be used again"),
    ),
)
PER_ROW = 4
BOX_WIDTH, BOX_HEIGHT, BOX_GAP, ROW_GAP = 204, 112, 32, 48


def claim_life() -> str:
    """Return the life of a ResourceClaim from creation to deletion."""
    boxes = [_step(number, step) for number, step in enumerate(STEPS)]
    arrows = [_arrow(boxes[number], boxes[number + 1]) for number in range(len(boxes) - 1)]
    # A claim that was not created from a template remains for the next pod.
    back = boxes[STEPS.index(next(step for step in STEPS if step.name == "deallocated"))]
    target = boxes[1]
    side = back.x + BOX_WIDTH // 2 - 40
    arrows.append(arrow((side, back.y), (side, target.y + BOX_HEIGHT + 2)))
    note = words(side + 10, back.y - 18, "for the next pod", "own text s10")
    text = "; ".join(f"{step.name} by {step.actor}: {' '.join(step.lines)}" for step in STEPS)
    height = TITLE_HEIGHT + 2 * BOX_HEIGHT + ROW_GAP + PADDING
    parts = [*(box.drawn for box in boxes), *arrows, note]
    return canvas("The life of a ResourceClaim", text, WIDTH, height, parts)


def _step(number: int, step: Step) -> Box:
    """Return the box of a step; the second row runs from right to left."""
    row, column = divmod(number, PER_ROW)
    if row % 2:
        column = PER_ROW - 1 - column
    x = PADDING + column * (BOX_WIDTH + BOX_GAP)
    y = TITLE_HEIGHT + row * (BOX_HEIGHT + ROW_GAP)
    looks = {"scheduler": "c2", "resourceclaim controller": "c4", "garbage collector": "c4"}
    look = looks.get(step.actor, "c1" if "driver" in step.actor else "c6")
    return Box(x, y, BOX_WIDTH, BOX_HEIGHT, look, step.name, (step.actor, "", *step.lines))


def _arrow(start: Box, end: Box) -> str:
    if start.y != end.y:
        x = start.x + BOX_WIDTH // 2
        return arrow((x, start.y + BOX_HEIGHT), (x, end.y - 2))
    y = start.y + BOX_HEIGHT // 2
    if start.x < end.x:
        return arrow((start.x + BOX_WIDTH, y), (end.x - 2, y))
    return arrow((start.x, y), (end.x + BOX_WIDTH + 2, y))
