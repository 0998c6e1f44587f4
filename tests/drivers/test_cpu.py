"""CPUs: their published devices, and their allocation to claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.process_binding import process_binding
from moorage.driver.driver import AllocatedDevice, PrepareError
from moorage.drivers.cpu import Cpu, CpuDriver, CpuSettings, choose_cpus, online_cpus
from moorage.hardware.attributes import NUMA_NODE
from moorage.hardware.numbers import parse_cpu_list
from tests.drivers.machines import (
    allocated,
    claim,
    cpu,
    cpus,
    devices_of,
    host_of,
    node,
    online,
    prepared,
    some_cpus,
    variables,
)

# Two sockets, two nodes, four cores of two threads: 0 and 4 are a core.
THREADS = {
    **online("0-7", "0-1"),
    **node(0, "0-1,4-5"),
    **node(1, "2-3,6-7"),
    **{
        path: entry
        for id_ in range(8)
        for path, entry in cpu(id_, id_ % 4 // 2, id_ % 4 // 2, f"{id_ % 4},{id_ % 4 + 4}").items()
    },
}


def test_groups_are_numa_nodes_with_consumable_cpus() -> None:
    found = devices_of(CpuDriver(host_of(THREADS)))
    assert list(found) == ["cpudevnuma000", "cpudevnuma001"]
    device = found["cpudevnuma001"]
    assert device.allow_multiple_allocations
    assert device.capacity["dra.cpu/cpu"].value.value == 4
    values = {name: each.int_value for name, each in device.attributes.items()}
    assert values[NUMA_NODE] == values["dra.cpu/numaNodeID"] == values["dra.net/numaNode"] == 1
    assert values["dra.cpu/socketID"] == 1
    assert device.attributes["dra.cpu/smtEnabled"].bool_value


def test_groups_can_be_sockets() -> None:
    found = devices_of(CpuDriver(host_of(THREADS), CpuSettings(by_socket=True)))
    assert list(found) == ["cpudevsocket000", "cpudevsocket001"]
    assert NUMA_NODE not in found["cpudevsocket000"].attributes


def test_single_cpus_know_their_place_and_come_core_by_core() -> None:
    found = devices_of(CpuDriver(host_of(THREADS), CpuSettings(is_individual=True)))
    assert list(found)[:4] == ["cpudev000", "cpudev004", "cpudev001", "cpudev005"]
    attributes = found["cpudev006"].attributes
    assert attributes["dra.cpu/cpuID"].int_value == 6
    assert attributes["dra.cpu/siblings"].string_value == "2"
    assert attributes[NUMA_NODE].int_value == 1


def test_machines_with_two_sorts_of_cores_say_which() -> None:
    entries = {**THREADS, "devices/cpu_atom/cpus": "6-7\n"}
    found = devices_of(CpuDriver(host_of(entries), CpuSettings(is_individual=True)))
    types = {each.attributes["dra.cpu/coreType"].string_value for each in found.values()}
    assert types == {"p-core", "e-core"}
    assert found["cpudev007"].attributes["dra.cpu/coreType"].string_value == "e-core"


def test_reserved_and_offline_cpus_are_not_given_away() -> None:
    entries = {**THREADS, **online("0-6", "0-1")}
    driver = CpuDriver(host_of(entries), CpuSettings(is_individual=True, reserved=(0, 4)))
    assert set(devices_of(driver)) == {f"cpudev{id_:03d}" for id_ in (1, 2, 3, 5, 6)}


def test_without_a_list_of_online_cpus_each_is_asked() -> None:
    entries = {**cpus(0, range(3)), **node(0, "0-2"), "devices/system/cpu/cpu1/online": "0\n"}
    assert [each.id for each in online_cpus(host_of(entries))] == [0, 2]


def test_a_claim_gets_whole_cores_of_its_group_and_is_bound_to_them() -> None:
    driver = CpuDriver(host_of(THREADS))
    env = variables(prepared(driver, claim("u-1", some_cpus("cpudevnuma001", 2))))
    assert env == {"DRA_CPUSET_u-1": "2,6", "MOORAGE_CPUSET_u_1_one": "2,6"}
    assert process_binding(env).cpus == ("2,6",)


def test_no_cpu_is_given_twice_and_all_are_free_again() -> None:
    driver = CpuDriver(host_of(THREADS))
    first = claim("1", some_cpus("cpudevnuma000", 3))
    second = claim("2", some_cpus("cpudevnuma000", 1))
    taken = [variables(prepared(driver, each)) for each in (first, second)]
    sets = [set(parse_cpu_list(env[f"DRA_CPUSET_{uid}"])) for uid, env in enumerate(taken, 1)]
    assert sets[0] | sets[1] == {0, 1, 4, 5}
    with pytest.raises(PrepareError, match="1 CPUs are requested, and 0 of its 4 are free"):
        prepared(driver, claim("3", some_cpus("cpudevnuma000", 1)))
    driver.unprepare(first)
    assert prepared(driver, claim("3", some_cpus("cpudevnuma000", 3)))


def test_asked_again_the_answer_is_the_same() -> None:
    driver = CpuDriver(host_of(THREADS))
    wanted = claim("1", some_cpus("cpudevnuma000", 2), some_cpus("cpudevnuma001", 1, "two"))
    assert prepared(driver, wanted) == prepared(driver, wanted)
    driver.unprepare(claim("nobody"))


def test_each_request_is_bound_to_its_own_cpus() -> None:
    driver = CpuDriver(host_of(THREADS))
    wanted = claim("1", some_cpus("cpudevnuma000", 2), some_cpus("cpudevnuma000", 2, "two", "t"))
    one, two = prepared(driver, wanted)
    assert variables([one])["MOORAGE_CPUSET_1_one"] == "0,4"
    assert variables([two])["MOORAGE_CPUSET_1_two"] == "1,5"
    assert variables([one])["DRA_CPUSET_1"] == "0-1,4-5"


def test_a_driver_that_starts_again_knows_what_it_gave() -> None:
    wanted = claim("1", some_cpus("cpudevnuma000", 2))
    before = prepared(CpuDriver(host_of(THREADS)), wanted)
    driver = CpuDriver(host_of(THREADS))
    driver.restored(wanted, before)
    assert prepared(driver, wanted) == before
    env = variables(prepared(driver, claim("2", some_cpus("cpudevnuma000", 2))))
    assert env["DRA_CPUSET_2"] == "1,5"


def test_a_claim_whose_preparing_was_broken_off_is_decided_again() -> None:
    wanted = claim("1", some_cpus("cpudevnuma000", 2))
    driver = CpuDriver(host_of(THREADS))
    driver.restored(wanted, [])
    assert variables(prepared(driver, wanted))["DRA_CPUSET_1"] == "0,4"


def test_administrators_see_all_and_take_nothing() -> None:
    driver = CpuDriver(host_of(THREADS))
    env = variables(prepared(driver, claim("1", allocated("cpudevnuma000", admin=True))))
    assert env["DRA_CPUSET_1"] == "0-1,4-5"
    assert prepared(driver, claim("2", some_cpus("cpudevnuma000", 4)))


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (some_cpus("cpudevnuma000", "1500m"), "1500m is not a whole number of CPUs"),
        (some_cpus("cpudevnuma000", 0), "0 is not a whole number of CPUs"),
        (allocated("cpudevnuma000"), "does not say how many CPUs it takes"),
        (some_cpus("cpudevnuma009", 1), "there is no such device here now"),
    ],
)
def test_what_cannot_be_prepared_says_why_and_leaves_nothing(
    device: AllocatedDevice, message: str
) -> None:
    driver = CpuDriver(host_of(THREADS))
    with pytest.raises(PrepareError, match=message):
        prepared(driver, claim("1", some_cpus("cpudevnuma001", 4, "first"), device))
    assert prepared(driver, claim("2", some_cpus("cpudevnuma001", 4)))


# --- choosing -------------------------------------------------------------------------------


def machine(nodes: int, cores: int, threads: int) -> list[Cpu]:
    total = nodes * cores
    return [
        Cpu(
            core + total * thread,
            core // cores,
            0,
            core,
            None,
            tuple(range(core, total * threads, total)),
        )
        for core in range(total)
        for thread in range(threads)
    ]


@given(
    nodes=st.integers(1, 3),
    cores=st.integers(1, 4),
    threads=st.integers(1, 2),
    data=st.data(),
)
def test_chosen_cpus_are_free_as_many_as_wanted_and_break_up_few_cores(
    nodes: int, cores: int, threads: int, data: st.DataObject
) -> None:
    every = machine(nodes, cores, threads)
    free = data.draw(st.lists(st.sampled_from(every), unique=True))
    count = data.draw(st.integers(1, len(every)))
    chosen = choose_cpus(free, count)
    if len(free) < count:
        assert chosen is None
        return
    assert chosen is not None
    assert len(set(chosen)) == count
    assert set(chosen) <= {each.id for each in free}
    by_node = [sum(each.node == number for each in free) for number in range(nodes)]
    used = {each.node for each in free if each.id in chosen}
    assert len(used) == 1 or max(by_node) < count
    assert choose_cpus(list(reversed(free)), count) == chosen


def test_a_small_claim_goes_where_cores_are_broken_already() -> None:
    every = machine(2, 2, 2)
    free = [each for each in every if each.id != 2]  # CPU 2 and 6 are a core of node 1
    assert choose_cpus(free, 1) == (6,)
    assert choose_cpus(free, 2) == (3, 7)
