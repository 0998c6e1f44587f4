"""The scheduler's configuration: defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import decode_tree, to_tree
from moorage.api.field_path import root
from moorage.api.gates import Gate, Gates, Preset
from moorage.api.scheduler_config import (
    KubeSchedulerConfiguration,
    dynamic_resources_args,
)
from moorage.api.scheduler_plugin_args import DynamicResourcesArgs
from moorage.validation.scheduler_configuration import (
    default_scheduler_configuration,
    unknown_arguments,
    validate_scheduler_configuration,
)
from moorage.validation.scheduler_plugin_args import validate_dynamic_resources_args
from tests.validation.pods import ALL_OFF, GATES, texts, without

Tree = dict[str, Any]


def configuration(*, gates: Gates = GATES, **fields: Any) -> KubeSchedulerConfiguration:
    value = decode_tree(fields, KubeSchedulerConfiguration).value
    return default_scheduler_configuration(value, gates=gates)


def with_args(**args: Any) -> Tree:
    return {"profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": args}]}]}


def found(config: KubeSchedulerConfiguration, gates: Gates = GATES) -> list[str]:
    return texts(validate_scheduler_configuration(config, gates=gates))


ARGS_BY_DEFAULT: Tree = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
    "InterPodAffinity": {
        "hardPodAffinityWeight": 1,
        "ignorePreferredTermsOfExistingPods": False,
    },
    "NodeAffinity": {},
    "NodeResourcesBalancedAllocation": {
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    },
    "NodeResourcesFit": {
        "scoringStrategy": {
            "type": "LeastAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    },
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {
        "bindTimeoutSeconds": 600,
        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
    },
}


def test_an_empty_configuration_gets_what_kubernetes_writes_for_it() -> None:
    tree = to_tree(configuration(gates=Gates.parse("", preset=Preset.KUBERNETES)))
    (profile,) = tree.pop("profiles")
    assert tree == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "clientConnection": {
            "contentType": "application/vnd.kubernetes.protobuf",
            "qps": 50,
            "burst": 100,
        },
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "kube-scheduler",
            "resourceNamespace": "kube-system",
        },
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
    }
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["pluginConfig"] == [
        {
            "name": name,
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": f"{name}Args",
                **args,
            },
        }
        for name, args in ARGS_BY_DEFAULT.items()
    ]
    enabled = profile["plugins"]["multiPoint"]["enabled"]
    assert [(each["name"], each.get("weight", 0)) for each in enabled] == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeName", 0),
        ("NodeUnschedulable", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    ]
    assert found(configuration()) == []


def test_what_is_given_is_kept() -> None:
    config = configuration(**with_args(bindingTimeout="60s"), parallelism=2)
    assert config.parallelism == 2
    assert dynamic_resources_args(config.profiles[0]) == DynamicResourcesArgs(
        filter_timeout="10s", binding_timeout="60s"
    )


def test_timeouts_of_disabled_features_are_not_set() -> None:
    gates = without(Gate.DRA_SCHEDULER_FILTER_TIMEOUT, Gate.DRA_DEVICE_BINDING_CONDITIONS)
    (profile,) = configuration(gates=gates).profiles
    assert dynamic_resources_args(profile) == DynamicResourcesArgs()
    (profile,) = configuration(gates=ALL_OFF).profiles
    assert dynamic_resources_args(profile) is None


def test_names_are_only_given_to_a_single_profile() -> None:
    assert found(configuration(profiles=[{}, {"schedulerName": "b"}])) == [
        "profiles[0].schedulerName: Required value"
    ]


ARGS = "profiles[0].pluginConfig[0].args"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"bindingTimeout": "1s"}, []),
        ({"bindingTimeout": "60s", "filterTimeout": "0"}, []),
        ({"bindingTimeout": "0.5s"},
         [f'{ARGS}.bindingTimeout: Invalid value: "500ms": must be at least 1 second']),
        ({"bindingTimeout": "-1m"},
         [f'{ARGS}.bindingTimeout: Invalid value: "-1m0s": must be at least 1 second']),
        ({"filterTimeout": "-1s"},
         [f'{ARGS}.filterTimeout: Invalid value: "-1s": must be zero or positive']),
    ],
)  # fmt: skip
def test_timeouts_have_bounds(args: Tree, expected: list[str]) -> None:
    assert found(configuration(**with_args(**args))) == expected


@pytest.mark.parametrize(
    ("gate", "args", "expected"),
    [
        (Gate.DRA_SCHEDULER_FILTER_TIMEOUT, {"filterTimeout": "5s"},
         [(f"{ARGS}.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is "
           "disabled")]),
        (Gate.DRA_DEVICE_BINDING_CONDITIONS, {"bindingTimeout": "60s"},
         [(f"{ARGS}.bindingTimeout: Forbidden: DRADeviceBindingConditions or "
           "DRAResourceClaimDeviceStatus feature gate is disabled")]),
        (Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS, {"bindingTimeout": "60s"},
         [(f"{ARGS}.bindingTimeout: Forbidden: DRADeviceBindingConditions or "
           "DRAResourceClaimDeviceStatus feature gate is disabled")]),
    ],
)  # fmt: skip
def test_timeouts_of_disabled_features_are_refused(
    gate: Gate, args: Tree, expected: list[str]
) -> None:
    gates = without(gate)
    assert found(configuration(gates=gates, **with_args(**args)), gates) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"parallelism": 0},
         [("parallelism: Invalid value: 0: should be an integer value greater than zero")]),
        ({"percentageOfNodesToScore": 101},
         ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
        ({"podInitialBackoffSeconds": 0},
         ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"]),
        ({"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
         [("podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to "
           "PodInitialBackoffSeconds")]),
        ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
         ["profiles[1].schedulerName: Duplicate value: {}"]),
        ({"profiles": [{"percentageOfNodesToScore": -1}]},
         [("profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range "
           "[0-100]")]),
        ({"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]}]},
         ['profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"']),
    ],
)  # fmt: skip
def test_configurations_that_are_wrong_are_refused(fields: Tree, expected: list[str]) -> None:
    assert found(configuration(**fields)) == expected


def test_a_configuration_without_profiles_is_refused() -> None:
    assert found(KubeSchedulerConfiguration(parallelism=1))[0] == "profiles: Required value"


def test_arguments_can_be_checked_by_themselves() -> None:
    args = DynamicResourcesArgs(binding_timeout="1ms")
    assert texts(validate_dynamic_resources_args(args, root("args"), gates=GATES)) == [
        'args.bindingTimeout: Invalid value: "1ms": must be at least 1 second'
    ]


def with_plugin(name: str, **args: Any) -> Tree:
    return {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}


SPREAD = f"{ARGS}.defaultConstraints"
STRATEGY = f"{ARGS}.scoringStrategy"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (with_plugin("DefaultPreemption", minCandidateNodesPercentage=101),
         [f"{ARGS}.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"]),
        (with_plugin(
            "DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0
         ),
         [(f"{ARGS}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time "
           "as minCandidateNodesAbsolute"),
          (f"{ARGS}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time "
           "as minCandidateNodesPercentage")]),
        (with_plugin("InterPodAffinity", hardPodAffinityWeight=101),
         [f"{ARGS}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"]),
        (with_plugin("NodeAffinity", addedAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Foo"}]}]
            }
         }),
         [(f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
           ".nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Foo\": "
           'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"')]),
        (with_plugin("NodeResourcesBalancedAllocation",
                     resources=[{"name": "cpu", "weight": 2}, {"name": "cpu"}]),
         [f"{ARGS}.resources[0].weight: Invalid value: 2: must be 1",
          f'{ARGS}.resources[1].name: Duplicate value: "cpu"']),
        (with_plugin("PodTopologySpread", defaultingType="Foo"),
         [(f'{ARGS}.defaultingType: Unsupported value: "Foo": supported values: "System", '
           '"List"')]),
        (with_plugin("PodTopologySpread", defaultConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
         ]),
         [(f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not '
           "empty")]),
        (with_plugin("PodTopologySpread", defaultingType="List", defaultConstraints=[
            {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""},
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "X", "labelSelector": {}},
         ]),
         [f"{SPREAD}[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
          f"{SPREAD}[0].topologyKey: Required value: can not be empty",
          f"{SPREAD}[0].whenUnsatisfiable: Required value: can not be empty",
          (f'{SPREAD}[1].whenUnsatisfiable: Unsupported value: "X": supported values: '
           '"DoNotSchedule", "ScheduleAnyway"'),
          (f"{SPREAD}[1].labelSelector: Forbidden: constraint must not define a selector, as they "
           "deduced for each pod")]),
        (with_plugin("NodeResourcesFit", scoringStrategy={"type": "Foo"}),
         [(f'{STRATEGY}.type: Unsupported value: "Foo": supported values: "LeastAllocated", '
           '"MostAllocated", "RequestedToCapacityRatio"')]),
        (with_plugin("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio"}),
         [(f"{STRATEGY}.requestedToCapacityRatio: Required value: must be specified when type is "
           "RequestedToCapacityRatio")]),
        (with_plugin("NodeResourcesFit", ignoredResourceGroups=["a/b"]),
         [(f"{ARGS}.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't "
           "contain '/'")]),
        (with_plugin("VolumeBinding", shape=[
            {"utilization": 50, "score": 11}, {"utilization": 50, "score": 1}
         ]),
         [(f"{ARGS}.shape[1].utilization: Invalid value: 50: values must be sorted in increasing "
           "order"),
          f"{ARGS}.shape[0].score: Invalid value: 11: not in valid range [0, 10]"]),
        ({"leaderElection": {"leaseDuration": "5s", "resourceLock": "endpoints"}},
         [('leaderElection.leaseDuration: Invalid value: "10s": must be greater than '
           "`RenewDeadline`"),
          ('leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be '
           '"leases"')]),
        ({"extenders": [{"prioritizeVerb": "p"}, {"managedResources": [{"name": "foo"}]}]},
         [("extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"),
          ('extenders[1].managedResources[0].name: Invalid value: "foo": is an invalid extended '
           "resource name")]),
        ({"profiles": [{"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}}]},
         [('profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in '
           'version "v1" (KubeSchedulerConfiguration is version '
           '"kubescheduler.config.k8s.io/v1")')]),
    ],
)  # fmt: skip
def test_arguments_that_are_wrong_are_refused(fields: Tree, expected: list[str]) -> None:
    assert found(configuration(**fields)) == expected


def test_fields_that_arguments_do_not_have_are_named() -> None:
    fields = with_plugin("NodeAffinity", foo=1, addedAffinity={"bar": 1})
    start = "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity: "
    assert unknown_arguments(decode_tree(fields, KubeSchedulerConfiguration).value) == [
        f'{start}strict decoding error: unknown field "foo"',
        f'{start}strict decoding error: unknown field "addedAffinity.bar"',
    ]


def test_plugins_of_a_profile_replace_defaults_in_their_place_or_come_last() -> None:
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Mine"}, {"name": "NodeAffinity", "weight": 9}],
            "disabled": [{"name": "ImageLocality"}],
        }
    }
    (profile,) = configuration(profiles=[{"plugins": plugins}]).profiles
    assert profile.plugins is not None
    enabled = profile.plugins.multi_point.enabled
    names = [each.name for each in enabled]
    assert names[5:7] == ["NodeAffinity", "NodePorts"]
    assert enabled[5].weight == 9
    assert names[-1] == "Mine"
    assert "ImageLocality" not in names
