"""Memory and huge pages of NUMA nodes."""

from __future__ import annotations

import pytest

from moorage.driver.driver import PrepareError
from moorage.drivers.memory import MemoryDriver
from moorage.hardware.attributes import NUMA_NODE
from tests.drivers.machines import (
    Entries,
    allocated,
    claim,
    devices_of,
    host_of,
    node,
    prepared,
    variables,
)

KB = 1 << 10


def huge(folder: str, size_kb: int, count: int) -> Entries:
    return {f"{folder}/hugepages-{size_kb}kB/nr_hugepages": f"{count}\n"}


NODE = "devices/system/node/node0/hugepages"
TWO = {
    "devices/system/node/online": "0-1\n",
    **node(0, "0", 8 * KB * KB),
    **node(1, "1", 4 * KB * KB),
    **huge(NODE, 2048, 512),
    **huge(NODE, 1048576, 2),
}


def sizes(entries: Entries, proc: dict[str, str] | None = None) -> dict[str, str]:
    found = devices_of(MemoryDriver(host_of(entries, proc)))
    return {name: str(device.capacity["size"].value) for name, device in found.items()}


def test_every_node_has_its_memory_without_what_huge_pages_took() -> None:
    assert sizes(TWO) == {
        "memory-numa0": "5Gi",
        "hugepages-1gi-numa0": "2Gi",
        "hugepages-2mi-numa0": "1Gi",
        "memory-numa1": "4Gi",
    }


def test_pages_say_what_they_are_and_how_they_are_taken() -> None:
    device = devices_of(MemoryDriver(host_of(TWO)))["hugepages-2mi-numa0"]
    assert device.attributes["dra.memory/hugeTLB"].bool_value
    assert device.attributes["dra.memory/pageSize"].string_value == "2Mi"
    assert device.attributes[NUMA_NODE].int_value == 0
    policy = device.capacity["size"].request_policy
    assert policy is not None
    assert policy.valid_range is not None
    assert (str(policy.default), str(policy.valid_range.step)) == ("2Mi", "2Mi")
    assert list(device.node_allocatable_resources) == ["hugepages-2Mi"]


def test_a_machine_without_numa_has_memory_without_a_node() -> None:
    entries = huge("kernel/mm/hugepages", 2048, 512)
    assert sizes(entries, {"meminfo": "MemTotal:    4194304 kB\n"}) == {
        "memory": "3Gi",
        "hugepages-2mi": "1Gi",
    }
    driver = MemoryDriver(host_of(entries, {"meminfo": "MemTotal:    4194304 kB\n"}))
    assert NUMA_NODE not in devices_of(driver)["memory"].attributes
    env = variables(prepared(driver, claim("u", allocated("memory", size="1Gi"))))
    assert env == {"DRAMEMORY_u_memory": "numanode:0,size:1Gi"}


def test_nodes_that_are_offline_or_empty_are_left_out() -> None:
    entries = {**TWO, **node(2, "", 0), "devices/system/node/online": "1-2\n"}
    assert set(sizes(entries)) == {"memory-numa1"}


def test_less_than_the_least_claim_is_no_device() -> None:
    assert sizes({"devices/system/node/online": "0\n", **node(0, "0", 1023)}) == {}
    assert sizes({"devices/system/node/online": "0\n", **node(0, "0", 1024)}) != {}


def test_a_container_is_told_its_nodes() -> None:
    driver = MemoryDriver(host_of(TWO))
    wanted = claim(
        "u",
        allocated("memory-numa0", size="1Gi"),
        allocated("hugepages-2mi-numa0", size="4Mi"),
        allocated("memory-numa1", "two", size="2Gi"),
    )
    first, _, third = found = prepared(driver, wanted)
    assert variables([first])["MOORAGE_MEMS_u_one"] == "0"
    assert variables([third])["MOORAGE_MEMS_u_two"] == "1"
    env = variables(found)
    assert env["DRAMEMORY_u_NUMANodes"] == "0-1"
    assert env["DRAMEMORY_u_hugepages_2Mi"] == "numanode:0,size:4Mi"


def test_memory_that_is_gone_is_refused() -> None:
    with pytest.raises(PrepareError, match="memory-numa7"):
        prepared(MemoryDriver(host_of(TWO)), claim("u", allocated("memory-numa7", size="1Gi")))
