"""`moor metrics`: printed for files, and what it refuses."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import self_signed_files
from moorage.cli.main import moor
from moorage.kit.clock import EPOCH

TRAINING = str(Path(__file__).parents[2] / "examples" / "training")
CLUSTER = ("-f", TRAINING, "--profile", "dgx-h100")
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: eight}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]}}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["metrics", *arguments])


def test_with_files_it_prints_what_moor_devices_counts() -> None:
    done = run(*CLUSTER)
    assert done.exit_code == 0
    listed = json.loads(CliRunner().invoke(moor, ["devices", *CLUSTER, "-o", "json"]).output)
    free = sum(
        int(line.rpartition(" ")[2])
        for line in done.output.splitlines()
        if line.startswith("moorage_devices{") and 'state="free"' in line
    )
    assert free == listed["summary"]["free"]
    assert 'moorage_pending_pods{namespace="default",cause="constraint"} 1\n' in done.output


def test_openmetrics_ends_with_its_mark() -> None:
    assert run(*CLUSTER, "--openmetrics").output.endswith("# EOF\n")


def test_a_shape_is_counted_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    done = run(*CLUSTER, "--shape", f"whole={tmp_path / 'claim.yaml'}")
    assert 'moorage_shape_claims{shape="whole"} 0\n' in done.output
    assert 'moorage_shape_stranded_devices{shape="whole",request="gpus"} 3\n' in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        ((), 2, "nothing to look at"),
        ((*CLUSTER, "--shape", "x"), 2, "--shape x: expected NAME=FILE"),
        ((*CLUSTER, "--shape", "x=/none"), 3, "--shape x: /none: no such file"),
        ((*CLUSTER, "--shape", f"x={TRAINING}"), 3, "must hold one ResourceClaim"),
        ((*CLUSTER, "--shape", "a\x1bb=/none"), 2, "a name has up to 128 characters"),
        ((*CLUSTER, "--max-shapes", "1000"), 2, "not in the range"),
        (("--kubeconfig", "/none"), 3, "error: kubeconfig /none: there is no such file"),
        ((*CLUSTER, "--bind-address", "0.0.0.0:1"), 2, "--cert-dir makes a certificate"),
        ((*CLUSTER, "--cert-dir", "/x", "--tls-cert-file", __file__), 2, "--tls-cert-file"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments: tuple[str, ...], code: int, fault: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, fault in done.output) == (code, True), done.output


def test_other_sources_are_for_one_look_only() -> None:
    done = run("--live", "--kubeconfig", "/none", *CLUSTER)
    assert done.exit_code == 2
    assert "together with other sources only with --once" in done.output


# --- certificates ---------------------------------------------------------------------------------


def test_a_certificate_of_our_own_is_kept_and_made_anew_when_it_is_due(tmp_path: Path) -> None:
    now, hosts = Timestamp(EPOCH), ("a.example.com", "127.0.0.1")
    first = [path.read_bytes() for path in self_signed_files(tmp_path / "certs", hosts, now)]
    again = [path.read_bytes() for path in self_signed_files(tmp_path / "certs", hosts, now)]
    assert first == again
    assert b"PRIVATE" in first[1]
    assert os.stat(tmp_path / "certs" / "tls.key").st_mode & 0o077 == 0
    later = Timestamp(EPOCH + timedelta(days=350))
    for hosts_now, at in ((hosts, later), (("b.example.com",), now)):
        made = [path.read_bytes() for path in self_signed_files(tmp_path / "certs", hosts_now, at)]
        assert made != first


def test_a_certificate_without_its_key_is_made_anew(tmp_path: Path) -> None:
    now = Timestamp(EPOCH)
    certificate, key = self_signed_files(tmp_path, ("a",), now)
    key.write_text("x")
    self_signed_files(tmp_path, ("a",), now)
    assert "PRIVATE" in key.read_text()
    certificate.write_text("x")
    self_signed_files(tmp_path, ("a",), now)
    assert "BEGIN CERTIFICATE" in certificate.read_text()
