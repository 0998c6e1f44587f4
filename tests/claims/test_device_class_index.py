"""Which device class provides an extended resource."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resource.v1 import DeviceClass
from moorage.claims import DeviceClassIndex, implicit_name, is_device_resource
from tests.claims.parts import device_class, index

GPU = "example.com/gpu"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def meant(found: DeviceClassIndex, resource: str = GPU) -> str | None:
    """Return the name of the class that a resource means."""
    it = found.class_for(resource)
    return None if it is None else it.metadata.name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GPU, True),
        ("deviceclass.resource.kubernetes.io/gpu.example.com", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_only_extended_resources_can_be_backed_by_devices(name: str, expected: bool) -> None:
    assert is_device_resource(name) is expected


def test_a_class_is_meant_by_its_own_name_and_by_the_implicit_one() -> None:
    found = index(device_class("a", GPU), device_class("b"))
    assert meant(found) == "a"
    assert meant(found, implicit_name("a")) == "a"
    assert meant(found, implicit_name("b")) == "b"
    assert meant(found, implicit_name("c")) is None
    assert meant(found, "example.com/other") is None
    assert [found.explicit_name(name) for name in "abc"] == [GPU, None, None]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([device_class("a", GPU, created=OLD), device_class("b", GPU, created=NEW)], "b"),
        ([device_class("a", GPU, created=NEW), device_class("b", GPU, created=OLD)], "a"),
        ([device_class("b", GPU), device_class("a", GPU), device_class("c", GPU)], "a"),
    ],
)
def test_of_classes_with_one_name_the_newest_is_meant_then_the_first_by_name(
    classes: list[DeviceClass], expected: str
) -> None:
    for order in (classes, classes[::-1]):
        found = index(*order)
        assert meant(found) == expected
        assert [meant(found, implicit_name(c.metadata.name)) for c in classes] == [
            c.metadata.name for c in classes
        ]


def test_a_class_that_was_superseded_is_meant_again_when_the_other_goes() -> None:
    found = index(device_class("a", GPU, created=OLD), device_class("b", GPU, created=NEW))
    found.remove_class("b")
    assert meant(found) == "a"
    found.remove_class("a")
    found.remove_class("a")
    assert meant(found) is None


def test_a_class_can_change_its_name() -> None:
    found = index(device_class("a", GPU))
    found.put_class(device_class("a", "example.com/new"))
    assert (meant(found), meant(found, "example.com/new")) == (None, "a")
    found.put_class(device_class("a"))
    assert meant(found, "example.com/new") is None
    assert meant(found, implicit_name("a")) == "a"


def test_the_newest_state_of_a_class_is_found() -> None:
    found = index(device_class("a", GPU))
    changed = device_class("a", GPU, created=NEW)
    found.put_class(changed)
    assert found.class_for(GPU) is changed


_names = st.sampled_from(["a", "b", "c"])
_resources = st.sampled_from([GPU, "example.com/nic"])
_changes = st.lists(
    st.one_of(
        _names,
        st.builds(
            lambda name, resource, created: device_class(name, resource, created=created),
            _names,
            st.one_of(st.none(), _resources),
            st.sampled_from([OLD, NEW]),
        ),
    ),
    max_size=12,
)


@given(_changes)
def test_following_changes_gives_what_the_classes_that_are_left_give(
    changes: list[str | DeviceClass],
) -> None:
    followed = DeviceClassIndex()
    left: dict[str, DeviceClass] = {}
    for change in changes:
        if isinstance(change, str):
            followed.remove_class(change)
            left.pop(change, None)
        else:
            followed.put_class(change)
            left[change.metadata.name] = change
    anew = index(*left.values())
    for resource in (GPU, "example.com/nic", *map(implicit_name, "abc")):
        assert followed.class_for(resource) is anew.class_for(resource)
    assert [followed.explicit_name(n) for n in "abc"] == [anew.explicit_name(n) for n in "abc"]
