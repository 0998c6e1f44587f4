"""`import moorage`: load, plan, explain, fit, what_if, devices, claims."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import moorage
from moorage.api.codec import encode_json
from moorage.cli.main import moor
from moorage.hardware import Catalogue

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "examples" / "training"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "two"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
            ]
        }
    },
}


@pytest.fixture(scope="module")
def world() -> moorage.World:
    return moorage.load(TRAINING, profile="dgx-h100")


def printed(*arguments: str) -> Any:
    """Return the JSON that a command prints for the same cluster."""
    given = ["-f", str(TRAINING), "--profile", "dgx-h100", "-o", "json"]
    return json.loads(CliRunner().invoke(moor, [*arguments, *given]).stdout)


# --- the same answers as the commands -------------------------------------------------------------


def test_a_plan_is_that_of_the_command(world: moorage.World) -> None:
    assert world.plan().to_dict() == printed("plan")


def test_an_explanation_is_that_of_the_command(world: moorage.World) -> None:
    explanation = world.plan().pending[0].explain()
    assert explanation.to_dict() == printed("explain")["pending"][0]
    assert explanation.cause.startswith("request gpus wants 3 devices with one")
    assert [fix.is_change for fix in explanation.fixes] == [True, False, True, True, False]
    assert explanation.fixes[3].gives_up == "runs fewer replicas"
    (whole,) = world.plan().explain()
    assert whole.to_dict() == explanation.to_dict()


def test_a_fit_is_that_of_the_command(world: moorage.World) -> None:
    found = world.fit("deployment/training")
    assert found.to_dict() == printed("fit", "deployment/training")
    assert (found.total, found.by_node) == (1, {"dgx-h100-0": 1})
    assert (found.wanted, found.running, found.more) == (2, 0, 0)
    headline = "Deployment default/training: 1 replica fits (2 wanted): 1 too few"
    assert str(found).startswith(f"{headline}\n")
    assert headline in found._repr_html_()
    assert found.left_over["gpus"] == 37.5


def test_what_if_is_that_of_the_command(world: moorage.World) -> None:
    found = world.what_if(drain="dgx-h100-0")
    tree = printed("whatif", "--drain", "dgx-h100-0")
    assert found.to_dict() == tree
    assert found.is_worse
    assert len(found.worse) == tree["summary"]["worse"]


def test_a_pod_that_stays_on_its_node_moves_to_other_devices(world: moorage.World) -> None:
    texts = [str(each) for each in world.what_if(add_profile="dgx-h100").pods]
    assert "pod default/notebook-1 moves, dgx-h100-0 → dgx-h100-1" in texts
    assert "pod default/training-0 moves, to other devices on dgx-h100-0" in texts


def test_devices_and_claims_are_those_of_the_commands(world: moorage.World) -> None:
    assert world.devices().to_dict() == printed("devices")
    assert world.claims().to_dict() == printed("claims", "-A")


# --- loading --------------------------------------------------------------------------------------


def test_manifests_are_files_or_mappings(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(json.dumps(POD), encoding="utf-8")
    for source in (str(path), path, POD, {"apiVersion": "v1", "kind": "List", "items": [POD]}):
        (pod,) = moorage.load(source, profile="dgx-h100").plan().placed
        assert (pod.name, pod.namespace, pod.node) == ("web", "default", "dgx-h100-0")


def test_a_dump_is_a_cluster_to_plan_on(tmp_path: Path) -> None:
    fleet = Catalogue().fleet("dgx-h100")
    objects = (*fleet.nodes, *fleet.classes, *fleet.slices)
    dump = tmp_path / "cluster.yaml"
    dump.write_bytes(b"\n---\n".join(map(encode_json, objects)))
    world = moorage.load(TRAINING, on=dump)
    assert len(world.plan().placed) == 3
    assert world.plan().to_dict() == printed("plan")


def test_a_claim_alone_is_planned_for_a_pod_that_stands_for_it() -> None:
    plan = moorage.load(CLAIM, profile="dgx-h100").plan()
    assert plan.pods == ()
    (pod,) = plan.stand_ins
    assert isinstance(pod, moorage.PlacedPod)
    assert pod.stands_for == "claim/two"
    assert plan.pod("claim/two") == pod
    assert plan.fits
    assert "claim/two, which no pod uses, on dgx-h100-0: " in str(plan)
    assert pod.requests == {
        "gpu": ("gpu.nvidia.com/dgx-h100-0/gpu-0", "gpu.nvidia.com/dgx-h100-0/gpu-1")
    }


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "nothing to load"),
        ({"on": "missing.yaml"}, "missing.yaml: no such file or directory"),
        ({"on": "-"}, "standard input is for commands"),
        ({"profile": "dgx-h1000"}, "dgx-h1000"),
        ({"profile": "dgx-h100", "feature_gates": {"Nonsense": True}}, "Nonsense"),
        ({"profile": "dgx-h100", "now": datetime(2026, 1, 1)}, "time zone"),
        ({"profile": "dgx-h100", "feature_gates": {"DRAPrioritizedList": "no"}}, "True or False"),
        ({"profile": "dgx-h100", "gates_preset": "gke"}, "must be one of moorage, kubernetes-1.37"),
        ({"profile": "dgx-h100", "numa_node": "both"}, "must be one of scalar, list"),
        ({"profile": "dgx-h100", "on_refused": "drop"}, "must be one of raise, keep"),
        ({"profile": "dgx-h100", "emulated_version": "1.99"}, "1.99"),
        ({"profile": "dgx-h100", "scheduler_config": "missing.yaml"}, "missing.yaml"),
        (
            {"profile": "dgx-h100", "numa_node": "list", "gates_preset": "kubernetes-1.37"},
            "DRAListTypeAttributes is off, .*; use numa_node='scalar', or feature_gates=",
        ),
    ],
)
def test_what_cannot_be_loaded_is_an_error_of_one_tree(options: Any, error: str) -> None:
    with pytest.raises(moorage.MoorageError, match=error):
        moorage.load(**options)


def test_a_manifest_that_is_refused_raises_with_place_and_fact() -> None:
    wrong = {**CLAIM, "spec": {"devices": {"requests": [{"name": "NO"}]}}}
    with pytest.raises(moorage.ObjectsRefusedError) as found:
        moorage.load(wrong, profile="dgx-h100")
    assert "spec.devices.requests[0].name: Invalid value" in found.value.messages[0]
    assert found.value.messages[0].startswith("<mapping 1>:")


def test_what_is_refused_can_be_kept_and_explained() -> None:
    wrong = {**POD, "spec": {"containers": [{"name": "NO", "image": "x"}]}}
    world = moorage.load(wrong, profile="dgx-h100", on_refused="keep")
    assert len(world.refused) == 1
    (pod,) = world.plan().pending
    assert "NO" in pod.explain().cause


@pytest.mark.parametrize("source", [{"a": object()}, {"kind": {1, 2}}, {}])
def test_a_mapping_that_is_no_manifest_is_an_error(source: Any) -> None:
    with pytest.raises(moorage.MoorageError, match="<mapping 1>"):
        moorage.load(source, profile="dgx-h100")


def test_what_is_odd_is_warned_about() -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    with pytest.warns(moorage.MoorageWarning, match=r"Thing \(example.com/v1\) is not known"):
        world = moorage.load(unknown, POD, profile="dgx-h100")
    assert len(world.warnings) == 1
    assert world.warnings[0] in str(world)


# --- a chain of questions -------------------------------------------------------------------------


def test_a_fix_gives_manifests_that_fit(world: moorage.World) -> None:
    best, advice, *_ = world.plan().pending[0].explain().fixes
    assert moorage.load(*best.manifests(), profile="dgx-h100").plan().fits
    assert yaml.safe_dump_all(best.manifests())
    with pytest.raises(moorage.MoorageError, match="advice, which no change of objects can do"):
        advice.manifests()


def test_after_a_plan_there_is_a_world_with_its_decisions(world: moorage.World) -> None:
    after = world.plan().after
    assert len(after.devices().where('device.driver == "gpu.nvidia.com"').free) == 3
    taken = after.devices().in_state("taken")
    assert {claim for device in taken for claim in device.claims} == {
        f"default/{name}"
        for name in ("notebook-0-gpu-0", "notebook-1-gpu-0", "training-0-devices-0")
    }
    assert after.plan().pending[0].full_name == "default/training-1"


def test_devices_are_a_sequence(world: moorage.World) -> None:
    devices = world.devices()
    gpus = devices.where('device.driver == "gpu.nvidia.com"')
    assert len(devices) == 24
    assert len(gpus) == 8
    assert [device.name for device in gpus[:2]] == ["gpu-0", "gpu-1"]
    assert gpus[-1].name == "gpu-7"
    assert isinstance(gpus[2:], moorage.Devices)
    assert gpus[0].attributes["productName"] == "NVIDIA H100 80GB HBM3"
    assert gpus[0].capacity == {"memory": "81559Mi"}
    assert [each.id for each in devices.of_class("gpu.nvidia.com")] == [each.id for each in gpus]
    assert devices.counts()["dgx-h100-0", "gpu.nvidia.com"]["free"] == 8


def test_questions_about_what_there_is_not_are_errors_with_a_hint(world: moorage.World) -> None:
    devices, plan = world.devices(), world.plan()
    for ask, error in (
        (lambda: devices.where("device.drive"), "undefined field"),
        (lambda: devices.of_class("gpu.nvidia.co"), "did you mean gpu.nvidia.com"),
        (lambda: devices.in_state("gone"), "must be one of free, shared"),
        (lambda: plan.pod("training-3"), "did you mean training-"),
        (lambda: world.fit("deployment/trainin"), "did you mean default/training"),
        (lambda: world.fit("deploymnt/training"), "did you mean deployment"),
        (lambda: world.fit(), None),
        (lambda: world.fit("pod/notebook-0", replicas_max=0), "must be at least 1"),
        (lambda: world.what_if(), "nothing is changed: give one of add, "),
        (lambda: world.what_if(drain="dgx"), "there is no node dgx; did you mean dgx-h100-0"),
        (lambda: world.what_if(taint_node="x"), "taint_node x: must be of the form"),
        (lambda: world.what_if(add="missing.yaml"), "missing.yaml: no such file"),
    ):
        with pytest.raises(moorage.MoorageError, match=error):
            ask()


def test_a_walk_over_devices_renders_none(
    world: moorage.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("moorage.library.inventory.device_tree")
    devices = world.devices()
    assert sum(each.is_free for each in devices) == 24
    assert repr(devices) == "<Devices: 24 devices, 24 free>"


def test_an_expression_that_fails_for_devices_is_warned_about(world: moorage.World) -> None:
    text = 'device.attributes["gpu.nvidia.com"].brand == "Nvidia"'
    concern = "16 devices give an error, such as dra.*: no such key: brand.*scheduling aborts"
    with pytest.warns(moorage.MoorageWarning, match=concern):
        assert len(world.devices().where(text)) == 8


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"profile": 5}, "profile: expected str or Iterable, not int 5"),
        ({"profile": [5]}, "profile: expected str, not int 5"),
        ({"profile": "x", "feature_gates": "A=true"}, "feature_gates: expected Mapping or None"),
        ({"profile": "x", "emulated_version": 1.37}, "emulated_version: expected str, not float"),
        ({"profile": "x", "now": "today"}, "now: expected datetime or None, not str 'today'"),
    ],
)
def test_options_of_wrong_types_are_type_errors(options: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        moorage.load(**options)


def test_arguments_of_wrong_types_are_type_errors(world: moorage.World) -> None:
    number: Any = 3
    files: Any = ["a"]
    manifest: Any = {"kind": "Node"}
    for ask, error in (
        (lambda: moorage.load(files), "source 1: expected str or PathLike or Mapping, not list"),
        (lambda: world.fit(number), "subject: expected str or None, not int 3"),
        (lambda: world.what_if(drain=number), "drain: expected str, not int 3"),
        (lambda: world.what_if(add=manifest), "add: expected str, not dict"),
        (lambda: world.devices().where(number), "expression: expected str, not int 3"),
    ):
        with pytest.raises(TypeError, match=error):
            ask()


def test_a_plan_of_nothing_says_why() -> None:
    running = moorage.load(ROOT / "examples" / "two-nodes").plan()
    assert str(running) == "Nothing to plan: none of 3 pods waits for a node."
    empty = moorage.load(profile="dgx-h100").plan()
    assert repr(empty) == "<Plan: Nothing to plan: there are no pods, and nothing that makes any.>"


def test_results_are_values(world: moorage.World) -> None:
    devices, after = world.devices(), world.plan().after
    assert devices == world.devices()
    assert devices[0] in devices
    assert devices[0] != devices[1]
    assert len({devices[0], world.devices()[0], devices[1]}) == 2
    taken = {each for each in after.devices() if each not in devices}
    assert len(taken) == 6
    assert after.claims()[0] in set(after.claims())
    assert world.plan().pods == world.plan().pods
    assert world.plan() != moorage.load(TRAINING, profile="dgx-h100x2").plan()
    assert world != moorage.load(TRAINING, profile="dgx-h100")  # may be another cluster


def test_a_world_and_its_devices_can_be_sent_to_another_process(world: moorage.World) -> None:
    sent = pickle.loads(pickle.dumps(world))
    assert sent.plan() == world.plan()
    for each in (world.devices()[0], world.devices(), world.fit("deployment/training")):
        assert pickle.loads(pickle.dumps(each)) == each


def test_plans_and_explanations_can_be_pickled_and_go_on_answering(world: moorage.World) -> None:
    plan = world.plan()
    unasked = pickle.loads(pickle.dumps(plan))  # before anybody asked it anything
    explained = plan.pending[0].explain()
    assert unasked == plan
    assert unasked.pending[0].explain() == explained
    assert unasked.better_order == plan.better_order
    assert unasked.after.devices() == plan.after.devices()
    for each in (plan, *plan.pods, explained, *explained.fixes, world.what_if(cordon="dgx-h100-0")):
        assert pickle.loads(pickle.dumps(each)) == each
    sent = pickle.loads(pickle.dumps(explained))
    assert str(sent) == str(explained)
    changes = [each.manifests() for each in explained.fixes if each.is_change]
    assert changes
    assert [each.manifests() for each in sent.fixes if each.is_change] == changes


def test_no_question_changes_a_world(world: moorage.World) -> None:
    before = world.plan().to_dict()
    world.fit("deployment/training")
    world.what_if(remove_node="dgx-h100-0")
    moorage.simulate(world, [{"arrival": 0, "workload": "pod/notebook-0", "duration": 5}])
    assert world.plan().to_dict() == before


def test_results_have_a_text(world: moorage.World) -> None:
    plan = world.plan()
    assert str(plan).splitlines()[0] == "3 pods of 4 placed"
    assert repr(plan) == "<Plan: 3 pods of 4 placed>"
    assert str(plan.pending[0].explain()).startswith("pod default/training-1: request gpus wants 3")
    assert plan.better_order is not None
    assert plan.better_order[0] == "default/training-0"


# --- importing ------------------------------------------------------------------------------------


def modules_after(program: str) -> set[str]:
    text = f"import sys; before = set(sys.modules); {program}; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_importing_imports_nothing_else() -> None:
    assert modules_after("import moorage") == {"moorage"}
    assert modules_after("import moorage; moorage.__version__; dir(moorage)") == {"moorage"}


def test_the_facade_needs_neither_click_nor_http() -> None:
    used = modules_after("import moorage; moorage.load(profile='dgx-h100').plan()")
    roots = {name.partition(".")[0] for name in used}
    assert roots.isdisjoint({"click", "httptools", "grpc", "uvicorn"})
    assert not any(name.startswith(("moorage.cli.", "moorage.cluster.")) for name in used)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'moorage' has no attribute 'lod'"):
        moorage.lod  # type: ignore[attr-defined]  # noqa: B018
