from __future__ import annotations

from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.expressions.syntax import EVERYTHING, DeviceField
from tests.insight.fleets import GPU, NIC, device, fleet, slice_of

MODEL = DeviceField("attributes", GPU, "model")


def names(found: PublishedDevices, *reads: DeviceField) -> list[list[str]]:
    return [[d.name for d in group.devices] for group in found.groups(frozenset(reads))]


def test_devices_that_differ_in_what_is_not_read_look_alike() -> None:
    found = fleet(
        device("a", model="H200", uuid="1"),
        device("b", model="A100", uuid="2"),
        device("c", model="H200", uuid="3"),
    )
    assert names(found, MODEL) == [["a", "c"], ["b"]]
    assert names(found) == [["a", "b", "c"]]


def test_devices_that_differ_anywhere_look_different_to_who_reads_everything() -> None:
    found = fleet(device("a", model="H200"), device("b", model="H200"))
    assert names(found, EVERYTHING) == [["a"], ["b"]]
    assert names(found, DeviceField("attributes")) == [["a", "b"]]
    assert names(found, DeviceField("name")) == [["a"], ["b"]]


def test_numbers_and_bools_that_python_takes_for_equal_look_different() -> None:
    found = fleet(
        device("int", x=1),
        device("bool", x=True),
        device("list", x=["1"]),
        device("text", x="1"),
        device("none"),
    )
    assert len(names(found, DeviceField("attributes", GPU, "x"))) == 5


def test_versions_that_differ_in_build_metadata_look_different() -> None:
    versions = (
        Device(name=text, attributes={"v": DeviceAttribute(version_value=text)})
        for text in ("1.0.0", "1.0.0+a")
    )
    assert len(names(fleet(*versions), DeviceField("attributes", GPU, "v"))) == 2


def test_a_device_whose_attributes_cannot_be_read_stands_alone() -> None:
    broken = Device(name="b", attributes={"v": DeviceAttribute(version_value="x")})
    found = fleet(device("a"), broken)
    assert names(found) == [["a"], ["b"]]
    assert found.devices[1].problem is not None
    assert found.devices[1].problem.startswith("attribute v: parse semantic version")


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    found = PublishedDevices(
        [
            slice_of(device("old"), generation=1),
            slice_of(device("new"), generation=2),
            slice_of(device("other"), pool="node-2", generation=1),
        ]
    )
    assert [d.name for d in found.devices] == ["new", "other"]
    assert (found.slices, found.slices_outdated) == (2, 1)


def test_carriers_counts_who_has_what() -> None:
    found = PublishedDevices(
        [
            slice_of(device("a", model="x", capacity={"memory": "1Gi"}), device("b", model="y")),
            slice_of(device("c", attributes={f"{GPU}/model": "z"}), driver=NIC),
        ]
    )
    assert found.carriers[MODEL] == 3
    assert found.carriers[DeviceField("capacity", GPU, "memory")] == 1
    assert found.carriers[DeviceField("capacity", GPU)] == 1
    assert found.carriers[DeviceField("attributes", NIC)] == 0


def test_strictly_devices_have_no_name() -> None:
    (strict,) = PublishedDevices([slice_of(device("a"))], names=False).devices
    assert strict.variables is not None
    assert "name" not in strict.variables["device"]
