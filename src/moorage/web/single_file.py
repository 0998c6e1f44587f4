"""The page as one file with its data: it fetches nothing, and shows one moment.

Its content security policy allows its script and its style by their hashes, and no connections. The
file contains explanations of some pending pods; features that need a server say so.
"""

from __future__ import annotations

import gzip
import html
import re
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from moorage import __version__
from moorage.insight.plan.planner import Plan, Progress, unwatched
from moorage.insight.plan.refused import with_unscheduled
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from moorage.web.bundle import bundled
from moorage.web.causes import AnsweredPods, find_answers, first_causes
from moorage.web.fleet import fleet_tree
from moorage.web.owner_rows import PodKey
from moorage.web.pending import Cause
from moorage.web.questions.explain import answer_tree
from moorage.web.questions.kept_cluster import KeptCluster
from moorage.web.questions.moment import ShownMoment, bounded_plan
from moorage.web.scene import Scene
from moorage.web.static_files import INDEX, static_files

EXPLAINED_MAX: Final = 100
EXPLAINED_S: Final = 10.0
EXPLAINED_BYTES: Final = 4 * 1024 * 1024
PACKED_FROM_BYTES: Final = 32 * 1024
ENTRY: Final = "main.js"
_STYLE: Final = re.compile(r'<link rel="stylesheet" href="static/([^"]+)" ?/?>')
_PRELOAD: Final = re.compile(r'[ \t]*<link rel="modulepreload"[^>]*>\n')
_SCRIPT: Final = re.compile(r'<script type="module" src="static/[^"]+"></script>')
_TITLE: Final = re.compile(r"<title>[^<]*</title>")


Stages = Callable[[str], Progress]  # what is done now, in words


def unstaged(_: str) -> Progress:
    """Report progress to nobody."""
    return unwatched


def single_page(
    snapshot: Snapshot,
    context: Context,
    *,
    title: str,
    plan: Plan | None = None,
    stages: Stages = unstaged,
) -> str:
    """Return the page of a snapshot; with a plan, it explains pending pods."""
    if plan is None:
        plan = with_unscheduled(bounded_plan(snapshot, context, stages("pods planned")))
        snapshot = plan.before
    stages("reading the states of devices")(0, 0)
    scene = Scene(context, snapshot.objects(), snapshot.unread)
    causes, answered = _explained(plan, context, stages("pods explained"))
    scene.explain(causes)
    fleet = scene.fleet(1, str(context.now))
    rows = scene.rows
    moment = ShownMoment(
        snapshot, fleet, tuple(rows.usages), rows.device_rows, context, scene.copy, KeptCluster()
    )
    session = {
        "user": "",
        "title": title,
        "source": "snapshot",
        "live": False,
        "history": False,
        "readOnly": True,
        "version": __version__,
        "profiles": [],
        "forbidden": snapshot.unread.resources,
        "whatIf": False,
        "now": str(context.now),
    }
    answers = _answers(moment, scene, answered, stages("explanations written"))
    return page_with({"session": session, "fleet": fleet_tree(fleet), "explain": answers}, title)


def _explained(
    plan: Plan, context: Context, progress: Progress
) -> tuple[dict[PodKey, Cause], dict[PodKey, AnsweredPods]]:
    """Return the causes of all pending pods, and answers: for each cause, and for some more pods.

    Each pod is looked at once.
    """
    causes, total, done = first_causes(plan), len(plan.pending), 0
    answered: dict[PodKey, AnsweredPods] = {}
    seen: set[str] = set()
    for each in find_answers(plan, context):
        done += len(each.pods)
        progress(done, total)
        causes |= each.causes
        if each.answer.cause not in seen or len(answered) < EXPLAINED_MAX:
            seen.add(each.answer.cause)
            answered |= dict.fromkeys(list(each.causes)[:EXPLAINED_MAX], each)
    return causes, answered


def _answers(
    moment: ShownMoment,
    scene: Scene,
    answered: Mapping[PodKey, AnsweredPods],
    progress: Progress,
) -> dict[str, Any]:
    """Return explanations of pending pods, the first ones of each group first."""
    found: dict[str, Any] = {}
    trees: dict[int, Any] = {}
    size, end_s = 0, time.monotonic() + EXPLAINED_S
    first = {row: place for place, row in enumerate(each.first for each in moment.fleet.groups)}
    pods = sorted(
        scene.pending,
        key=lambda pod: (
            first.get(scene.pod_row(pod), len(first)),
            pod.metadata.namespace,
            pod.metadata.name,
        ),
    )
    keys = [(pod.metadata.namespace, pod.metadata.name) for pod in pods]
    chosen = [key for key in keys if key in answered][:EXPLAINED_MAX]
    for done, key in enumerate(chosen):
        progress(done, len(chosen))
        if time.monotonic() > end_s:
            break
        each = answered[key]
        if id(each) not in trees:
            trees[id(each)] = answer_tree(moment, each.explanation, each.answer)
        size += len(msgspec.json.encode(trees[id(each)]))
        if size > EXPLAINED_BYTES:
            break
        found["/".join(key)] = trees[id(each)]
    return found


def page_with(data: Mapping[str, Any], title: str) -> str:
    """Return the page with data in it."""
    files = {name: file.body.decode() for name, file in static_files().items()}
    page = _PRELOAD.sub("", files[INDEX])
    sheet = _STYLE.search(page)
    assert sheet is not None
    style = files[sheet[1]]
    scripts = {name: text for name, text in files.items() if name.endswith(".js")}
    script = bundled(scripts, ENTRY).replace("</script", "<\\/script")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    inlined = f'<script type="application/json" id="moor-data">{_json(data)}</script>'
    page = _STYLE.sub(lambda _: f"<style>{style}</style>", page, count=1)
    page = _SCRIPT.sub("", page)
    page = _TITLE.sub(lambda _: f"<title>{html.escape(title)} – Moorage</title>", page)
    page = page.replace('<meta charset="utf-8" />', f'<meta charset="utf-8" />\n    {meta}', 1)
    body = f'{inlined}\n<script type="module">{script}</script>\n'
    before, end, after = page.rpartition("</body>")
    return f"{before}{body}{end}{after}"


def _json(data: Mapping[str, Any]) -> str:
    """Return data as JSON that is safe within HTML, compressed if it is large."""
    text = msgspec.json.encode(data)
    if len(text) >= PACKED_FROM_BYTES:
        packed = b64encode(gzip.compress(text, 9, mtime=0)).decode()
        return f'{{"gzip":"{packed}"}}'
    return text.decode().replace("<", "\\u003c")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
