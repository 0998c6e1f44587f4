"""`moor driver check`: its lists, reports, errors and exit status."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.testing.check.checks import CHECKS, details_of
from tests.testing import gooddriver

ROOT = Path(__file__).parents[2]
GOOD = (sys.executable, str(gooddriver.__file__))


def check(*words: str) -> Result:
    return CliRunner().invoke(moor, ["driver", "check", *words])


def test_the_checks_are_listed_with_their_promises() -> None:
    done = check("--list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == list(CHECKS)


def test_a_driver_on_the_sdk_needs_no_flags() -> None:
    done = check("--only", "slices,prepare,restart,end", "-o", "json", "--", *GOOD)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["driver"], told["good"]) == ("good.example.com", True)
    results = {each["check"]: each["result"] for each in told["checks"]}
    assert results == dict.fromkeys(("slices", "prepare", "restart", "end"), "pass")


def test_what_a_driver_said_before_it_ended_at_once_is_shown() -> None:
    program = "import sys; print('no such card'); sys.exit(7)"
    done = check("--", sys.executable, "-c", program)
    assert done.exit_code == 1
    assert "the driver ended with status 7; its last words:" in done.output
    assert "no such card" in done.output
    assert "the driver: 1 fail" in done.output


def test_a_program_that_is_not_there_is_named() -> None:
    done = check("no-such-program-anywhere")
    assert done.exit_code == 3
    assert "no-such-program-anywhere: neither a socket nor a program" in done.output


def test_unknown_checks_and_nothing_to_check_are_usage_errors() -> None:
    unknown = check("--only", "prepare,shine", "true")
    assert unknown.exit_code == 2
    assert "--only: no check 'shine'" in unknown.output
    nothing = check()
    assert nothing.exit_code == 2
    assert "nothing to check" in nothing.output


def test_a_socket_needs_to_be_told_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "reg.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        done = check(str(path))
    assert done.exit_code == 2
    assert "a SOCKET needs --kubeconfig and --node-name as well" in done.output


def test_help_and_the_guide_say_what_each_check_wants() -> None:
    done = check("--help")
    assert done.exit_code == 0
    guide = (ROOT / "docs" / "how-to" / "test-a-driver.md").read_text()
    for name, function in CHECKS.items():
        assert details_of(function), name
        assert f"\n  {name}\n" in done.output
        assert f"`{name}`" in guide


def test_limits_are_durations() -> None:
    done = check("--republish-timeout", "soon", "true")
    assert done.exit_code == 2
    assert "'soon' is no duration" in done.output
