"""`moor simulate`: traces, random arrivals, output, errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.simulate import command

EXAMPLES = Path(__file__).parents[2] / "examples"
TRACE = EXAMPLES / "library" / "trace.csv"
TRAINING = ("-f", str(EXAMPLES / "training"), "--profile", "dgx-h100")
RATES = ("--arrivals", "deployment/training=2/h:1h", "--arrivals", "pod/notebook-0=4/h:30m")


def simulate(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(command, [*TRAINING, *arguments], input=text)


def test_a_trace_is_played_and_waits_are_printed() -> None:
    done = simulate("--trace", str(TRACE))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[1].split() == [
        *("Deployment", "default/training", "4", "0", "50m0s", "0s", "1h40m0s", "1h40m0s"),
        *("10.2", "%"),
    ]
    assert lines[-1] == "8 of 8 pods got a node in 4h0m0s of simulated time"


def test_a_trace_comes_from_standard_input() -> None:
    text = '[{"arrival": 0, "workload": "pod/notebook-0"}]'
    assert simulate("--trace", "-", text=text).exit_code == 0


def test_pods_that_wait_at_the_end_are_an_answer_of_no() -> None:
    text = "arrival,workload,count\n0,deployment/training,3\n"
    done = simulate("--trace", "-", text=text)
    assert done.exit_code == 1
    assert "\n\ndefault/training-1 still waits: 0/1 nodes are available" in done.stdout


def test_csv_has_a_line_per_pod_or_sample() -> None:
    rows = list(csv.DictReader(io.StringIO(simulate("--trace", str(TRACE), "-o", "csv").stdout)))
    assert len(rows) == 8
    assert rows[0]["pod"] == "default/training-0"
    done = simulate("--trace", str(TRACE), "-o", "csv", "--timeline", "--sample", "1h")
    timeline = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["at_s"] for row in timeline] == ["0.0", "3600.0", "7200.0", "10800.0", "14400.0"]
    table = simulate("--trace", str(TRACE), "--timeline", "--sample", "1h").stdout.splitlines()
    assert len(table) == 6


def test_random_arrivals_depend_on_the_seed_only() -> None:
    first = simulate(*RATES, "--until", "4h", "-o", "json").stdout
    assert first == simulate(*RATES, "--until", "4h", "-o", "json").stdout
    assert first != simulate(*RATES, "--until", "4h", "-o", "json", "--seed", "1").stdout
    alone = json.loads(simulate(*RATES[:2], "--until", "4h", "-o", "json").stdout)
    workers = [each for each in json.loads(first)["pods"] if "training" in each["pod"]]
    assert [e["arrivalS"] for e in workers] == [e["arrivalS"] for e in alone["pods"]]


def test_without_left_over_it_is_unknown() -> None:
    tree = json.loads(simulate("--trace", str(TRACE), "--no-left-over", "-o", "json").stdout)
    assert {each["meanLeftOverPercent"] for each in tree["workloads"]} == {None}


def test_a_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "use.svg"
    done = simulate("--trace", str(TRACE), "--picture", str(path))
    assert done.stderr == f"{path} written\n"
    assert path.read_text(encoding="utf-8").startswith("<svg ")
    done = simulate("--trace", str(TRACE), "--picture", str(tmp_path / "missing" / "use.svg"))
    assert done.exit_code == 3
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "error", "status"),
    [
        ((), "", "no pods arrive: give --trace or --arrivals", 2),
        (("--trace", "missing.csv"), "", "missing.csv: No such file or directory", 3),
        (("--trace", "-"), "arrival,workload\nx,y\n", "<stdin>:2: arrival:", 3),
        (("--trace", "-"), "arrival,workload\n0,y\n", "there is no Pod default/y", 2),
        (("--trace", "-", "-f", "-"), "", "standard input can be read once only", 2),
        (("--arrivals", "pod/a"), "", "must be of the form KIND/NAME=N/h:DURATION", 2),
        (("--arrivals", "pod/a=0/h"), "", "0 arrivals per hour: must be more than 0", 2),
        (("--arrivals", "pod/a=1/h:x"), "", '"x": expected seconds or a duration', 2),
        (("--trace", "-", "--until", "soon"), "", '"soon": expected seconds or a duration', 2),
        (("--trace", "-", "--picture", "x.png"), "", "'x.png' does not end in .svg", 2),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: tuple[str, ...], text: str, error: str, status: int
) -> None:
    done = simulate(*arguments, text=text)
    assert error in done.stderr
    assert done.exit_code == status
    assert "Traceback" not in done.stderr


def test_a_workload_that_may_be_in_what_was_not_read_is_no_mistake_of_the_caller() -> None:
    done = simulate("--on", "missing.yaml", "--trace", "-", text="arrival,workload\n0,y\n")
    assert done.exit_code == 3
    assert "error: there is no Pod default/y; " in done.stderr
    assert "not everything could be read" in done.stderr
