"""The recorded answers of cel-go with Kubernetes' options."""

from __future__ import annotations

import re

import pytest

from conformance.runner import run
from tests.corpus import corpus


@pytest.mark.sweep
def test_expressions_answer_as_kubernetes_does(capsys: pytest.CaptureFixture[str]) -> None:
    run("cel", corpus("cel", "public.jsonl"), show=20)
    printed = capsys.readouterr().out
    rates = {
        name: int(equal) / int(total)
        for name, equal, total in re.findall(r"^([\w -]+): (\d+)/(\d+) equal", printed, re.M)
    }
    assert rates["cel"] >= 0.995, printed
    assert rates["error classes"] >= 0.99, printed
    assert rates["run-time costs"] >= 0.98, printed
    assert rates["estimates"] >= 0.97, printed
    assert rates["error texts"] >= 0.90, printed
