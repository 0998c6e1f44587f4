"""Where the recorded answers of Kubernetes are, if this checkout has them beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"


def corpus(*names: str) -> Path:
    """Return a file or folder of the corpus, or skip the test that asks for it."""
    path = CORPUS.joinpath(*names)
    if not path.exists():
        pytest.skip(f"no recorded answers of Kubernetes at ../shared/corpus/{'/'.join(names)}")
    return path
