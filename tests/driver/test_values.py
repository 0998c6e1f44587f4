"""Values of the SDK are checked on construction, with errors that suggest a fix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import CdiDevice, CdiSpec
from moorage.api.codec import decode_json, encode_json
from moorage.api.resource.v1 import ResourceSlice
from moorage.client.api_client import ApiClient
from moorage.driver import (
    AllocatedDevice,
    ContainerEdits,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceHealth,
    DeviceNode,
    DeviceTaint,
    Health,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    NetworkDeviceData,
    Pool,
    Prepared,
    Quantity,
)
from moorage.driver.serving import serving
from tests.driver.stage import Blinkers, Kubelet, make_claim, played, settings_in

ANY: Any = object()
RED = AllocatedDevice("all", "node-1", "red")
NODE = DeviceNode(path="/dev/null")
MOUNT = Mount(host_path="/a", container_path="/b")
MODEL = DeviceAttribute(string_value="first")


def wrong(value: Any) -> Any:
    """Give a value that no type checker would let pass."""
    return value


TYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "a missing comma": (
        lambda: ContainerEdits(env=wrong("A=B")),
        (
            "ContainerEdits.env: expected a tuple of str, not the str 'A=B'; "
            "write ('A=B',) with its comma, which makes the tuple"
        ),
    ),
    "a dict of variables": (
        lambda: ContainerEdits(env=wrong({"A": "B"})),
        (
            "ContainerEdits.env: expected a tuple of str, not a dict; "
            'write tuple(f"{name}={value}" for name, value in ….items())'
        ),
    ),
    "a lone device file": (
        lambda: ContainerEdits(device_nodes=wrong(NODE)),
        (
            "ContainerEdits.device_nodes: expected a tuple of DeviceNode, not a DeviceNode; "
            "write (DeviceNode(…),) with its comma, which makes the tuple"
        ),
    ),
    "a lone mount": (
        lambda: ContainerEdits(mounts=wrong(MOUNT)),
        (
            "ContainerEdits.mounts: expected a tuple of Mount, not a Mount; "
            "write (Mount(…),) with its comma, which makes the tuple"
        ),
    ),
    "a path for a device file": (
        lambda: ContainerEdits(device_nodes=wrong(("/dev/null",))),
        (
            "ContainerEdits.device_nodes[0]: expected a DeviceNode, not the str '/dev/null'; "
            "write DeviceNode(path='/dev/null')"
        ),
    ),
    "a path for device files": (
        lambda: ContainerEdits(device_nodes=wrong("/dev/null")),
        (
            "ContainerEdits.device_nodes: expected a tuple of DeviceNode, not the str '/dev/null'; "
            "write (DeviceNode(path='/dev/null'),)"
        ),
    ),
    "paths for a mount": (
        lambda: ContainerEdits(mounts=wrong(["/a:/b"])),
        (
            "ContainerEdits.mounts[0]: expected a Mount, not the str '/a:/b'; "
            "write Mount(host_path='/a', container_path='/b')"
        ),
    ),
    "nothing for variables": (
        lambda: ContainerEdits(env=wrong(None)),
        "ContainerEdits.env: expected a tuple of str, not None",
    ),
    "a field that is not there": (
        lambda: wrong(ContainerEdits)(envs=("A=B",)),
        "ContainerEdits has no field 'envs'; did you mean env?",
    ),
    "a Path": (
        lambda: DeviceNode(path=wrong(Path("/dev/null"))),
        "DeviceNode.path: expected a str, not a PosixPath; write str(…)",
    ),
    "a mode in letters": (
        lambda: DeviceNode(path="/dev/null", file_mode=wrong("0666")),
        "DeviceNode.file_mode: expected an int, not the str '0666'",
    ),
    "a lone group": (
        lambda: ContainerEdits(additional_gids=wrong(44)),
        (
            "ContainerEdits.additional_gids: expected a tuple of int, not the int 44; "
            "write (44,) with its comma, which makes the tuple"
        ),
    ),
    "text for an amount": (
        lambda: DeviceCapacity(value=wrong("80Gi")),
        (
            "DeviceCapacity.value: expected a Quantity, not the str '80Gi'; "
            "write Quantity.parse('80Gi')"
        ),
    ),
    "text for a capacity": (
        lambda: Device(name="red", capacity=wrong({"memory": "80Gi"})),
        (
            "Device.capacity['memory']: expected a DeviceCapacity, not the str '80Gi'; "
            "write DeviceCapacity(value=Quantity.parse('80Gi'))"
        ),
    ),
    "an amount for a capacity": (
        lambda: Device(name="red", capacity=wrong({"memory": Quantity.from_int(7)})),
        (
            "Device.capacity['memory']: expected a DeviceCapacity, not a Quantity; "
            "write DeviceCapacity(value=…)"
        ),
    ),
    "a number for a counter": (
        lambda: CounterSet(name="a", counters=wrong({"slots": 7})),
        (
            "CounterSet.counters['slots']: expected a Counter, not the int 7; "
            "write Counter(value=Quantity.from_int(7))"
        ),
    ),
    "text for a counter's amount": (
        lambda: Counter(value=wrong("7")),
        "Counter.value: expected a Quantity, not the str '7'; write Quantity.parse('7')",
    ),
    "a lone consumption": (
        lambda: Device(name="red", consumes_counters=wrong(DeviceCounterConsumption())),
        (
            "Device.consumes_counters: expected a tuple of DeviceCounterConsumption, "
            "not a DeviceCounterConsumption; "
            "write (DeviceCounterConsumption(…),) with its comma, which makes the tuple"
        ),
    ),
    "text for an attribute": (
        lambda: Device(name="red", attributes=wrong({"model": "first"})),
        (
            "Device.attributes['model']: expected a DeviceAttribute, not the str 'first'; "
            "write DeviceAttribute(string_value='first')"
        ),
    ),
    "a bool for an attribute": (
        lambda: Device(name="red", attributes=wrong({"ecc": True})),
        (
            "Device.attributes['ecc']: expected a DeviceAttribute, not the bool True; "
            "write DeviceAttribute(bool_value=True)"
        ),
    ),
    "a list for an attribute": (
        lambda: Device(name="red", attributes=wrong({"nodes": [0, 1]})),
        (
            "Device.attributes['nodes']: expected a DeviceAttribute, not a list; "
            "write DeviceAttribute(int_values=[0, 1])"
        ),
    ),
    "text where a number goes": (
        lambda: DeviceAttribute(int_value=wrong("7")),
        "DeviceAttribute.int_value: expected an int, not the str '7'",
    ),
    "a name that is none": (
        lambda: Device(name=wrong(7)),
        "Device.name: expected a str, not the int 7; write str(…)",
    ),
    "text for a time": (
        lambda: DeviceTaint(key="a", effect="NoSchedule", time_added=wrong("2026-01-01T00:00:00Z")),
        (
            "DeviceTaint.time_added: expected a Timestamp, not the str '2026-01-01T00:00:00Z'; "
            "write Timestamp.parse('2026-01-01T00:00:00Z')"
        ),
    ),
    "names for devices": (
        lambda: Pool(devices=wrong(("red",))),
        "Pool.devices[0]: expected a Device, not the str 'red'; write Device(name='red')",
    ),
    "a lone device": (
        lambda: Pool(devices=wrong(Device(name="red"))),
        (
            "Pool.devices: expected a tuple of Device, not a Device; "
            "write (Device(…),) with its comma, which makes the tuple"
        ),
    ),
    "a name for what is prepared": (
        lambda: Prepared(wrong("red")),
        "Prepared.device: expected an AllocatedDevice, not the str 'red'",
    ),
    "a dict for edits": (
        lambda: Prepared(RED, wrong({"env": ["A=B"]})),
        (
            "Prepared.edits: expected a ContainerEdits, not a dict; "
            "write ContainerEdits(env=…, device_nodes=…, mounts=…)"
        ),
    ),
    "a device file for edits": (
        lambda: Prepared(RED, wrong(NODE)),
        (
            "Prepared.edits: expected a ContainerEdits, not a DeviceNode; "
            "write ContainerEdits(device_nodes=(DeviceNode(…),))"
        ),
    ),
    "a lone id": (
        lambda: Prepared(RED, cdi_ids=wrong("example.com/gpu=red")),
        (
            "Prepared.cdi_ids: expected a tuple of str, not the str 'example.com/gpu=red'; "
            "write ('example.com/gpu=red',) with its comma, which makes the tuple"
        ),
    ),
    "a dict for network data": (
        lambda: Prepared(RED, network_data=wrong({"interfaceName": "eth1"})),
        "Prepared.network_data: expected a NetworkDeviceData, not a dict",
    ),
    "a lone address": (
        lambda: NetworkDeviceData(ips=wrong("10.0.0.1/24")),
        (
            "NetworkDeviceData.ips: expected a tuple of str, not the str '10.0.0.1/24'; "
            "write ('10.0.0.1/24',) with its comma, which makes the tuple"
        ),
    ),
    "text for health": (
        lambda: DeviceHealth("red", wrong("Healthy")),
        "DeviceHealth.health: expected a Health, not the str 'Healthy'; write Health.HEALTHY",
    ),
    "a bool for health": (
        lambda: DeviceHealth("red", wrong(False)),
        "DeviceHealth.health: expected a Health, not the bool False; write Health.UNKNOWN",
    ),
    "a device for its name": (
        lambda: DeviceHealth(wrong(RED), Health.HEALTHY),
        "DeviceHealth.device: expected a str, not an AllocatedDevice",
    ),
    "a quantity of text": (
        lambda: wrong(Quantity)("1"),
        "a quantity is made of its text or of a whole number: write Quantity.parse('1')",
    ),
    "a quantity of a number": (
        lambda: wrong(Quantity)(1024),
        "a quantity is made of its text or of a whole number: write Quantity.from_int(1024)",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_value_of_the_wrong_type_says_what_to_write(case: str) -> None:
    make, text = TYPES[case]
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == text


RULES: dict[str, tuple[Callable[[], Any], str]] = {
    "a variable without a value": (
        lambda: ContainerEdits(env=("NOEQUALS",)),
        "ContainerEdits: env[0]: 'NOEQUALS' must be of the form NAME=VALUE",
    ),
    "a variable without a name": (lambda: ContainerEdits(env=("A=", "=B")), "env[1]: '=B' must be"),
    "a device file without a path": (lambda: DeviceNode(), "DeviceNode: path: it is missing"),
    "a relative path": (lambda: DeviceNode(path="null"), "path: 'null' must be an absolute path"),
    "a relative host path": (
        lambda: DeviceNode(path="/dev/null", host_path="null"),
        "host_path: 'null' must be an absolute path",
    ),
    "a type that is none": (
        lambda: DeviceNode(path="/dev/null", type="char"),
        "type: 'char' must be one of b, c, u, p",
    ),
    "permissions that are none": (
        lambda: DeviceNode(path="/dev/null", permissions="rwx"),
        "permissions: 'rwx' must be of the letters r, w and m",
    ),
    "a negative number": (lambda: DeviceNode(path="/dev/null", major=-1), "major: -1 must be from"),
    "a mode that is none": (
        lambda: DeviceNode(path="/dev/null", file_mode=0o20666),
        "file_mode: 8630 must be from 0 to 0o7777",
    ),
    "a user that is none": (lambda: DeviceNode(path="/dev/null", uid=2**32), "uid: 4294967296"),
    "a mount of nothing": (lambda: Mount(container_path="/b"), "Mount: host_path: it is missing"),
    "a mount nowhere": (lambda: Mount(host_path="/a"), "Mount: container_path: it is missing"),
    "a mount at a relative path": (
        lambda: Mount(host_path="/a", container_path="b"),
        "container_path: 'b' must be an absolute path",
    ),
    "a hook of no kind": (
        lambda: Hook(hook_name="prestat", path="/x"),
        (
            "hook_name: 'prestat' must be one of prestart, createRuntime, createContainer, "
            "startContainer, poststart, poststop"
        ),
    ),
    "a hook without a program": (lambda: Hook(hook_name="prestart"), "Hook: path: it is missing"),
    "a hook's variable": (
        lambda: Hook(hook_name="prestart", path="/x", env=("A",)),
        "env[0]: 'A' must be of the form NAME=VALUE",
    ),
    "a hook without time": (
        lambda: Hook(hook_name="prestart", path="/x", timeout=0),
        "timeout: 0 must be more than 0 seconds",
    ),
    "an interface without a name": (
        lambda: NetDevice(host_interface_name="eth1"),
        "NetDevice: name: it is missing",
    ),
    "an interface twice": (
        lambda: ContainerEdits(
            net_devices=(
                NetDevice(host_interface_name="eth1", name="a"),
                NetDevice(host_interface_name="eth1", name="b"),
            )
        ),
        "net_devices: two have the host_interface_name 'eth1'",
    ),
    "a class of service elsewhere": (lambda: IntelRdt(clos_id="../x"), "clos_id: '../x' must be"),
    "a group that is none": (
        lambda: ContainerEdits(additional_gids=(44, -1)),
        "additional_gids[1]: -1 must be from 0 to 4294967295",
    ),
    "an id without a kind": (
        lambda: Prepared(RED, cdi_ids=("red",)),
        "Prepared: cdi_ids[0]: 'red' is not of the form vendor/class=name",
    ),
    "an attribute without a value": (
        lambda: Prepared(RED, attributes={"model": DeviceAttribute()}),
        "Prepared: attributes['model']: exactly one value must be set, not 0",
    ),
    "health of nothing": (lambda: DeviceHealth("", Health.HEALTHY), "device: it is missing"),
    "health for no time": (
        lambda: DeviceHealth("red", Health.HEALTHY, timeout_s=-1),
        "timeout_s: -1 must be 0 or more",
    ),
    "a device that brings nothing": (
        lambda: CdiDevice(name="red"),
        "container_edits: a device must bring something",
    ),
    "a kind without a class": (lambda: CdiSpec(kind="example.com"), "kind: class: ''"),
    "a number beyond 64 bits": (
        lambda: DeviceAttribute(int_value=2**63),
        "DeviceAttribute.int_value: the int 9223372036854775808 is not from",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_a_value_that_breaks_a_rule_is_refused_where_it_is_made(case: str) -> None:
    make, text = RULES[case]
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert text in str(caught.value)


def test_all_rules_that_are_broken_are_told() -> None:
    with pytest.raises(ValueError, match=r"type: 'x' must be .*; permissions: 'y' must be"):
        DeviceNode(path="/dev/null", type="x", permissions="y")


def test_lists_and_generators_are_taken_for_tuples() -> None:
    listed = ContainerEdits(env=wrong(["A=1", "B=2"]))
    assert listed == ContainerEdits(env=("A=1", "B=2"))
    assert ContainerEdits(env=wrong(f"A{n}={n}" for n in range(2))).env == ("A0=0", "A1=1")
    assert Device(name="red", taints=wrong([DeviceTaint(key="a")])).taints == (
        DeviceTaint(key="a"),
    )


def test_what_cdi_allows_is_made() -> None:
    ContainerEdits(
        env=("A=", "B=a=b"),
        device_nodes=(
            NODE,
            DeviceNode(
                path="/dev/a", type="c", major=1, minor=3, permissions="rwm", file_mode=0o666
            ),
            DeviceNode(path="/dev/b", permissions="none", uid=0, gid=2**32 - 1),
        ),
        mounts=(MOUNT, Mount(host_path="tmpfs", container_path="/t", type="tmpfs")),
        hooks=(Hook(hook_name="createContainer", path="/x", env=("A=B",), timeout=1),),
        net_devices=(NetDevice(host_interface_name="eth1", name="net0"),),
        intel_rdt=IntelRdt(clos_id="/", schemata=("L3:0=f",)),
        additional_gids=(0, 44),
    )


def test_what_is_read_is_not_taken_for_what_is_written() -> None:
    # Readers of specs have rules and errors of their own.
    read = decode_json(b'{"env": ["NOEQUALS"]}', ContainerEdits).value
    assert (read + ContainerEdits(env=("A=B",))).env == ("NOEQUALS", "A=B")
    text = b'{"spec": {"devices": [{"name": "red", "attributes": {"model": {}}}]}}'
    assert decode_json(text, ResourceSlice).value.spec.devices == (
        Device(name="red", attributes={"model": DeviceAttribute()}),
    )


@pytest.mark.parametrize(
    ("edits", "version"),
    [
        (ContainerEdits(env=("A=B",)), "0.6.0"),
        (ContainerEdits(additional_gids=(44,)), "0.7.0"),
        (ContainerEdits(intel_rdt=IntelRdt(clos_id="x")), "0.7.0"),
        (ContainerEdits(intel_rdt=IntelRdt(enable_monitoring=True)), "1.1.0"),
        (ContainerEdits(net_devices=(NetDevice(host_interface_name="a", name="b"),)), "1.1.0"),
    ],
)
def test_a_spec_is_of_the_version_that_its_edits_need(edits: ContainerEdits, version: str) -> None:
    # Runtimes refuse a spec with fields that its version does not have.
    spec = CdiSpec.of("example.com/gpu", [CdiDevice(name="a", container_edits=edits)])
    assert json.loads(encode_json(spec))["cdiVersion"] == version


def test_the_class_of_a_kind_may_have_dots() -> None:
    assert CdiSpec(kind="example.com/gpu.large", devices=()).kind == "example.com/gpu.large"
    assert Prepared(RED, cdi_ids=("example.com/gpu.large=red",))


@played
async def test_edits_of_all_kinds_reach_the_spec(folder: Path, client: ApiClient) -> None:
    class Rich(Blinkers):
        def prepare(self, claim: Any) -> list[Prepared]:
            edits = ContainerEdits(
                additional_gids=(44,), intel_rdt=IntelRdt(clos_id="x", mem_bw_schema="MB:0=50")
            )
            return [Prepared(each, edits) for each in claim.devices]

    async with serving(Rich(), settings_in(folder), client) as running:
        assert running.socket is not None
        claim = await make_claim(client, "one", "red")
        await Kubelet(running.socket).prepare(claim)
        (path,) = (folder / "cdi").glob("*.json")
        spec = json.loads(path.read_text())
        assert spec["cdiVersion"] == "0.7.0"
        assert spec["devices"][0]["containerEdits"] == {
            "intelRdt": {"closID": "x", "memBwSchema": "MB:0=50"},
            "additionalGids": [44],
        }
