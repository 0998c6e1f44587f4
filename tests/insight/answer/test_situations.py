"""Everyday mistakes: the cause is named, the first fix is what an expert would do, and it helps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from mooring.cli.explain import command as explain
from mooring.cli.plan import command as plan
from mooring.cli.validate import command as validate

FOLDER = Path(__file__).parents[1] / "situations"
CAUSE_LENGTH_MAX = 160


class Expected(NamedTuple):
    """Patterns of the cause and the first fix; whether the fix is a change of objects."""

    cause: str
    fix: str
    is_change: bool = True


CHANGE, ADVICE = True, False
EXPECTED = {
    "all-in-use-but-fewer": Expected("1 of 2 free.* by claim held of pod notebook", "ask for 1 "),
    "attribute-of-some": Expected("1 of 2 devices has no .*/nvlink", r"has\(.*nvlink\)"),
    "capacity-read-as-attribute": Expected("memory does not exist", r"device.capacity\["),
    "capacity-typo": Expected("capacity memroy does not exist: .*memory", "memory instead"),
    "claim-in-another-namespace": Expected("gpus is in namespace other", "create template gpus"),
    "claim-typo": Expected("shared-gpus does not exist", "shared-gpu instead"),
    "class-selector-of-nothing": Expected("none matches class", "class gpu.example.com", ADVICE),
    "constraint-typo": Expected("gpu.example.com/modle.*model", "gpu.example.com/model instead"),
    "derived-not-on-all": Expected("request second has attribute mooring.dev/side", "side"),
    "device-taint-of-driver": Expected("taint .*reserved=research", "tolerate .*reserved"),
    "device-unhealthy": Expected("taint .*unhealthy=ecc", "repaired", ADVICE),
    "int-as-string": Expected('slot is an int.*"0", a string', "compare slot with 0"),
    "list-as-scalar": Expected('zones is a list.*"left"', r'includes\("left"\)'),
    "match-across-drivers": Expected("request nic has attribute .*slot", "constraint"),
    "memory-of-node": Expected("1Ti of memory.*512Gi", "512Gi of memory"),
    "node-cordoned": Expected("n1.*is cordoned", "uncordon n1", ADVICE),
    "node-selector-typo": Expected("zone=eats.*east", "zone=east"),
    "node-taint": Expected("dedicated=gpu:NoSchedule", "tolerate dedicated=gpu"),
    "quota-of-claims": Expected("quota few allows 0", "raise quota few"),
    "quota-of-cpu": Expected("quota small allows 1", "quota small"),
    "two-mistakes": Expected("modle does not exist.*model", "model instead of modle"),
    "value-in-another-case": Expected('model "A100".*"a100"', '"a100"'),
    "value-that-nobody-has": Expected('no device has model "h200"', '"a100"'),
    "version-as-string": Expected("driverVersion is a version", 'semver\\("1.2.3"\\)'),
    "version-too-new": Expected("driverVersion 2.0.0.*1.2.3", "1.2.3 instead of 2.0.0"),
}


def run(command: Any, *arguments: str, text: str | None = None) -> str:
    """Return what a command prints."""
    given = ["-f", "-"] if text is not None else []
    result = CliRunner().invoke(command, [*arguments, *given], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout


def pending(name: str) -> Any:
    file = str(FOLDER / f"{name}.yaml")
    (found,) = json.loads(run(explain, "pod/train", "-n", "team", "-f", file, "-o", "json"))[
        "pending"
    ]
    return found


def test_every_situation_has_its_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cause_is_named_and_the_first_fix_helps(name: str) -> None:
    expected, found = EXPECTED[name], pending(name)
    cause, fixes = found["cause"], found["fixes"]
    assert re.search(expected.cause, cause), cause
    assert "\n" not in cause
    assert len(cause) <= CAUSE_LENGTH_MAX
    assert fixes, cause
    assert re.search(expected.fix, fixes[0]["text"]), fixes
    assert fixes[0]["kind"] == ("change" if expected.is_change else "advice")


@pytest.mark.parametrize("name", EXPECTED)
def test_every_change_that_is_offered_is_valid_and_places_the_pod(name: str) -> None:
    file = str(FOLDER / f"{name}.yaml")
    for number, fix in enumerate(pending(name)["fixes"], 1):
        if fix["kind"] != "change":
            continue
        about = ("pod/train", "-n", "team", "-f", file)
        written = run(explain, *about, "--write-fix", str(number))
        assert written != Path(file).read_text()
        assert run(validate, "-q", text=written) == "", fix["text"]
        placed = json.loads(run(plan, "-o", "json", text=written))["pods"]
        assert {each["pod"]: each.get("node") for each in placed}["team/train"], fix["text"]
