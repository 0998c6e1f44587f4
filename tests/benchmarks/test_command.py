"""`dev.py bench`: benchmarks are listed and described, and unknown ones are named."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import main


def test_benchmarks_are_listed_with_what_they_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"live", "offline", "simulation", "allocator"} <= rows.keys()
    assert rows["allocator"].startswith("Allocation beside Kubernetes' allocator")


def test_a_benchmark_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--help"]) == 0
    assert "how many\ntimes a second it syncs" in capsys.readouterr().out


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sever"]) == 2
    assert capsys.readouterr().err.startswith("no benchmark 'sever'; there are: allocator, cel")
