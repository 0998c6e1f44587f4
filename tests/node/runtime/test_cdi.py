from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import ContainerEdits, Mount
from moorage.node.errors import UnresolvableError
from moorage.node.runtime.cdi import CdiSpecs

KIND = "vendor.example/gpu"


def write(path: Path, devices: dict[str, Any], **more: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    listed = [{"name": name, "containerEdits": edits} for name, edits in devices.items()]
    spec = {"cdiVersion": "0.6.0", "kind": KIND, "devices": listed, **more}
    path.write_text(json.dumps(spec))
    return path


def env(*variables: str) -> dict[str, Any]:
    return {"env": list(variables)}


@pytest.fixture
def specs(tmp_path: Path) -> CdiSpecs:
    return CdiSpecs([tmp_path / "static", tmp_path / "dynamic"])


def test_a_device_brings_its_edits_after_those_of_its_spec(tmp_path: Path, specs: CdiSpecs) -> None:
    mount = {"hostPath": "/lib/x", "containerPath": "/lib/y", "options": ["ro"]}
    devices = {"a": {"env": ["A=1"], "mounts": [mount]}, "b": env("B=1")}
    write(tmp_path / "static/gpu.json", devices, containerEdits=env("ALL=1"))
    assert specs.edits([f"{KIND}=b", f"{KIND}=a"]) == ContainerEdits(
        env=("ALL=1", "B=1", "A=1"),
        mounts=(Mount(host_path="/lib/x", container_path="/lib/y", options=("ro",)),),
    )


def test_nothing_is_wanted_and_nothing_is_brought(specs: CdiSpecs) -> None:
    assert specs.edits([]) == ContainerEdits()
    assert specs.faults() == ()


def test_the_later_folder_wins(tmp_path: Path, specs: CdiSpecs) -> None:
    write(tmp_path / "dynamic/gpu.json", {"a": env("FROM=dynamic")})
    write(tmp_path / "static/gpu.json", {"a": env("FROM=static"), "b": env("B=static")})
    assert specs.edits([f"{KIND}=a", f"{KIND}=b"]).env == ("FROM=dynamic", "B=static")


def test_a_device_that_two_files_of_a_folder_have_is_nobodys(
    tmp_path: Path, specs: CdiSpecs
) -> None:
    first = write(tmp_path / "dynamic/1.json", {"a": env("A=1"), "b": env("B=1")})
    second = write(tmp_path / "dynamic/2.json", {"a": env("A=2")})
    write(tmp_path / "static/3.json", {"a": env("A=3")})
    conflict = f"conflicting device {KIND}=a in {first}, {second}"
    with pytest.raises(UnresolvableError) as caught:
        specs.edits([f"{KIND}=a", f"{KIND}=b"])
    assert str(caught.value) == f"unresolvable CDI devices {KIND}=a; {conflict}"
    assert specs.faults() == (conflict,)
    assert specs.edits([f"{KIND}=b"]).env == ("B=1",)


def test_unknown_ids_are_named(specs: CdiSpecs) -> None:
    with pytest.raises(UnresolvableError) as caught:
        specs.edits([f"{KIND}=a", f"{KIND}=b"])
    assert str(caught.value) == f"unresolvable CDI devices {KIND}=a, {KIND}=b"


def test_what_is_no_id_is_told(specs: CdiSpecs) -> None:
    with pytest.raises(UnresolvableError, match="'gpu-0' is not of the form vendor/class=name"):
        specs.edits(["gpu-0"])


def test_changes_of_files_are_seen(tmp_path: Path, specs: CdiSpecs) -> None:
    path = write(tmp_path / "dynamic/gpu.json", {"a": env("A=1")})
    assert specs.edits([f"{KIND}=a"]).env == ("A=1",)
    write(path, {"a": env("A=22")})
    assert specs.edits([f"{KIND}=a"]).env == ("A=22",)
    path.unlink()
    with pytest.raises(UnresolvableError):
        specs.edits([f"{KIND}=a"])


def test_a_device_that_came_by_a_change_in_place_is_found(tmp_path: Path, specs: CdiSpecs) -> None:
    path = write(tmp_path / "dynamic/gpu.json", {"a": env("A=1")})
    write(tmp_path / "dynamic/other.json", {"c": env("C=1")})
    assert specs.edits([f"{KIND}=c"]).env == ("C=1",)
    write(path, {"a": env("A=1"), "b": env("B=2")})
    assert specs.edits([f"{KIND}=b", f"{KIND}=c"]).env == ("B=2", "C=1")


def test_a_file_that_is_replaced_may_conflict_with_another(tmp_path: Path, specs: CdiSpecs) -> None:
    path = write(tmp_path / "dynamic/gpu.json", {"a": env("A=1")})
    write(tmp_path / "dynamic/other.json", {"c": env("C=1")})
    assert specs.edits([f"{KIND}=c"]).env == ("C=1",)
    write(tmp_path / "dynamic/new", {"c": env("C=2")}).replace(path)
    with pytest.raises(UnresolvableError, match="conflicting device"):
        specs.edits([f"{KIND}=c"])
    path.unlink()
    assert specs.edits([f"{KIND}=c"]).env == ("C=1",)


def test_yaml_is_read_and_other_files_are_not(tmp_path: Path, specs: CdiSpecs) -> None:
    text = (
        f"cdiVersion: 0.5.0\nkind: {KIND}\ndevices:\n- name: '0'\n  containerEdits:\n    env: [A=1]"
    )
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "gpu.yaml").write_text(text)
    (folder / "gpu.yaml.bak").write_text("{")
    assert specs.edits([f"{KIND}=0"]).env == ("A=1",)
    assert specs.faults() == ()


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("{", "not valid JSON"),
        ('{"cdiVersion": "2.0.0"}', "cdiVersion: '2.0.0' is not a known version"),
        ('{"devices": [{"name": "a"}]}', "is not of the form vendor/class=name"),
        ('{"kind": "v/c", "devices": [{"name": "a"}, {"name": "a"}]}', "a second 'a'"),
        ('{"kind": "v/c", "containerEdits": {"env": ["A"]}}', "'A' is not NAME=VALUE"),
        (
            '{"kind": "v/c", "containerEdits": {"mounts": [{"containerPath": "x"}]}}',
            "containerEdits.mounts[0].containerPath: 'x' is not an absolute path",
        ),
        ('{"devices": 1}', "devices"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_file_is_told_and_hides_no_other(
    tmp_path: Path, specs: CdiSpecs, content: str, fact: str
) -> None:
    write(tmp_path / "static/good.json", {"a": env("A=1")})
    bad = tmp_path / "static/bad.json"
    bad.write_text(content)
    assert specs.edits([f"{KIND}=a"]).env == ("A=1",)
    (fault,) = specs.faults()
    assert fault.startswith(f"{bad}: ")
    assert fact in fault
    with pytest.raises(UnresolvableError, match=r"^unresolvable CDI devices x/y=z; .*bad\.json"):
        specs.edits(["x/y=z"])


def test_a_pipe_is_no_spec_and_nobody_waits_for_it(tmp_path: Path, specs: CdiSpecs) -> None:
    (tmp_path / "static").mkdir()
    os.mkfifo(tmp_path / "static/pipe.json")
    assert specs.faults() == (f"{tmp_path}/static/pipe.json: not a regular file",)


def test_fields_that_we_do_not_know_do_no_harm(tmp_path: Path, specs: CdiSpecs) -> None:
    node = {"path": "/dev/x", "major": 1, "newField": True}
    edits = {"deviceNodes": [node], "additionalGids": [7], "intelRdt": {"closID": "x"}}
    write(tmp_path / "static/gpu.json", {"a": edits}, more=1)
    found = specs.edits([f"{KIND}=a"])
    assert (found.device_nodes[0].major, found.additional_gids) == (1, (7,))
