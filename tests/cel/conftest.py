"""What holds for all tests of CEL."""

from __future__ import annotations

import pytest

from moorage.cel.lang.unpaid_work import begin_evaluation


@pytest.fixture(autouse=True)
def _new_evaluation() -> None:
    """Let no test begin with the unpaid work of the one before, which may have been too much."""
    begin_evaluation()
