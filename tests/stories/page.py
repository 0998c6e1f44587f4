"""Write the page of the stories: `python -m tests.stories.page`, or `--check` it.

The outcomes are those of `outcome.toml`, to which the tests hold a plan and a live cluster; the
names of the live tests describe what happens afterwards.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests.stories.scenes import Played, Scene, Told, all_scenes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "stories.md"
HISTORIES = {
    "The concept page, live": "test_live_concept_page.py",
    "KEP-5004, live": "test_live_extended_resources.py",
    "Features that are switched, live": "test_live_gates.py",
    "What is counted, live": "test_live_metrics.py",
    "The examples of the seeds, live": "test_live_seeds.py",
}
INTRODUCTION = """\
<!-- Made by `python3 dev.py docs`; do not edit. -->

# The stories and what they come to

The five documents that Moorage is made from tell stories. Each is a folder of
[examples/stories](../../examples/stories/README.md) with manifests; those of the documents
themselves come from [examples/seeds](../../examples/seeds/README.md), as they are written. For
every scene below the tests apply the manifests to a cluster within the process (server,
controllers, scheduler) and make a plan of the same files with `moor plan`, and both must come to
the outcome that is told here. A device with an amount behind it is a share. Where pods are
evicted for others, both also come to what is told of the time when these have left.
"""


def page() -> str:
    """Return the text of the page."""
    scenes = sorted(all_scenes(), key=lambda told: (_ORDER.index(told.document), told.name))
    lines = [INTRODUCTION]
    for document, found in groupby(scenes, key=lambda told: told.document):
        lines += [f"## {document[0].upper()}{document[1:]}\n"]
        lines += ["| story | scene | outcome |", "| --- | --- | --- |"]
        lines += [*map(_row, found), ""]
    lines.append("## What happens then\n")
    lines.append("Live only: pods end, drivers report, rules come and go, clusters start again.\n")
    for title, file in HISTORIES.items():
        lines += [f"### {title}\n", *(f"- {each}" for each in _sentences(file)), ""]
    return "\n".join(lines)


_ORDER = [
    "KEP-6080 derived attributes",
    "KEP-5491 list attributes",
    "concept page",
    "groups of pods",
    "KEP-6072 numaNode",
    "KEP-5004 extended resources",
]


def _row(told: Told) -> str:
    folder = f"[{told.name}](../../examples/stories/{told.name})"
    scene = told.scene
    outcome = f"refused: {scene.refused}" if scene.refused else "<br>".join(_outcome(scene))
    cells = (folder, scene.title, outcome)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _outcome(scene: Scene) -> Iterator[str]:
    return lines_of(scene.pods, scene.preempted, scene.then)


def lines_of(
    pods: Iterable[Played], preempted: Iterable[str], then: Iterable[Played]
) -> Iterator[str]:
    """Yield what became of pods, who was evicted for them, and what became of them then."""
    yield from map(shown, pods)
    if preempted:
        yield f"evicted: {', '.join(f'`{name}`' for name in preempted)}"
        yield from (f"then {shown(each)}" for each in then)


def shown(played: Played) -> str:
    """Return what became of a pod, in a line."""
    times = f" ({played.times} times)" if played.times > 1 else ""
    if played.quiet:
        return f"`{played.pod}`{times}: no node, without a word"
    if not played.node:
        return f"`{played.pod}`{times}: no node: {played.pending}"
    devices = "; ".join(f"{request}: {names}" for request, names in played.devices.items())
    return f"`{played.pod}`{times}: {played.node}" + (f", {devices}" if devices else "")


def _sentences(file: str) -> Iterator[str]:
    """Yield the names of a file's tests as sentences."""
    tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_").replace("_", " ")


def main(arguments: list[str]) -> int:
    """Write the page, or say that it is stale."""
    text = page()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.relative_to(ROOT)} is stale: python3 dev.py docs writes it")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
