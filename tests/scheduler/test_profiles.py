"""Profiles of a KubeSchedulerConfiguration: pods go where Kubernetes' scheduler sends them.

`data/profiles.json` has a small cluster, profiles, pods, and the answer of kube-scheduler 1.37 for
each pod of each profile: its node, or the message. Answers that depended on chance are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.core.service import Service
from moorage.api.gates import Gates, Preset
from moorage.api.object_reader import read_tree
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import Features
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, Profile
from moorage.scheduler.profiles import profiles_of, refusals
from moorage.scheduler.scheduling_cycle import Placed, schedule
from moorage.validation.scheduler_configuration import default_scheduler_configuration

Tree = dict[str, Any]

DATA: Tree = json.loads((Path(__file__).parent / "data/profiles.json").read_text())
GATES = Gates.parse("DRAExtendedResource=true", preset=Preset.KUBERNETES)
NAMES = [profile["schedulerName"] for profile in DATA["profiles"]]


def configuration(*profiles: Tree, **fields: Any) -> KubeSchedulerConfiguration:
    tree = {"profiles": list(profiles), **fields}
    return decode_tree(tree, KubeSchedulerConfiguration).value


def made(profiles: tuple[Profile, ...]) -> Cluster:
    cluster = Cluster(Features.of(GATES), profiles=profiles)
    put: dict[str, Callable[[Any], None]] = {
        "Node": cluster.put_node,
        "DeviceClass": cluster.put_class,
        "ResourceSlice": cluster.put_slice,
        "ResourceClaim": cluster.put_claim,
        "Pod": cluster.put_pod,
    }
    cluster.snapshot.put_namespace("default", {})
    for tree in DATA["objects"]:
        if tree["kind"] == "Service":
            cluster.default_selectors.put(decode_tree(tree, Service).value)
        else:
            put[tree["kind"]](read_tree(tree, gates=GATES).value)
    return cluster


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """All profiles in one cluster: whatever is kept for pods is kept for one profile."""
    return made(profiles_of(configuration(*DATA["profiles"]), GATES))


def answer(cluster: Cluster, name: str, profile: str) -> str:
    tree = DATA["pods"][name]
    spec = {**tree["spec"], "schedulerName": profile}
    value = read_tree({**tree, "spec": spec}, gates=GATES).value
    assert isinstance(value, Pod)
    found = schedule(cluster, value)
    return found.node if isinstance(found, Placed) else found.message


@pytest.mark.parametrize("profile", NAMES)
def test_pods_of_a_profile_go_where_kubernetes_sends_them(cluster: Cluster, profile: str) -> None:
    expected = DATA["answers"][profile]
    assert {name: answer(cluster, name, profile) for name in expected} == expected


def test_a_configuration_that_says_nothing_gives_the_default_profile() -> None:
    (profile,) = profiles_of(configuration(), Gates.parse(""))
    fields = DEFAULT_PROFILE.__struct_fields__
    assert {each: getattr(profile, each) for each in fields} == {
        each: getattr(DEFAULT_PROFILE, each) for each in fields
    }


# --- what is refused ------------------------------------------------------------------------------


def refused(profile: Tree, gates: Gates = GATES, **fields: Any) -> list[str]:
    file = default_scheduler_configuration(configuration(profile, **fields), gates=gates)
    return refusals(file, gates)


def off(*names: str) -> Tree:
    return {"disabled": [{"name": name} for name in names]}


def on(*names: str) -> Tree:
    return {"enabled": [{"name": name} for name in names]}


PLUGINS = "profiles[0].plugins"
UNKNOWN = "does not exist: only the plugins of Kubernetes can be run"


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ({"score": off("*"), "preScore": off("*")}, []),
        ({"score": off("*"), "preScore": off("*"), "postFilter": off("*")}, []),
        ({"multiPoint": off("DynamicResources")}, []),
        ({"filter": off("NodeResourcesFit", "Unknown")}, []),
        ({"score": on("Mine")}, [f'{PLUGINS}.score.enabled[0]: plugin "Mine" {UNKNOWN}']),
        ({"multiPoint": on("Mine")},
         [f'{PLUGINS}.multiPoint.enabled[20]: plugin "Mine" {UNKNOWN}']),
        ({"filter": on("ImageLocality")},
         [(f'{PLUGINS}.filter.enabled[0]: plugin "ImageLocality" does not extend FilterPlugin '
           "plugin")]),
        ({"filter": on("NodeName", "NodeName")},
         [f'{PLUGINS}.filter.enabled[1]: plugin "NodeName" already registered']),
        ({"queueSort": off("*")},
         [f"{PLUGINS}.queueSort: PrioritySort must be enabled, and is the only plugin for it"]),
        ({"bind": off("DefaultBinder")},
         [f"{PLUGINS}.bind: DefaultBinder must be enabled, and is the only plugin for it"]),
        ({"filter": off("DynamicResources")},
         [(f"{PLUGINS}.filter: DynamicResources cannot be off here while it is on at preEnqueue, "
           "preFilter, reserve, preBind")]),
        ({"preFilter": off("NodePorts")},
         [f"{PLUGINS}.preFilter: NodePorts cannot be off here while it is on at filter"]),
        ({"preScore": off("TaintToleration", "NodeResourcesFit")},
         [f"{PLUGINS}.preScore: TaintToleration cannot be off here while it is on at score"]),
        ({"preEnqueue": off("DefaultPreemption")},
         [(f"{PLUGINS}.preEnqueue: DefaultPreemption cannot be off here while it is on at "
           "postFilter")]),
        ({"postFilter": on("DefaultPreemption")},
         [f"{PLUGINS}.postFilter: DynamicResources must come before DefaultPreemption"]),
        ({"permit": on("GangScheduling"), "preEnqueue": on("GangScheduling")},
         [(f"{PLUGINS}.permit: GangScheduling needs the feature gate GenericWorkload, which is "
           "off")]),
    ],
)  # fmt: skip
def test_plugins_that_cannot_be_run_like_this_are_refused(
    plugins: Tree, expected: list[str]
) -> None:
    assert refused({"plugins": plugins}) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"name": "Mine", "args": {}}, f'profiles[0].pluginConfig[0]: plugin "Mine" {UNKNOWN}'),
        ({"name": "ImageLocality", "args": {"a": 1}},
         'profiles[0].pluginConfig[0].args: plugin "ImageLocality" has no arguments'),
        ({"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}},
         ("profiles[0].pluginConfig[0].args.bindTimeoutSeconds: volumes are not bound by this "
          "scheduler, so only the default can be set")),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_obeyed_are_refused(config: Tree, expected: str) -> None:
    assert refused({"pluginConfig": [config]}) == [expected]


def test_extenders_are_refused() -> None:
    assert refused({}, extenders=[{"urlPrefix": "http://localhost"}]) == [
        "extenders: extenders are not called: only the plugins of Kubernetes decide where pods go"
    ]


def test_groups_need_their_plugin_while_their_gate_is_on() -> None:
    gates = Gates.parse("GenericWorkload=true", preset=Preset.KUBERNETES)
    found = refused({"plugins": {"multiPoint": off("GangScheduling")}}, gates)
    text = "GangScheduling cannot be off while the feature gate GenericWorkload is on"
    assert found == [f"profiles[0].plugins.permit: {text}"]
