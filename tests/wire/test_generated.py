"""The generated modules match their .proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
PROTOS = sorted(SOURCES.rglob("*.proto"))


@pytest.mark.parametrize("proto", PROTOS, ids=lambda proto: proto.name)
def test_generated_modules_are_fresh(proto: Path, tmp_path: Path) -> None:
    outputs = [f"-I{SOURCES}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", *outputs, str(proto)]
    subprocess.run(command, check=True)
    for suffix in ("_pb2.py", "_pb2.pyi"):
        name = proto.relative_to(SOURCES).with_name(proto.stem + suffix)
        remedy = f"{name} is stale: python3 dev.py wire"
        assert (SOURCES / name).read_text() == (tmp_path / name).read_text(), remedy


def test_there_are_some() -> None:
    assert PROTOS
