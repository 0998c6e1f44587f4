"""The change recipes hold: their files exist, and a change that follows one works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from moorage.cli.main import COMMANDS
from moorage.cluster.programs import CONTROLLERS, OFF_BY_DEFAULT

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "contributing" / "recipes.md").read_text(encoding="utf-8")
SOURCES = ROOT / "src"
PROFILES = SOURCES / "moorage" / "hardware" / "profiles"

FIELD_FILES_MAX = 12
FILTER_FILES_MAX = 3


def steps(title: str) -> list[str]:
    """Return the files of a recipe, in order."""
    recipe = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\d+\. `([^`]+)`", recipe, re.MULTILINE)
    assert found, title
    return found


TITLES = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("title", TITLES)
def test_files_of_a_recipe_exist(title: str) -> None:
    for path in steps(title):
        pattern = re.sub(r"<\w+>", "*", path)
        assert list(ROOT.glob(pattern)), path


def test_common_changes_touch_few_files() -> None:
    assert len(steps("Add a Device field behind a feature gate")) <= FIELD_FILES_MAX
    assert len(steps("Add a scheduler filter")) <= FILTER_FILES_MAX


def test_every_command_has_the_files_of_its_recipe() -> None:
    module = steps("Add a command")[0]
    for name in COMMANDS:
        assert (ROOT / module.replace("<name>", name.replace("-", "_"))).exists(), name


def test_every_controller_has_the_steps_of_its_recipe() -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in (SOURCES / "moorage/controllers").glob("*.py")
    )
    # The explainer looks at the whole cluster; it is a program beside the controllers.
    assert [n for n in CONTROLLERS if n not in OFF_BY_DEFAULT and f'"{n}"' not in source] == []


def test_every_board_has_sources_or_a_base_that_has_them() -> None:
    for path in PROFILES.glob("*.toml"):
        board = tomllib.loads(path.read_text(encoding="utf-8"))
        assert path.name == "models.toml" or board.get("sources") or board["base"], path.name


# --- following the first recipe -------------------------------------------------------------

GATE = "DRABlinkingDevices"

# file of the recipe: what to find in it, and what to put after that line
EDITS: dict[str, tuple[tuple[str, str], ...]] = {
    "src/moorage/api/gates.txt": (
        (r"DRAConsumableCapacity .*", f"{GATE} A37- needs DynamicResourceAllocation"),
    ),
    "src/moorage/api/gates.py": (
        (r"    DRA_CONSUMABLE_CAPACITY = .*", f'    DRA_BLINKING_DEVICES = "{GATE}"'),
    ),
    "src/moorage/api/resource/devices.py": (
        (r"    allow_multiple_allocations: .*", "    blinks: bool | None = None"),
    ),
    "src/moorage/api/resource/v1beta1.py": (
        (r"    allow_multiple_allocations: .*", "    blinks: bool | None = None"),
    ),
    "src/moorage/api/resource.schema.txt": (
        (
            r"  allowMultipleAllocations \d+ .*",
            f"  blinks 99 *bool featureGate={GATE} -- Whether the device blinks.",
        ),
    ),
}

CHECKS = """
from datetime import UTC, datetime

from moorage.api import protobuf
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.openapi.schemas import schemas_of
from moorage.apiserver.patching.shapes import shape_of
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

def stored(version, device, flag):
    kind = CATALOGUE.find(f"resource.k8s.io/{version}", "ResourceSlice")
    spec = {"driver": "d.example.com", "nodeName": "n", "devices": [device],
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
    tree = {"apiVersion": kind.api_version, "kind": kind.name,
            "metadata": {"name": "s"}, "spec": spec}
    context = Context(Gates.parse(flag), Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))
    result = before_create(decode_tree(tree, kind.struct).value, kind, context)
    assert result.stored is not None, result
    return to_tree(result.stored)

on, off = "DRABlinkingDevices=true", "DRABlinkingDevices=false"
blinker, older = {"name": "a", "blinks": True}, {"name": "a", "basic": {"blinks": True}}
assert stored("v1", blinker, on)["spec"]["devices"] == [blinker]
assert stored("v1", blinker, off)["spec"]["devices"] == [{"name": "a"}]
assert stored("v1beta1", older, on)["spec"]["devices"] == [blinker]
body = protobuf.decode(protobuf.encode(stored("v1", blinker, on))).tree
assert body["spec"]["devices"] == [blinker], body
kind = CATALOGUE.find("resource.k8s.io/v1", "ResourceSlice")
(device,) = (s for name, s in schemas_of([kind]).items() if name.endswith("resource.v1.Device"))
assert device["properties"]["blinks"]["description"] == "Whether the device blinks.", device
assert "blinks" in shape_of("resource/v1.Device").map.fields
print("ok")
"""


def test_a_field_that_follows_the_recipe_is_read_validated_stored_and_served(
    tmp_path: Path,
) -> None:
    assert set(EDITS) <= set(steps("Add a Device field behind a feature gate"))
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES / "moorage", tmp_path / "src" / "moorage", ignore=skipped)
    for name, edits in EDITS.items():
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        for line, addition in edits:
            text, count = re.subn(rf"^{line}$", lambda m: f"{m[0]}\n{addition}", text, flags=re.M)  # noqa: B023
            assert count, (name, line)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        env={"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ok\n", done.stderr
