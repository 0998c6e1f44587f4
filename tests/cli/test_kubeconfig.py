"""`moor kubeconfig`: the server's, and what nodes need."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import authenticator
from moorage.apiserver.auth.certificates import names_of, user_of
from moorage.apiserver.auth.credentials import ADMIN, CredentialsFolder, kubeconfig
from moorage.cli.kubeconfig import command
from tests.apiserver.test_credentials import der

NOW = Timestamp(datetime.now(UTC).replace(microsecond=0))
SERVER = "https://127.0.0.1:6443"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Have the folder of a server that ran."""
    made = CredentialsFolder(tmp_path / "state" / "pki").ensure(NOW)
    text = kubeconfig(SERVER, made.authority.certificate, ADMIN, made.clients[ADMIN])
    (tmp_path / "state" / "kubeconfig").write_text(text)
    return tmp_path / "state"


def test_the_servers_kubeconfig_is_printed(state: Path) -> None:
    done = run("--data-dir", state)
    assert (done.exit_code, done.output) == (0, (state / "kubeconfig").read_text())


def test_a_node_gets_all_it_needs(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    wanted = ("--node", "n1", "--folder", folder, "--host", "10.0.0.1", "--host", "n1.example")
    done = run("--data-dir", state, *wanted)
    assert (done.exit_code, done.output) == (0, f"{folder / 'kubeconfig'}\n")
    tree = yaml.safe_load((folder / "kubeconfig").read_text())
    assert tree["clusters"][0]["cluster"]["server"] == SERVER
    user = authenticator.certificate_user(der((folder / "client.crt").read_bytes()))
    assert user is not None
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes",))
    assert names_of((folder / "serving.crt").read_bytes()) == {"10.0.0.1", "n1.example"}
    assert authenticator.certificate_user(der((folder / "serving.crt").read_bytes())) is None
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


def test_what_is_not_due_is_kept(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    wanted = ("--data-dir", state, "--node", "n1", "--folder", folder)
    run(*wanted)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    run(*wanted)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    run(*wanted, "--host", "n1.example")
    changed = {each.name for each in folder.iterdir() if each.read_bytes() != before[each.name]}
    assert changed == {"serving.crt", "serving.key"}


def test_a_folder_that_was_another_nodes_is_made_anew(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    for name in ("n1", "n2"):
        run("--data-dir", state, "--node", name, "--folder", folder, "--host", "n.example")
    for file in ("client.crt", "serving.crt"):
        assert user_of((folder / file).read_bytes()) == "system:node:n2"


def test_what_another_authority_signed_is_made_anew(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    wanted = ("--data-dir", state, "--node", "n1", "--folder", folder)
    run(*wanted)
    before = (folder / "client.crt").read_bytes()
    for path in (state / "pki").iterdir():
        path.unlink()
    CredentialsFolder(state / "pki").ensure(NOW)
    run(*wanted)
    assert (folder / "client.crt").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--folder", "x"), 2, "--folder and --host go with --node"),
        (("--node", "n1"), 2, "--node needs --folder"),
        (("--node", "N_1", "--folder", "x"), 2, "a lowercase RFC 1123 subdomain"),
        (("--node", "n" * 60, "--folder", "x"), 3, "must have 1 to 64 bytes"),
    ],
)
def test_what_is_refused(
    state: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    given = [str(tmp_path / "node") if each == "x" else each for each in arguments]
    done = run("--data-dir", state, *given)
    assert done.exit_code == code
    assert text in done.output


def test_a_folder_without_certificates_is_named(state: Path, tmp_path: Path) -> None:
    (state / "pki" / "ca.key").unlink()
    done = run("--data-dir", state, "--node", "n1", "--folder", tmp_path / "node")
    assert done.exit_code == 3
    assert "ca.crt: there is no authority" in done.output
    (state / "kubeconfig").write_text((state / "kubeconfig").read_text().replace("https", "http"))
    done = run("--data-dir", state, "--node", "n1", "--folder", tmp_path / "node")
    assert "has no certificates" in done.output
    (state / "kubeconfig").write_text("{}")
    done = run("--data-dir", state, "--node", "n1", "--folder", tmp_path / "node")
    assert "names no server" in done.output
