"""Asks commands, the library and the page about a world, as users do; each question once.

Commands run in this process and print JSON. The page is the one that `moor snapshot --html`
writes, or the fleet that `moor ui` shows.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from click.testing import CliRunner

import moorage
from moorage.cli import main
from moorage.cli.cluster_options import ClusterInput, read_cluster
from moorage.cli.ui import static_feed
from moorage.insight.devices import DeviceState
from moorage.sources.cluster_sources import FileSource
from moorage.validation.strategy import Context
from moorage.web.columns import decode
from moorage.web.device_rows import STATES
from moorage.web.feed import Feed
from moorage.web.fleet import TABLES, fleet_tree
from moorage.web.scene import Scene
from soak._agreement.fleet import Tree
from soak._agreement.worlds import CONTEXT, NAMESPACE, NOW, World

DeviceKey = tuple[str, str, str]  # driver, pool, device
Name = tuple[str, str]  # namespace, name
_DATA: Final = re.compile(r'<script type="application/json" id="moor-data">(.*?)</script>', re.S)
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.M)
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
WORDS: Final = {number: str(state) for state, number in STATES.items()}
NODE_WORDS: Final = ("ready", "not ready", "cordoned", "unknown")


class BrokenLawError(AssertionError):
    """Two answers contradict each other; `kind` names the law."""

    def __init__(self, law: str, text: str) -> None:
        super().__init__(text)
        self.kind = law


class Answer(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    text: str
    errors: str

    @property
    def tree(self) -> Any:
        """The JSON that was printed."""
        return json.loads(self.text)


class PageDevice(NamedTuple):
    """A device of the page."""

    state: str
    node: str
    claims: int


class PagePod(NamedTuple):
    """A pod of the page."""

    node: str
    state: int
    cause: str | None  # of a pod that waits


class PageFacts(NamedTuple):
    """What the page shows."""

    nodes: dict[str, str]
    devices: dict[DeviceKey, PageDevice]
    holdings: frozenset[tuple[DeviceKey, Name]]
    claims: frozenset[Name]
    pods: dict[Name, PagePod]
    groups: dict[str, int]  # number of pods by cause
    explained: Mapping[str, Any]  # by namespace/name


class Doors:
    """The answers about one world, whose files are in a folder."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.cluster = self.write_cluster("cluster.json", world.cluster)
        self.manifests = self.write_manifests("manifests.yaml", world.manifests)
        self._answers: dict[tuple[str, ...], Answer] = {}

    # --- files --------------------------------------------------------------------------------

    def write_cluster(self, name: str, trees: Iterable[Tree]) -> str:
        """Write objects as `kubectl get -o json` does; return the name of the file."""
        path = self.folder / name
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(trees)})
        path.write_text(text, encoding="utf-8")
        return str(path)

    def write_manifests(self, name: str, trees: Iterable[Tree]) -> str:
        """Write manifests as people do; return the name of the file."""
        path = self.folder / name
        path.write_text(yaml.dump_all(trees, Dumper=yaml.CSafeDumper), encoding="utf-8")
        return str(path)

    # --- commands -----------------------------------------------------------------------------

    def ask(self, *arguments: str) -> Answer:
        """Return the answer of a command about cluster and manifests, as JSON."""
        return self.asked(*arguments, "-o", "json", "--on", self.cluster, "-f", self.manifests)

    def asked(self, *arguments: str) -> Answer:
        """Return the answer of a command with all its arguments."""
        if arguments not in self._answers:
            self._answers[arguments] = _run(arguments)
        return self._answers[arguments]

    @property
    def plan(self) -> Answer:
        """Where the pods of the manifests go."""
        return self.ask("plan", "-n", NAMESPACE)

    @property
    def whole_plan(self) -> Answer:
        """Where all pods go."""
        return self.ask("plan", "--all", "-n", NAMESPACE)

    @property
    def explanation(self) -> Answer:
        """Why the pods of the manifests get no node."""
        return self.ask("explain", "-n", NAMESPACE)

    @property
    def devices(self) -> list[Tree]:
        """All devices."""
        found: list[Tree] = self.ask("devices").tree["devices"]
        return found

    @property
    def claims(self) -> list[Tree]:
        """All claims."""
        found: list[Tree] = self.ask("claims", "-A").tree["claims"]
        return found

    @cached_property
    def metrics(self) -> dict[str, Counter[tuple[tuple[str, str], ...]]]:
        """All samples, by the name of their metric and their labels."""
        text = self.asked("metrics", "--on", self.cluster, "-f", self.manifests).text
        found: dict[str, Counter[tuple[tuple[str, str], ...]]] = {}
        for name, labels, value in _SAMPLE.findall(text):
            key = tuple(sorted(_LABEL.findall(labels)))
            found.setdefault(name, Counter())[key] += int(float(value))
        return found

    # --- the page and the library -------------------------------------------------------------

    @cached_property
    def recorded_page(self) -> PageFacts:
        """The page that `moor snapshot --html` writes."""
        page = self.folder / "page.html"
        named = ("--on", self.cluster, "-f", self.manifests)
        self.asked("snapshot", "--html", str(page), *named)
        found = _DATA.search(page.read_text(encoding="utf-8"))
        assert found is not None
        data = json.loads(found[1])
        if "gzip" in data:
            data = json.loads(gzip.decompress(base64.b64decode(data["gzip"])))
        return page_facts(data["fleet"], data["explain"])

    @cached_property
    def given(self) -> ClusterInput:
        """Cluster and manifests as commands read them."""
        return read_cluster(
            cluster=[FileSource((self.cluster,), False, CONTEXT.yaml_schema)],
            manifests=[FileSource((self.manifests,), False, CONTEXT.yaml_schema)],
            context=CONTEXT,
            namespace=NAMESPACE,
        )

    @cached_property
    def _feed(self) -> Feed:
        return static_feed(self.given, "world", "files", is_plan=True)

    @property
    def planned_objects(self) -> list[Any]:
        """All objects once the plan has happened, as `moor ui` shows them."""
        return list(self._feed.objects.values())

    @cached_property
    def shown_page(self) -> PageFacts:
        """The fleet that `moor ui` shows: with manifests, as planned."""
        return _facts_of(self._feed, CONTEXT)

    @cached_property
    def library(self) -> moorage.World:
        """The world of the library."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", moorage.MoorageWarning)
            return moorage.load(
                self.manifests,
                on=self.cluster,
                namespace=NAMESPACE,
                now=datetime.fromisoformat(NOW),
            )


def _run(arguments: Sequence[str]) -> Answer:
    """Return the answer of a command; raise if it ends with anything but an answer."""
    shown = " ".join(arguments)
    result = CliRunner().invoke(main.moor, [*arguments, "--now", NOW])
    if result.exc_info is not None and not isinstance(result.exception, SystemExit | type(None)):
        story = "".join(traceback.format_exception(*result.exc_info, limit=-4))
        raise BrokenLawError("nothing raises", f"{shown}\n{story}")
    if result.exit_code not in (0, 1):
        text = f"{shown}: exit status {result.exit_code}: {result.stderr}"
        raise BrokenLawError("nothing raises", text)
    return Answer(result.exit_code, result.stdout, result.stderr)


def _facts_of(feed: Any, context: Context) -> PageFacts:
    scene = Scene(context, feed.objects.values())
    scene.explain(feed.causes)
    fleet = fleet_tree(scene.fleet(1, NOW))
    return page_facts({**fleet, "groups": [_group(each) for each in fleet["groups"]]}, {})


def _group(group: Any) -> Tree:
    return {"cause": group.cause, "count": group.count}


def page_facts(fleet: Tree, explained: Mapping[str, Any]) -> PageFacts:
    """Return what the tables of a page say."""
    strings = fleet["strings"]
    rows = {name: _rows(fleet[name]) for name in TABLES}
    nodes = [strings[each["name"]] for each in rows["nodes"]]
    devices = [
        (strings[each["driver"]], strings[each["pool"]], strings[each["name"]])
        for each in rows["devices"]
    ]
    claims = [(strings[each["namespace"]], strings[each["name"]]) for each in rows["claims"]]
    causes = [each["cause"] for each in fleet["groups"]]
    return PageFacts(
        nodes={
            name: NODE_WORDS[row["state"]] for name, row in zip(nodes, rows["nodes"], strict=True)
        },
        devices={
            key: PageDevice(
                WORDS[row["state"]], nodes[row["node"]] if row["node"] >= 0 else "", row["claims"]
            )
            for key, row in zip(devices, rows["devices"], strict=True)
        },
        holdings=frozenset(
            (devices[row["device"]], claims[row["claim"]])
            for row in rows["holdings"]
            if row["device"] >= 0
        ),
        claims=frozenset(name for name in claims if name[1]),
        pods={
            (strings[row["namespace"]], strings[row["name"]]): PagePod(
                nodes[row["node"]] if row["node"] >= 0 else "",
                row["state"],
                causes[row["group"]] if row["group"] >= 0 else None,
            )
            for row in rows["pods"]
            if strings[row["name"]]
        },
        groups={each["cause"]: each["count"] for each in fleet["groups"]},
        explained=explained,
    )


def _rows(table: Mapping[str, Any]) -> list[dict[str, int]]:
    columns = {name: decode(values) for name, values in table.items()}
    count = len(next(iter(columns.values()), ()))
    return [{name: values[row] for name, values in columns.items()} for row in range(count)]


def state_of(device: Tree) -> str:
    """Return the state of a device of `moor devices -o json`."""
    return str(DeviceState(device["state"]))
