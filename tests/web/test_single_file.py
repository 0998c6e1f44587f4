"""The page as one file fetches nothing, runs what its policy names, and keeps names as data."""

from __future__ import annotations

import base64
import gzip
import re
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.insight.snapshot.snapshot import Snapshot
from moorage.web.bundle import BundleError, bundled
from moorage.web.fleet import read_fleet
from moorage.web.scene import Scene
from moorage.web.single_file import single_page
from moorage.web.static_files import static_files
from tests.insight.topologies import claim, device, node, result, slice_of
from tests.web.fleets import CONTEXT, SMALL, told


def page_of(*objects: Any, title: str = "t") -> str:
    return single_page(Snapshot.of(objects), CONTEXT, title=title)


def data_in(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="moor-data">(.*?)</script>', page)
    data = msgspec.json.decode(text)
    if "gzip" in data:
        return msgspec.json.decode(gzip.decompress(base64.b64decode(data["gzip"])))
    return data


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_file_has_the_fleet_and_its_explanations() -> None:
    data = data_in(page_of(*SMALL))
    shown = told(read_fleet(data["fleet"]))
    assert shown["devices"] == told(Scene(CONTEXT, SMALL).fleet(1, ""))["devices"]
    assert data["explain"].keys() == {"team/big"}
    assert data["explain"]["team/big"]["cause"] in {cause for cause, _, _ in shown["groups"]}
    assert (data["session"]["live"], data["session"]["whatIf"]) == (False, False)


def test_the_policy_names_the_script_and_the_style_and_no_connection() -> None:
    page = page_of(*SMALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for directive, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "connect-src" not in policy  # so none


def test_nothing_is_fetched() -> None:
    for tag, attributes in Tags(page_of(*SMALL)).seen:
        assert "src" not in attributes
        assert tag != "iframe"
        assert attributes.get("href", "data:,") == "data:,"


HOSTILE = "</script><script>alert(1)</script><!-- \u2028 '\""


@settings(max_examples=20)
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=20)))
def test_names_stay_data(name: str) -> None:
    objects = [
        node(name),
        slice_of(device(name, {"pcieRoot": name}), driver=name, pool=name),
        claim(name, result(name, driver=name, pool=name), namespace=name),
    ]
    plain = Tags(page_of(*SMALL)).seen
    page = page_of(*objects, title=name)
    assert [tag for tag, _ in Tags(page).seen] == [tag for tag, _ in plain]
    assert name in data_in(page)["fleet"]["strings"]


# --- bundles ----------------------------------------------------------------------------------


def test_modules_become_scopes_in_the_order_of_their_imports() -> None:
    modules = {
        "main.js": 'import { one as first } from "./a.js";\nimport * as b from "./lib/b.js";\n'
        'import def from "./c.js";\nrun(first, b.two, def);',
        "a.js": 'import "./lib/b.js";\nexport const one = 1;\nexport async function f() {}',
        "lib/b.js": "const x = 2;\nexport { x as two };",
        "c.js": "export default function () {}",
    }
    text = bundled(modules, "main.js")
    places = [
        text.index(f'modules["{name}"] = ') for name in ("lib/b.js", "a.js", "c.js", "main.js")
    ]
    assert places == sorted(places)
    assert 'const { one: first } = modules["a.js"];' in text
    assert 'const b = modules["lib/b.js"];' in text
    assert 'const def = modules["c.js"].default;' in text
    assert 'modules["lib/b.js"] = { two: x };' in text
    assert 'modules["a.js"] = { one, f };' in text


@pytest.mark.parametrize(
    "modules",
    [
        {"main.js": 'import "./main.js";'},
        {"main.js": 'import "./a.js";', "a.js": 'import "./main.js";'},
        {"main.js": 'import "./none.js";'},
        {"main.js": 'export * from "./a.js";', "a.js": ""},
        {"main.js": "export let x = 1;"},
        {"main.js": 'import x from "https://example.com/x.js";'},
    ],
)
def test_what_a_bundle_cannot_say_is_an_error(modules: dict[str, str]) -> None:
    with pytest.raises(BundleError):
        bundled(modules, "main.js")


def test_the_modules_of_the_page_can_be_bundled() -> None:
    scripts = {n: f.body.decode() for n, f in static_files().items() if n.endswith(".js")}
    text = bundled(scripts, "main.js")
    for name in scripts:
        assert f'modules["{name}"] = ' in text  # no module is left over
