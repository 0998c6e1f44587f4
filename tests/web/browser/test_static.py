"""The files of the page: vendored ones are unchanged, modules fit together, colours differ."""

from __future__ import annotations

import hashlib
import itertools
import re

import pytest

from tests.web.browser.contract_server import STATIC

VENDOR = STATIC / "vendor"
MODULES = sorted(STATIC.glob("*.js"))
IMPORT = re.compile(r"import (?:(\w+)|\{([^}]*)\}|\* as \w+) from \"(\./[\w./-]+)\";")
STYLE = (STATIC / "app.css").read_text()


# --- what is vendored -------------------------------------------------------------------------


def test_vendored_files_have_their_checksums() -> None:
    lines = (VENDOR / "checksums.txt").read_text().splitlines()
    listed = {name: checksum for checksum, name in (line.split() for line in lines)}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in {".js", ".LICENSE"}
    }
    assert found == listed


def test_every_vendored_module_has_its_licence_and_is_listed() -> None:
    readme = (VENDOR / "README.md").read_text()
    for module in VENDOR.glob("*.js"):
        assert f"`{module.name}`" in readme
        assert module.with_suffix(".LICENSE").exists()


# --- modules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_module_imports_what_others_export_and_uses_it(module: object) -> None:
    text = next(path for path in MODULES if path == module).read_text()
    for default, names, source in IMPORT.findall(text):
        other = STATIC / source
        assert other.exists(), source
        if default or other.parent == VENDOR:
            continue
        for name in filter(None, (each.strip() for each in names.split(","))):
            pattern = (
                rf"export (async )?(function|const|class|let) {name}\b|export \{{[^}}]*\b{name}\b"
            )
            assert re.search(pattern, other.read_text()), f"{source} exports no {name}"
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is not used"


def test_modules_open_with_their_story_and_are_small() -> None:
    for module in MODULES:
        text = module.read_text()
        assert text.startswith("/**"), module.name
        assert text.count("\n") <= 560, module.name


def test_page_has_nothing_that_its_policy_forbids() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)|https?://", page)
    for module in MODULES:
        assert not re.search(r"\beval\(|new Function|innerHTML|https?://", module.read_text()), (
            module
        )


# --- colours ----------------------------------------------------------------------------------


def tokens(scheme: str) -> dict[str, str]:
    """Return the colours of the style sheet, in light or dark."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    found: dict[str, str] = {}
    for block in blocks[: 1 if scheme == "light" else 2]:
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    return found


def palette(scheme: str) -> dict[str, str]:
    """Return the colours of devices, in light or dark."""
    text = (STATIC / "colours.js").read_text()
    block = re.search(rf"PALETTES = .*?{scheme}: \{{(.*?)\}}", text, re.DOTALL)
    assert block
    return dict(re.findall(r"(\w+): \"(#[0-9a-f]{6})\"", block[1]))


def linear(colour: str) -> list[float]:
    """Return red, green and blue as amounts of light."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG."""
    light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(one), linear(other)))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["text", "quiet", "accent", "good", "bad"])
@pytest.mark.parametrize("ground", ["ground", "surface", "raised", "accent-soft"])
def test_text_can_be_read(scheme: str, ink: str, ground: str) -> None:
    colours = tokens(scheme)
    assert contrast(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_controls_and_buttons_can_be_seen(scheme: str) -> None:
    colours = tokens(scheme)
    assert contrast(colours["control-line"], colours["surface"]) >= 3
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    assert contrast(colours["bar"], colours["bar-ground"]) >= 3


# How much of each colour of light people without one kind of cone perceive (Machado, 2009).
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
PATTERNS = {"free": 0, "taken": 0, "partly": 5, "blocked": 1, "tainted": 2, "unusable": 3}


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """Return lightness and hue as they are perceived."""
    light = linear(colour)
    r, g, b = (
        max(0.0, sum(part * value for part, value in zip(row, light, strict=True)))
        for row in SIGHT[sight]
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_states_differ_for_every_sight(scheme: str, sight: str) -> None:
    """In colour or, at least a little and with another pattern, in both."""
    colours = palette(scheme)
    for one, other in itertools.combinations(PATTERNS, 2):
        seen = zip(lab(colours[one], sight), lab(colours[other], sight), strict=True)
        distance = sum((a - b) ** 2 for a, b in seen) ** 0.5
        wanted = 20 if PATTERNS[one] == PATTERNS[other] else 5
        assert distance >= wanted, f"{one} and {other}: {distance:.0f}"
