"""The CPUs and memory nodes that variables bind a process to."""

from __future__ import annotations

from moorage.api.process_binding import (
    CPUS,
    MEMORY_NODES,
    binding_variable,
    item_variable,
    process_binding,
)


def test_lists_of_several_claims_are_all_there() -> None:
    environment = {
        binding_variable(CPUS, "uid-1", "one"): "0-3",
        binding_variable(CPUS, "uid-2", "gpu/large"): "8",
        binding_variable(MEMORY_NODES, "uid-1", "one"): "0",
        "MOORAGE_CPUSETS": "9",
        "PATH": "/bin",
    }
    assert process_binding(environment) == (("0-3", "8"), ("0",), {})


def test_a_plain_variable_binds_too() -> None:
    assert process_binding({"MOORAGE_CPUSET": "2"}).cpus == ("2",)


def test_items_are_joined_each_once() -> None:
    environment = {
        item_variable("CUDA_VISIBLE_DEVICES", "uid__1", "b"): "GPU-2,GPU-1",
        item_variable("CUDA_VISIBLE_DEVICES", "uid__1", "a"): "GPU-1",
        "MOORAGE_LIST_x__": "no name",
    }
    assert process_binding(environment).variables == {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}


def test_names_have_no_strange_letters() -> None:
    assert binding_variable(CPUS, "a-b", "c/d.e") == "MOORAGE_CPUSET_a_b_c_d_e"
    assert item_variable("X", "a--b", "_c_") == "MOORAGE_LIST_a_b_c__X"
