"""--write-fix prints everything that was given, with the fix made, in whatever form it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.api.documents.yaml_writer import dump_yaml
from moorage.cli.explain import command as explain
from moorage.cli.plan import command as plan
from moorage.cli.validate import command as validate

MACHINE = ("--profile", "dgx-h100")


def claim(version: str = "v1", count: int = 9) -> dict[str, Any]:
    asked = {"deviceClassName": "gpu.nvidia.com", "count": count}
    request = {"name": "gpu", **({"exactly": asked} if version != "v1beta1" else asked)}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpus"},
        "spec": {"devices": {"requests": [request]}},
    }


def pod(**metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata or {"name": "train"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimName": "gpus"}],
        },
    }


MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": ""}}


def run(*arguments: str, text: str | None = None, command: Any = explain) -> Result:
    given = ["-f", "-"] if text is not None else []
    result = CliRunner().invoke(command, [*arguments, *given], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def fixed(*documents: Any, arguments: tuple[str, ...] = ()) -> list[Any]:
    """Return the documents with the first fix made; they are valid and all pods fit."""
    result = run(*MACHINE, *arguments, "--write-fix", "1", text=dump_yaml(documents))
    assert result.exit_code == 0, result.stderr
    assert run("-q", text=result.stdout, command=validate).exit_code == 0
    planned = run(*MACHINE, "-o", "json", text=result.stdout, command=plan)
    assert all(each.get("node") for each in json.loads(planned.stdout)["pods"])
    return list(yaml.safe_load_all(result.stdout))


def test_all_documents_keep_their_order() -> None:
    assert fixed(MAP, pod(), claim()) == [MAP, pod(), claim(count=8)]


def test_items_of_lists_are_written_one_by_one() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod(), claim()]}
    assert fixed(listed, MAP) == [pod(), claim(count=8), MAP]


def test_an_older_version_is_written_as_a_server_stores_it() -> None:
    found = fixed(claim("v1beta1"), pod())
    assert found[0]["apiVersion"] == "resource.k8s.io/v1"
    assert found[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 8
    assert "namespace" in found[0]["metadata"]
    assert found[1] == pod()


def test_a_form_of_the_keps_is_kept_where_the_change_can_be_written_in_it() -> None:
    written = claim()
    devices = written["spec"]["devices"]
    derived = {"name": "side", "expression": "1"}
    devices["requests"][0] = {"name": "gpu", "derivedAttributes": [derived]} | {
        "exactly": devices["requests"][0]["exactly"]
    }
    devices["constraints"] = [{"requests": ["gpu"], "matchAttribute": "side"}]
    first, _ = fixed(written, pod())
    devices["requests"][0]["exactly"]["count"] = 8
    assert first == written


def test_a_generated_name_stays_to_be_generated() -> None:
    made = pod(generateName="train-")
    made["spec"]["nodeSelector"] = {"zone": "a"}
    (found, _) = fixed(made, claim(count=1))
    assert found["metadata"] == {"generateName": "train-"}
    assert not found["spec"].get("nodeSelector")


def test_files_are_written_in_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    for name, tree in (("b.yaml", pod()), ("a.json", claim())):
        (tmp_path / name).write_text(json.dumps(tree))
    (tmp_path / "kustomization.yaml").write_text("resources: [b.yaml, a.json]\n")
    named = [option for name in ("b.yaml", "a.json") for option in ("-f", str(tmp_path / name))]
    result = run(*MACHINE, *named, "--write-fix", "1")
    assert list(yaml.safe_load_all(result.stdout)) == [pod(), claim(count=8)]
    result = run(*MACHINE, "-f", str(tmp_path), "--write-fix", "1")
    assert list(yaml.safe_load_all(result.stdout)) == [claim(count=8), pod()]


def test_of_an_object_that_is_there_twice_both_are_changed() -> None:
    assert fixed(claim(count=10), claim(), pod()) == [claim(count=8), claim(count=8), pod()]


def test_objects_of_the_cluster_come_first_without_what_a_server_adds(tmp_path: Path) -> None:
    none = {"count/resourceclaims.resource.k8s.io": "0"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"hard": none},
        "status": {"hard": none, "used": none},
    }
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(quota))
    made = pod()
    made["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "gpus"}]
    spec = claim(count=1)["spec"]
    template = {**claim(), "kind": "ResourceClaimTemplate", "spec": {"spec": spec}}
    added, *given = fixed(made, template, arguments=("--on", str(tmp_path / "cluster.yaml")))
    assert given == [made, template]
    assert added["metadata"] == {"name": "few", "namespace": "default"}
    assert added["spec"]["hard"] == {"count/resourceclaims.resource.k8s.io": "1"}
    assert "status" not in added


def test_json_is_one_list() -> None:
    text = yaml.safe_dump_all([pod(), claim()])
    result = run(*MACHINE, "--write-fix", "1", "-o", "json", text=text)
    tree = json.loads(result.stdout)
    assert (tree["kind"], tree["items"]) == ("List", [pod(), claim(count=8)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--write-fix", "9"), "--write-fix 9: 2 fixes are offered for pod default/train"),
        (("--write-fix", "0"), "0 is not in the range x>=1"),
        (("--write-fix", "1", "--apply-fix", "1"), "give --write-fix or --apply-fix, not both"),
        (("--apply-fix", "1"), "--apply-fix changes a running cluster: give --live"),
        (("--yes",), "--yes answers the question of --apply-fix"),
    ],
)
def test_a_wrong_number_or_option_is_a_usage_error(
    arguments: tuple[str, ...], message: str
) -> None:
    result = run(*MACHINE, *arguments, text=yaml.safe_dump_all([pod(), claim()]))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_advice_is_not_written() -> None:
    file = str(Path(__file__).parents[1] / "situations" / "device-unhealthy.yaml")
    result = run("pod/train", "-n", "team", "-f", file, "--write-fix", "1")
    assert result.exit_code == 2
    assert "fix 1 for pod team/train is advice, which no change of objects can do: " in (
        result.stderr
    )


def test_nothing_is_written_where_nothing_is_wrong() -> None:
    text = yaml.safe_dump_all([pod(), claim(count=1)])
    result = run(*MACHINE, "--write-fix", "1", text=text)
    assert result.exit_code == 2
    assert "every pod gets a node" in result.stderr


def test_of_several_causes_the_first_is_meant_and_others_are_named() -> None:
    other = pod(name="other")
    other["spec"] = {**other["spec"], "resourceClaims": [], "nodeSelector": {"zone": "a"}}
    other["spec"]["containers"] = [{"name": "c", "image": "x"}]
    text = yaml.safe_dump_all([pod(), claim(), other])
    first = run(*MACHINE, "--write-fix", "1", text=text)
    assert list(yaml.safe_load_all(first.stdout)) == [pod(), claim(count=8), other]
    assert first.stderr.endswith(
        "note: --write-fix 1 is about pod default/train, the first of 2 causes; name a pod for "
        "another: moor explain pod/other … --write-fix 1\n"
    )
    second = run(*MACHINE, "pod/other", "--write-fix", "1", text=text)
    assert "note" not in second.stderr
    written = list(yaml.safe_load_all(second.stdout))
    assert [each for each in written if each in (pod(), claim())] == [pod(), claim()]


# --- text that people wrote ---------------------------------------------------------------------

COMMENTED = """\
# Who trains: ask Ada.
---
apiVersion: v1   # the pod
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: c, image: "x:1e3", resources: {claims: [{name: g}]}}

  resourceClaims:
  - {name: g, resourceClaimName: gpus}
---
# Eight are the most that a node has.
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpus
  labels: {commit: "12e4"}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        count: 9  # too many
---
apiVersion: v1
kind: ConfigMap
metadata: {name: numbers}
data:
  text: |
    a: "b"   # no comment
"""


def test_comments_stay_where_single_values_change() -> None:
    written = run(*MACHINE, "--write-fix", "1", text=COMMENTED).stdout
    assert written == COMMENTED.replace("count: 9", "count: 8").replace("Ada.\n---\n", "Ada.\n")


def test_strings_that_look_like_numbers_stay_strings() -> None:
    """The claim is written anew, because its older version cannot have the change."""
    older = claim("v1beta1")
    older["metadata"]["labels"] = {"commit": "12e4", "octal": "0o17", "on": "on", "e": "1.5e3"}
    first, _ = fixed(older, pod())
    assert first["metadata"]["labels"] == older["metadata"]["labels"]
    text = run(*MACHINE, "--write-fix", "1", text=dump_yaml([older, pod()])).stdout
    # PyYAML reads some of them as strings, whatever other readers do.
    for value in older["metadata"]["labels"].values():
        assert f": '{value}'\n" in text


def test_numbers_with_fractions_are_written() -> None:
    item = {**MAP, "data": {"ratio": 1.5}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [item, pod(), claim()]}
    written = run(*MACHINE, "--write-fix", "1", text=yaml.safe_dump(listed)).stdout
    assert next(yaml.safe_load_all(written)) == item
    as_json = run(*MACHINE, "--write-fix", "1", "-o", "json", text=yaml.safe_dump(listed)).stdout
    assert json.loads(as_json)["items"][0] == item


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED.replace("count: 9 ", "count: &n 9 "),
        COMMENTED.replace("\n", "\r\n"),
        "%YAML 1.1\n" + COMMENTED,
        COMMENTED.replace("# too many", "#\ttoo many"),
        COMMENTED.replace("---\n#", "...\n---\n#"),
        COMMENTED.replace("apiVersion: v1   #", "--- {}\n---\napiVersion: v1   #"),
    ],
)
def test_odd_text_is_written_so_that_it_means_the_same(text: str) -> None:
    def meaning(given: str) -> list[Any]:
        return [tree for tree in yaml.safe_load_all(given) if tree]

    written = run(*MACHINE, "--write-fix", "1", text=text).stdout
    expected = meaning(text)
    expected[1]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 8
    assert meaning(written) == expected
