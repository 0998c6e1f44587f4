from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.node.runtime.shim import linux
from tests.node.runtime.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    root = Path(tempfile.mkdtemp(dir="/tmp", prefix="moor-"))
    made = Bench(root)
    before = set(linux.children(os.getpid()))
    yield made
    assert made.members() == []
    assert set(linux.children(os.getpid())) <= before
    shutil.rmtree(root)
