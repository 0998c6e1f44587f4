"""Rules, alerts and the Grafana board: every name in them is the exporter's, and all have answers.

A real Prometheus scrapes what the exporter shows of a cluster in which something of everything
happens, and answers each query of the board.
"""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import dev
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.client.informer_factory import InformerFactory
from moorage.cluster.metrics_exporter import exporter_families
from moorage.cluster.snapshot_passes import SnapshotPasses
from moorage.insight.answer.cause_kinds import CauseKind
from moorage.insight.devices import ClaimState, DeviceState
from moorage.insight.monitor import Monitor, MonitorFamilies
from moorage.insight.monitor.figures import FITS_NOW
from moorage.kit.clock import REAL
from moorage.kit.metrics import OPENMETRICS, Family, openmetrics_exposition
from moorage.validation.strategy import Context
from tests.deploy.manifests import ROOT
from tests.insight.monitor.clusters import busy_cluster

RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
BOARD = ROOT / "deploy" / "grafana" / "moorage.json"
NOBODY: Any = None
WAIT_S = 60.0
# Values of labels that Moorage sets.
STATES = {str(each) for kind in (DeviceState, ClaimState) for each in kind}
VALUES = {"state": STATES, "cause": {FITS_NOW, *map(str, CauseKind)}}
LABELS = ("driver", "state", "device_class", "shape", "request", "cause")
OF_SCRAPES = {"instance", "job", "le"}

_NAME = re.compile(r"\b(?:\w+:)?moorage_\w+(?::\w+)?\b")
_MATCHERS = re.compile(r"\{(.*?)\}", re.DOTALL)
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"(.*?)"')
_LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\((.*?)\)")
_SHOWN = re.compile(r"\{\{\s*(\w+)\s*\}\}|\$labels\.(\w+)")


class Query(NamedTuple):
    """A query, where it is, and what is shown of its result."""

    place: str
    expression: str
    shown: str = ""


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def board_queries() -> list[Query]:
    board = json.loads(BOARD.read_text())
    return [
        Query(panel["title"], target["expr"].replace("$driver", ".*"), target["legendFormat"])
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]


def rule_queries() -> list[Query]:
    return [
        Query(
            rule.get("record") or rule["alert"],
            rule["expr"],
            " ".join(rule.get("annotations", {}).values()),
        )
        for rule in rules()
    ]


@cache
def families() -> list[Family]:
    """Return what the exporter shows of a cluster with something of everything."""
    now = REAL.now()
    context = Context(gates=Gates.parse(), now=Timestamp(now))
    figures = Monitor(context, claims_max=100).figures_of(busy_cluster(now), context)
    around = InformerFactory(NOBODY, random=lambda: 0.0)
    passes: Any = SnapshotPasses("metrics", around, NOBODY, NOBODY, gates=Gates.parse(), clock=REAL)
    passes.finished, passes.passes, passes.took_s = now - timedelta(seconds=5), 7, 0.1
    shown = MonitorFamilies(lambda: figures, REAL.now).families()
    return [*shown, *exporter_families(passes)]


@pytest.mark.parametrize("query", [*board_queries(), *rule_queries()], ids=lambda q: q.place)
def test_names_and_labels_of_a_query_are_the_exporters(query: Query) -> None:
    labels = {family.name: set(family.labels) for family in families()}
    for rule in rules():
        if "record" in rule:
            labels[rule["record"]] = {label for known in list(labels.values()) for label in known}
    names = set(_NAME.findall(query.expression))
    assert names
    assert names <= labels.keys()
    known = OF_SCRAPES.union(*(labels[name] for name in names))
    asked = {label for found in _LISTS.findall(query.expression) for label in found.split(",")}
    matched = [m for text in _MATCHERS.findall(query.expression) for m in _MATCHER.findall(text)]
    shown = {first or second for first, second in _SHOWN.findall(query.shown)}
    used = {label.strip() for label in asked} | {label for label, *_ in matched} | shown
    assert used - {""} <= known
    for label, sign, value in matched:
        for each in value.split("|") if label in VALUES and sign in ("=", "=~", "!=") else ():
            assert any(re.fullmatch(each, one) for one in VALUES[label]), f"{label}: {each}"


def test_every_family_is_on_the_board_or_in_a_rule() -> None:
    text = BOARD.read_text() + RULES.read_text()
    assert {f.name for f in families() if f.name not in text} == {"moorage_faults_total"}


def test_every_alert_has_a_test_and_says_what_to_do() -> None:
    tested = (ROOT / "deploy" / "prometheus" / "rules_test.yaml").read_text()
    for rule in rules():
        if "alert" in rule:
            assert f"alertname: {rule['alert']}\n" in tested
            assert rule["labels"]["severity"] in ("info", "warning", "critical")
            assert rule["annotations"]["summary"]


needs_prometheus = pytest.mark.skipif(
    not (dev.PROMETHEUS / "promtool").exists(),
    reason="there is no prometheus",
)


@needs_prometheus
def test_alerts_fire_when_they_should_and_not_before() -> None:
    done = subprocess.run(
        [str(dev.PROMETHEUS / "promtool"), "test", "rules", "rules_test.yaml"],
        cwd=ROOT / "deploy" / "prometheus",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_prometheus_has_an_answer_to_every_query_of_the_board(tmp_path: Path) -> None:
    text = openmetrics_exposition(families())
    missing: dict[str, str] = {}
    with scraped(text) as target, prometheus(tmp_path, target) as url:
        end_s = time.monotonic() + WAIT_S
        recorded = [Query(rule["record"], rule["record"]) for rule in rules() if "record" in rule]
        for query in (*board_queries(), *recorded):
            found = answer(url, query.expression)
            while not found and time.monotonic() < end_s:
                time.sleep(0.2)
                found = answer(url, query.expression)
            labels = {first or second for first, second in _SHOWN.findall(query.shown)}
            if not found or any(not labels <= each["metric"].keys() for each in found):
                missing[query.place] = f"{query.expression}: {found}"
    assert missing == {}


def answer(url: str, expression: str) -> list[Any]:
    """Return what Prometheus answers to a query; numbers that are none count as nothing."""
    asked = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=10) as response:
            found = json.load(response)["data"]["result"]
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 503:  # It listens before it is ready.
            raise
        return []
    return [each for each in found if each["value"][1] != "NaN"]


@contextmanager
def scraped(text: str) -> Iterator[str]:
    """Serve a page to Prometheus during a block, and give its address."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", OPENMETRICS)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Run Prometheus with the rules during a block, and give its URL."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "moor", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        str(dev.PROMETHEUS / "prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield _url(process.stderr)
    finally:
        process.terminate()
        process.communicate()


def _url(log: Iterator[str]) -> str:
    """Return where Prometheus says that it listens."""
    for line in log:
        if found := re.search(r"address=127\.0\.0\.1:([1-9]\d*)", line):
            return f"http://127.0.0.1:{found[1]}"
    raise AssertionError("Prometheus ended")
