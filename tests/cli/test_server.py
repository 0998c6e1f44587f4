"""`moor server`: its options, and errors about bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.cli.server import command
from moorage.cli.server_options import SECTIONS


def server(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["server", *arguments])


def test_every_option_has_its_section() -> None:
    listed = [name for _, names in SECTIONS for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == {parameter.name for parameter in command.params}
    output = server("--help").output
    assert [title for title, _ in SECTIONS] == [
        line.removesuffix(":")
        for line in output.splitlines()
        if line[:1].strip() and line[-1] == ":"
    ][: len(SECTIONS)]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--runtime-config", "api/all=x"], "--runtime-config: api/all: 'x' is neither"),
        (["--request-timeout", "fast"], "'fast' is no duration such as 90s"),
        (["--event-ttl", "0s"], "'0s' is not in 1s to"),
        (["--advertise-address", "here"], "'here' is no IP address"),
        (["--advertise-address", "0.0.0.0"], "no address that clients can reach"),
        (["--tls-san", "a b"], "'a b' is no DNS name and no IP address"),
        (["--secure-port", "70000"], "'--secure-port'"),
        (["--max-requests-inflight", "0"], "'--max-requests-inflight'"),
        (["--audit-policy-file", __file__], "--audit-policy-file: only with --audit-log-path"),
        (["--etcd-servers", "ftp://x"], "--etcd-servers: 'ftp://x': must begin with http://"),
        (["--etcd-servers", "http://x/y"], "a URL with host and port, and nothing else"),
        (["--etcd-servers", "http://x:y"], "has no valid port"),
        (["--etcd-cafile", __file__], "only with --etcd-servers"),
        (["--etcd-servers", "http://x", "--etcd-cafile", __file__], "need https://"),
        (["--etcd-servers", "https://x", "--etcd-keyfile", __file__], "both, or neither"),
        (["--etcd-servers", "http://x", "--etcd-prefix", "x"], "--etcd-prefix: 'x' must begin"),
        (
            ["--authorization-mode", "Token", "--tls-san", "x"],
            "--tls-san: only with --authorization-mode RBAC",
        ),
    ],
)
def test_a_bad_value_is_refused_with_its_flag(arguments: list[str], fault: str) -> None:
    done = server(*arguments)
    assert done.exit_code == 2
    assert any(flag in done.output for flag in arguments if flag.startswith("--"))
    assert fault in done.output


def test_a_policy_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("kind: Policy\n")
    done = server("--audit-log-path", str(tmp_path / "log"), "--audit-policy-file", str(policy))
    assert done.exit_code == 3
    assert f"error: --audit-policy-file: {policy}: " in done.output


def test_a_configuration_of_admission_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
        "plugins: [{name: PodSecurity, path: gone.yaml}]\n"
    )
    done = server("--admission-control-config-file", str(file))
    assert done.exit_code == 3
    where = f"error: --admission-control-config-file: {file}: plugins[0].path: "
    assert where in done.output
    assert "gone.yaml" in done.output


def test_a_log_that_cannot_be_written_stops_the_server_before_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log"
    done = server(
        "--data-dir", str(tmp_path / "data"), "--port", "0", "--audit-log-path", str(path)
    )
    assert done.exit_code == 3
    assert f"error: {path}: No such file or directory" in done.output
