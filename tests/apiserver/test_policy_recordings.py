"""Policies and webhooks answer as a recorded API server of Kubernetes 1.37 does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCENE = ROOT / "conformance" / "scenes" / "1.37" / "admission-policies.json"


def test_the_recorded_scene_of_policies_is_equal(tmp_path: Path) -> None:
    folder = tmp_path / "1.37"
    folder.mkdir()
    shutil.copy(SCENE, folder)
    command = [sys.executable, "-m", "conformance", "http", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "http: 37/37 equal" in done.stdout, done.stdout
