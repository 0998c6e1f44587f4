"""The scheduler's configuration: defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.codec import decode_tree, to_tree
from mooring.api.field_path import root
from mooring.api.gates import Gate, Gates
from mooring.api.scheduler_config import (
    DynamicResourcesArgs,
    KubeSchedulerConfiguration,
    dynamic_resources_args,
)
from mooring.validation.scheduler_configuration import (
    default_scheduler_configuration,
    validate_dynamic_resources_args,
    validate_scheduler_configuration,
)
from tests.validation.pods import ALL_OFF, GATES, texts, without

Tree = dict[str, Any]


def configuration(*, gates: Gates = GATES, **fields: Any) -> KubeSchedulerConfiguration:
    value = decode_tree(fields, KubeSchedulerConfiguration).value
    return default_scheduler_configuration(value, gates=gates)


def with_args(**args: Any) -> Tree:
    return {"profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": args}]}]}


def found(config: KubeSchedulerConfiguration, gates: Gates = GATES) -> list[str]:
    return texts(validate_scheduler_configuration(config, gates=gates))


def test_an_empty_configuration_gets_one_profile_with_the_usual_timeouts() -> None:
    assert to_tree(configuration()) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [
                    {
                        "name": "DynamicResources",
                        "args": {
                            "apiVersion": "kubescheduler.config.k8s.io/v1",
                            "kind": "DynamicResourcesArgs",
                            "filterTimeout": "10s",
                            "bindingTimeout": "10m0s",
                        },
                    }
                ],
            }
        ],
    }
    assert found(configuration()) == []


def test_what_is_given_is_kept() -> None:
    config = configuration(**with_args(bindingTimeout="60s"), parallelism=2)
    assert config.parallelism == 2
    assert dynamic_resources_args(config.profiles[0]) == DynamicResourcesArgs(
        filter_timeout="10s", binding_timeout="60s"
    )


def test_timeouts_of_disabled_features_are_not_set() -> None:
    (profile,) = configuration(gates=ALL_OFF).profiles
    assert dynamic_resources_args(profile) == DynamicResourcesArgs()


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
