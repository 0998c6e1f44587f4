"""KEP-6080: derived attributes."""

from __future__ import annotations

import pytest

from tests.stories.tellers import explain, run, story, the_one


@pytest.mark.parametrize("seed", ["000-01-gpu-numa-alignment", "000-01-gpu-numa-alignment-inside"])
def test_eight_gpus_and_a_nic_of_one_numa_node_by_a_key_of_two_drivers(seed: str) -> None:
    told = the_one(*story("derived-numa-node", seeds=[seed]))
    assert told.node == "gathered"
    assert told.devices == {
        "gpu": "gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7 gpu-8 gpu-9",
        "nic": "nic-1",
    }


# Story, request, devices: what the one claim of the story gets.
GROUPED = [
    ("derived-three-drivers", {"gpu": "gpu-1", "nic": "nic-1", "cpu": "cpu-1"}),
    ("derived-topology-string", {"gpu": "gpu-1", "nic": "nic-0"}),
    ("derived-capacity-tier", {"accelerators": "accelerator-1 accelerator-2 accelerator-3"}),
    ("derived-names", {"gpu": "gpu1", "nic": "eth1"}),
    ("derived-list", {"cpu": "cpu-1", "nic": "nic-0"}),
    ("derived-override", {"gpus": "gpu-0 gpu-1"}),
]


@pytest.mark.parametrize(("name", "devices"), GROUPED)
def test_devices_are_grouped_by_the_key(name: str, devices: dict[str, str]) -> None:
    told = the_one(*story(name, "claim"))
    assert (told.node, told.devices) == ("node-1", devices)


def test_without_the_override_the_static_attribute_decides() -> None:
    text = explain(*story("derived-override", "static"))
    assert "constraint matchAttribute vendor.com/numa (gpus: 0 on gpu-0, 1 on gpu-1)" in text
    assert "compare vendor.com/socket instead of vendor.com/numa, which is coarser" in text


def test_names_of_devices_are_an_extension() -> None:
    result = run("plan", *story("derived-names", "claim"), "--strict")
    assert result.exit_code == 1
    assert "undefined field 'name'" in result.stderr


FAILED = (
    'running "DynamicResources" filter plugin: evaluate derived attribute derived/numa on device '
    "vendor.com/partial/gpu-1 failed: no such key: numa"
)


def test_an_error_at_run_time_ends_it_although_another_node_would_do() -> None:
    told = the_one(*story("derived-error", "claim"))
    assert (told.node, told.message) == (None, FAILED)
    assert f"Kubernetes: {FAILED}" in explain(*story("derived-error", "claim"))


def test_an_expression_that_looks_before_it_reads_goes_on() -> None:
    assert the_one(*story("derived-error", "robust")).node == "complete"


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("derived-names", 'matchAttribute: Invalid value: "number"'),  # no attribute has this name
        ("derived-override", "1 cannot allocate all claims"),  # the static one decides
    ],
)
def test_without_the_feature_there_are_no_keys(name: str, refusal: str) -> None:
    options = (*story(name, "claim"), "--feature-gates", "DRADerivedAttributes=false")
    result = run("plan", *options)
    assert result.exit_code == 1
    assert refusal in result.output
