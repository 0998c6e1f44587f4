"""The recorded answers of Kubernetes to thousands of requests."""

from __future__ import annotations

import pytest

from conformance.runner import run
from tests.corpus import corpus


@pytest.mark.sweep
def test_validation_answers_as_kubernetes_does(capsys: pytest.CaptureFixture[str]) -> None:
    status = run("validation", corpus("validation", "public.jsonl"), show=20)
    printed = capsys.readouterr().out
    assert status == 0, printed
    figures = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    equal, total = map(int, figures["detail texts"].split(" ")[0].split("/"))
    assert equal / total > 0.99, figures
    equal, total = map(int, figures["warnings and unknown fields"].split(" ")[0].split("/"))
    assert equal == total
