"""A recording of a terminal as one animated SVG: commands are run, typed, and their output shown.

The commands run when the picture is drawn, so a picture that is out of date is noticed like any
other generated file. It plays three times. Without animation, or with less motion preferred, it
shows one of its scenes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import chdir
from typing import NamedTuple

from click.testing import CliRunner

from moorage.cli.main import moor
from moorage.insight.topology.elements import FONTS, escaped, rectangle, stylesheet
from reference.diagrams import ROOT

# What a README shows: 830 pixels. In the widest of the fonts, a line of 94 letters fits into them.
WIDTH, COLUMNS, FONT_SIZE, LINE, MARGIN = 830, 94, 14, 21, 20
TYPED_S, THOUGHT_S, READ_S_PER_LINE, READ_S = 0.045, 0.5, 0.55, 2.0
PLAYED = 3
COMMANDS = (
    "moor plan -f examples/training --profile dgx-h100",
    "moor explain pod/training-1 -f examples/training --profile dgx-h100 | head -n 4",
    "moor fit deployment/training -f examples/training --profile dgx-h100x4 | head -n 5",
)
STILL = 1  # the scene that is shown where nothing moves
_HEAD = re.compile(r"^moor (?P<arguments>.*?)(?: \| head -n (?P<lines>\d+))?$")


class Scene(NamedTuple):
    """A command and the lines that it prints, as wide as the terminal."""

    command: str
    lines: Sequence[str]

    @property
    def typed_s(self) -> float:
        """How long it takes to type the command."""
        return len(self.command) * TYPED_S + THOUGHT_S

    @property
    def duration_s(self) -> float:
        """How long the scene is shown."""
        return self.typed_s + READ_S + len(self.lines) * READ_S_PER_LINE


def recording() -> str:
    """Return the recording of all commands."""
    scenes = [_scene(command) for command in COMMANDS]
    whole_s = sum(scene.duration_s for scene in scenes)
    height = 2 * MARGIN + LINE * (1 + max(len(scene.lines) for scene in scenes))
    parts: list[str] = []
    styles: list[str] = []
    start_s = 0.0
    for number, scene in enumerate(scenes):
        parts.append(_drawn(number, scene))
        styles += _moves(number, scene, start_s, whole_s)
        start_s += scene.duration_s
    title = "A terminal: where pods of an example go, why one waits, and how many fit"
    told = "\n\n".join("\n".join([f"$ {each.command}", *each.lines]) for each in scenes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-labelledby="title text"><title id="title">{title}'
        f'</title><desc id="text">{escaped(told)}</desc><style>{stylesheet()}'
        f".line{{font:{FONT_SIZE}px {FONTS};white-space:pre}}.scene{{opacity:0}}"
        f".scene{STILL}{{opacity:1}}{''.join(styles)}"
        "@media (prefers-reduced-motion:reduce){.scene,.scene *{animation:none!important}}"
        f"</style>{rectangle(0, 0, WIDTH, height, 'machine', 10)}{''.join(parts)}</svg>\n"
    )


def _scene(command: str) -> Scene:
    """Run a command and return what it prints."""
    found = _HEAD.fullmatch(command)
    assert found is not None, command
    with chdir(ROOT):
        done = CliRunner().invoke(moor, found["arguments"].split())
    lines = done.stdout.splitlines()[: int(found["lines"] or 0) or None]
    wrapped = (textwrap.wrap(line, COLUMNS) or [""] for line in lines)
    return Scene(command, [each for parts in wrapped for each in parts])


def _drawn(number: int, scene: Scene) -> str:
    """Return a scene as SVG; each word of its command appears by itself."""
    typed = "".join(
        f'<tspan class="strong bold w{number}-{place}">{escaped(word)} </tspan>'
        for place, word in enumerate(scene.command.split())
    )
    rows = [f'<tspan class="muted">$ </tspan>{typed}']
    shown = [f'<tspan class="text">{escaped(line)}</tspan>' for line in scene.lines]
    start = f'<text class="line" xml:space="preserve" x="{MARGIN}" y='
    head, *below = (
        f'{start}"{MARGIN + FONT_SIZE + row * LINE}">{text}</text>'
        for row, text in enumerate([*rows, *shown])
    )
    printed = f'<g class="printed{number}">{"".join(below)}</g>'
    return f'<g class="scene scene{number}">{head}{printed}</g>'


def _moves(number: int, scene: Scene, start_s: float, whole_s: float) -> Iterator[str]:
    """Yield the styles that make a scene appear, be typed, print, and go."""
    end_s = start_s + scene.duration_s
    yield _shown_from(f"scene{number}", start_s, end_s, whole_s)
    letters = 0
    for place, word in enumerate(scene.command.split()):
        letters += len(word) + 1
        yield _shown_from(f"w{number}-{place}", start_s + letters * TYPED_S, end_s, whole_s)
    yield _shown_from(f"printed{number}", start_s + scene.typed_s, end_s, whole_s)


def _shown_from(name: str, start_s: float, end_s: float, whole_s: float) -> str:
    """Return the style of what is shown from one moment to another of each round."""
    start, end = (round(100 * moment / whole_s, 2) for moment in (start_s, end_s))
    before = f"0%{{opacity:0}}{start}%" if start else "0%"
    after = f"{end}%{{opacity:0}}" if end < 100 else ""
    return (
        f"@keyframes {name}{{{before}{{opacity:1}}{after}}}"
        f".{name}{{animation:{name} {whole_s:.2f}s step-end {PLAYED}}}"
    )
