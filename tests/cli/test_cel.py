from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.cel import command

EXAMPLES = Path(__file__).parents[2] / "examples" / "gpu-node"

GPU = "gpu.example.com"
MODEL = f'device.attributes["{GPU}"].model'

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
"""


def slices(*models: str) -> str:
    return SLICE + "".join(
        f"  - name: gpu-{i}\n    attributes: {{model: {{string: {model}}}}}\n"
        for i, model in enumerate(models)
    )


def cel(expression: str, *arguments: str, text: str | None = None) -> Result:
    given = ["-f", "-"] if text is not None else ["-f", str(EXAMPLES)]
    return CliRunner().invoke(command, [expression, *given, *arguments], input=text)


# --- answers ------------------------------------------------------------------------------


def test_devices_that_match_are_listed_and_others_explained() -> None:
    result = cel(f'{MODEL} == "H200"', text=slices("H200", "A100", "H200"))
    assert result.exit_code == 0
    assert result.output == (
        "DRIVER           POOL    DEVICE  COST\n"
        "gpu.example.com  node-1  gpu-0   5\n"
        "gpu.example.com  node-1  gpu-2   5\n"
        "\n"
        f'no: {MODEL} == "H200" is false: model is "A100"\n'
        "    gpu.example.com/node-1/gpu-1\n"
        "\n"
        "2 of 3 devices match; cost 5, at most 5 by estimate, limit 1,000,000\n"
    )


def test_no_match_is_status_1() -> None:
    result = cel("false", text=slices("H200"))
    assert result.exit_code == 1
    assert "0 of 1 device match;" in result.output


def test_devices_with_the_same_explanation_are_grouped_unless_all_are_wanted() -> None:
    text = slices(*["A100"] * 40)
    result = cel(f'{MODEL} == "H200"', text=text)
    assert result.output.count("no:") == 1
    assert "    gpu.example.com/node-1/gpu-1\n    … and 38 more\n" in result.output
    assert cel(f'{MODEL} == "H200"', "--show-all", text=text).output.count("/gpu-") == 40


def test_many_explanations_that_differ_in_values_only_become_one() -> None:
    text = slices(*[f"M{i % 10}" for i in range(40)])
    result = cel(f'{MODEL} == "H200"', text=text)
    assert result.output.count("no:") == 1
    assert 'is false: model is "M0" (4), "M1" (4), "M2" (4), 7 other values' in result.output
    assert cel(f'{MODEL} == "H200"', "--show-all", text=text).output.count("no:") == 10


def test_a_run_time_error_comes_with_the_hint_of_kubernetes_and_its_origin() -> None:
    result = cel(f'device.driver != "" && {MODEL} == "H200"')
    assert result.exit_code == 0
    assert (
        f"error: {MODEL} has no value: no such key: model. consider using CEL optional chaining "
        "(.? followed by orValue()) or guarding the check with has() for optional fields\n"
        "    nic.example.com/node-1/nic-0\n"
        "    nic.example.com/node-1/nic-1\n"
    ) in result.output


def test_a_hyphen_in_a_name_is_explained() -> None:
    result = cel('device.attributes["a.example.com"].supported-models == "a"')
    assert (
        '\nhint: .supported-models is .supported minus models to CEL; write ["supported-models"]\n'
    ) in result.stderr


def test_a_compile_error_has_a_caret_and_status_1() -> None:
    result = cel("device.drvier == 'x'")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        "error: compilation failed: ERROR: <input>:1:7: undefined field 'drvier'\n"
        " | device.drvier == 'x'\n"
        " | ......^\n"
        "cause: the expression does not compile at 1:7: device.drvier does not exist: did you mean "
        "device.driver?\n"
    )


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_empty_expression_is_a_usage_error(expression: str) -> None:
    result = cel(expression)
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: EXPR is empty: 'true' selects every device\n")


@pytest.mark.parametrize(
    "expression", ["device == 1", "device.foo()", "size(device)", "device.attr(", "!device"]
)
def test_a_device_that_is_used_whole_is_no_misspelt_path(expression: str) -> None:
    result = cel(expression)
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: compilation failed: ERROR: <input>:1:")


@pytest.mark.parametrize("arguments", [("--derived",), ("--derived", "-o", "json")])
def test_a_list_of_an_attribute_and_other_values_wants_dyn(arguments: tuple[str, ...]) -> None:
    result = cel(f'[device.attributes["{GPU}"].model, "a" + "b", "c"]', *arguments)
    assert result.exit_code == 1
    written = f'[device.attributes["{GPU}"].model, dyn("a" + "b"), dyn("c")]'
    if "json" in arguments:
        assert json.loads(result.stdout)["repairs"][0]["expression"] == written
    else:
        assert result.stderr.endswith(
            f"did you mean: {written}\n"
            '    it compiles; write dyn("a" + "b"), dyn("c") instead of "a" + "b", "c"\n'
        )
    assert "4 of 6 devices have a value" in cel(written, "--derived").stdout


def test_an_expression_that_matches_none_is_repaired() -> None:
    result = cel(f'device.attributes["{GPU}"].modle == "h200"')
    assert result.exit_code == 1
    assert result.stdout.endswith(
        "cause: attribute modle does not exist: did you mean model? 4 of 6 devices have it; "
        'no device has model "h200": devices have "H200" (4); did you mean "H200"?\n'
        f'did you mean: device.attributes["{GPU}"].model == "H200"\n'
        f'    4 devices match; use device.attributes["{GPU}"].model instead of modle, and ask for '
        'model "H200", which 4 devices have, instead of "h200"\n'
    )


def test_an_amount_that_no_device_has_is_called_no_misspelling() -> None:
    result = cel(f'device.capacity["{GPU}"].memory.compareTo(quantity("1Ti")) >= 0')
    assert "cause: memory 1Ti is asked for, but devices have at most 141Gi\n" in result.stdout
    assert "nearest that matches: " in result.stdout


def test_json_has_the_cause_and_the_repairs() -> None:
    tree = json.loads(cel(f'device.capacity["{GPU}"].memory >= "40Gi"', "-o", "json").stdout)
    assert tree["cause"].endswith('memory is a quantity, but "40Gi" is a string')
    assert tree["repairs"][0] == {
        "text": f'use device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
        "kind": "syntax",
        "expression": f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
        "match": 4,
    }


def test_an_expression_that_is_no_selector_gives_values() -> None:
    result = cel(f'device.capacity["{GPU}"].?memory.hasValue() ? "large" : "small"')
    assert result.exit_code == 0
    assert 'gpu.example.com  node-1  gpu-0   "large"' in result.output
    assert "6 of 6 devices have a value" in result.output
    assert (
        "warning: Kubernetes refuses this as a selector: "
        "must evaluate to bool or the unknown type, not string\n"
    ) in result.output


def test_derived_attributes_must_have_a_value_everywhere() -> None:
    root = 'device.attributes["resource.kubernetes.io"].pcieRoot'
    assert cel(root, "--derived").exit_code == 0
    failed = cel(MODEL, "--derived")
    assert failed.exit_code == 1
    assert "4 of 6 devices have a value" in failed.output
    refused = cel("1.5", "--derived")
    assert refused.exit_code == 1
    assert "must evaluate to a primitive scalar" in refused.stderr


def test_an_expression_over_the_cost_limit_is_refused() -> None:
    loops = "true"
    for _ in range(4):
        loops = f"{MODEL}.all(x, {loops})"
    result = cel(f"false && {loops}")
    assert result.exit_code == 1
    assert "Kubernetes refuses this as a selector: too complex, exceeds cost limit" in result.output


# --- output -------------------------------------------------------------------------------


def test_names_can_be_given_to_other_programs() -> None:
    result = cel(f'device.driver == "{GPU}"', "-o", "name")
    assert result.output.splitlines() == [f"device/{GPU}/node-1/gpu-{i}" for i in range(4)]


def test_wide_output_tells_node_and_slice() -> None:
    result = cel(f'device.driver == "{GPU}"', "-o", "wide")
    header, first, *_ = result.output.splitlines()
    assert header.split() == ["DRIVER", "POOL", "DEVICE", "COST", "NODE", "SLICE"]
    assert first.split() == [GPU, "node-1", "gpu-0", "4", "node-1", "node-1-gpu.example.com"]


def test_json_has_every_device_with_its_reasons() -> None:
    result = cel(f'{MODEL} == "H200"', "-o", "json", text=slices("H200", "A100"))
    report = json.loads(result.output)
    match, no_match = report["devices"]
    assert (match["device"], match["outcome"], match["cost"]) == ("gpu-0", "match", 5)
    assert no_match["reasons"] == [
        {
            "text": f'{MODEL} == "H200" is false: model is "A100"',
            "part": f'{MODEL} == "H200"',
            "detail": "",
            "values": {MODEL: '"A100"'},
        }
    ]
    assert report["summary"] == {
        "devices": 2,
        "match": 1,
        "noMatch": 1,
        "value": 0,
        "error": 0,
        "costMin": 5,
        "costMax": 5,
        "costEstimate": 5,
        "costLimit": 1_000_000,
        "slicesOutdated": 0,
        "objectsIgnored": 0,
    }


def test_json_has_values_as_json_has_them() -> None:
    result = cel(f'[{MODEL}.size(), device.driver == "x" ? 1 : 2]', "-o", "json", text=slices("A"))
    assert json.loads(result.output)["devices"][0]["value"] == [1, 2]
    assert json.loads(cel("1 +", "-o", "json").output)["error"].startswith("compilation failed")


# --- gates and strictness -----------------------------------------------------------------


def test_gates_decide_what_new_expressions_may_use() -> None:
    expression = f'{MODEL}.exists(m, m == "H200")'
    assert cel(expression, text=slices("H200")).exit_code == 1  # a scalar is nothing to loop over
    refused = cel(expression, "--gates-preset", "kubernetes-1.37", text=slices("H200"))
    assert "compilation failed" in refused.stderr


def test_strictly_a_device_has_no_name() -> None:
    assert cel('device.name == "gpu-0"', text=slices("H200")).exit_code == 0
    strict = cel('device.name == "gpu-0"', "--strict", text=slices("H200"))
    assert "undefined field 'name'" in strict.stderr


# --- files --------------------------------------------------------------------------------


def test_other_kinds_are_left_out_with_a_count() -> None:
    text = slices("H200") + "---\napiVersion: v1\nkind: ConfigMap\n---\nkind: Thing\n"
    result = cel("true", text=text)
    assert result.exit_code == 0
    assert result.output.endswith("left out: 2 objects of other kinds\n")


def test_older_generations_of_a_pool_are_left_out_with_a_count() -> None:
    text = slices("H200") + "---\n" + slices("A100").replace("generation: 1", "generation: 2")
    result = cel("true", text=text)
    assert "1 of 1 device matches;" in result.output
    assert result.output.endswith("left out: 1 slice of an older generation of the pool\n")


def test_files_without_devices_match_nothing() -> None:
    result = cel("true", text="apiVersion: v1\nkind: ConfigMap\n")
    assert result.exit_code == 1
    assert "0 of 0 devices match;" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "<stdin>:1:9: "),
        (SLICE.replace("driver: gpu.example.com", "driver: [1]"), "<stdin>:5:3: spec.driver: "),
    ],
)
def test_what_cannot_be_read_is_status_3(text: str, message: str) -> None:
    result = cel("true", text=text)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"error: {message}")


def test_an_expression_that_is_no_text_is_wrong_usage() -> None:
    result = cel("device.driver == '\udcff'")
    assert result.exit_code == 2
    assert "EXPR is not valid UTF-8" in result.stderr


def test_an_expression_that_is_too_long_is_refused() -> None:
    result = cel(f'device.driver == "{"x" * 10240}"')
    assert result.exit_code == 1
    assert result.stderr == "error: Too long: may not be more than 10240 bytes\n"


def test_files_after_one_that_cannot_be_read_are_still_read() -> None:
    arguments = ["true", "-f", "-", "-f", str(EXAMPLES)]
    result = CliRunner().invoke(command, arguments, input="a: [1")
    assert result.exit_code == 3
    assert "6 of 6 devices match" in result.stdout


def test_an_expression_and_a_file_are_required() -> None:
    assert CliRunner().invoke(command, ["true"]).exit_code == 2
    assert CliRunner().invoke(command, ["-f", str(EXAMPLES)]).exit_code == 2


# --- where devices come from --------------------------------------------------------------


def test_devices_of_profiles_and_clusters_are_asked_together() -> None:
    arguments = ["device.driver.startsWith('gpu.')", "-o", "name"]
    both = [*arguments, "--profile", "dgx-h100", "--on", str(EXAMPLES)]
    result = CliRunner().invoke(command, both)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 8 + 4


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--profile", "dgx-h100=0"), 2, "the count must be a number from 1 to 10,000"),
        ((), 2, "nothing to look at: give -f, --on, --live or --profile"),
        (("--on", "nowhere"), 3, "error: nowhere: no such file or directory\n"),
        (("--live", "--kubeconfig", "nowhere"), 3, "error: cluster: kubeconfig"),
        (("-n", "x"), 2, "No such option"),
    ],
)
def test_bad_sources_are_one_line(arguments: tuple[str, ...], status: int, message: str) -> None:
    result = CliRunner().invoke(command, ["true", *arguments])
    assert result.exit_code == status
    assert message in result.stderr
