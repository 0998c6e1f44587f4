from __future__ import annotations

import json
from pathlib import Path

import fastjsonschema
import pytest
from click.testing import CliRunner, Result

from moorage.cli.schema import command


def schema(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("ResourceClaim", "ResourceClaim (resource.k8s.io/v1)"),
        ("resourceclaims", "ResourceClaim (resource.k8s.io/v1)"),
        ("claim", "ResourceClaim (resource.k8s.io/v1)"),
        ("resourceclaims.v1beta1.resource.k8s.io", "ResourceClaim (resource.k8s.io/v1beta1)"),
        ("po", "Pod (v1)"),
        ("pods.v1", "Pod (v1)"),
        ("deployments.apps", "Deployment (apps/v1)"),
    ],
)
def test_a_kind_is_named_as_kubectl_does(name: str, title: str) -> None:
    done = schema(name)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["title"] == title


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("resourceclam", "did you mean resourceclaim?"),
        ("pods.v7", "there is pods.v1"),
        ("deployments.v1beta9.apps", "there is deployments.v1.apps"),
    ],
)
def test_an_unknown_kind_or_version_is_wrong_usage(name: str, hint: str) -> None:
    done = schema(name)
    assert done.exit_code == 2
    assert hint in done.stderr


def test_without_a_kind_all_are_listed_with_their_files() -> None:
    lines = [line.split() for line in schema().stdout.splitlines()]
    assert ["ResourceSlice", "resource.k8s.io/v1", "resourceslice-resource-v1.json"] in lines
    strict = schema("--strict").stdout
    assert "v1alpha2" not in strict


def test_all_schemas_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    done = schema("--all", str(folder), "--strict")
    assert done.exit_code == 0, done.output
    listed = {line.split()[-1] for line in schema("--strict").stdout.splitlines()}
    assert {path.name for path in folder.iterdir()} == {*listed, "all.json"}
    assert f"{len(listed) + 1} schemas written to {folder}" in done.stdout
    everything = json.loads((folder / "all.json").read_text())
    assert len(everything["oneOf"]) == len(listed)
    check = fastjsonschema.compile(
        json.loads((folder / "resourceclaim-resource-v1.json").read_text())
    )
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check(
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devises": {}}}
        )


def test_a_folder_that_cannot_be_written_is_status_3(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = schema("--all", str(tmp_path / "file" / "below"))
    assert done.exit_code == 3
    assert done.stderr.startswith("error: ")


def test_a_kind_and_all_do_not_go_together(tmp_path: Path) -> None:
    assert schema("pod", "--all", str(tmp_path)).exit_code == 2
