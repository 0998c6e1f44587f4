"""Random devices, and random expressions about them."""

from __future__ import annotations

from hypothesis import strategies as st

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceAttribute, DeviceCapacity

VALUES = st.one_of(
    st.sampled_from(["a", "b" * 40, "a" * 300]).map(lambda v: DeviceAttribute(string_value=v)),
    st.integers(-1, 3).map(lambda v: DeviceAttribute(int_value=v)),
    st.booleans().map(lambda v: DeviceAttribute(bool_value=v)),
    st.sampled_from(["1.2.3", "2.0.0"]).map(lambda v: DeviceAttribute(version_value=v)),
    st.lists(st.integers(0, 3), max_size=4).map(lambda v: DeviceAttribute(int_values=tuple(v))),
    st.just(DeviceAttribute(version_value="none")),
)
NAMES = st.sampled_from(["x", "y", "d/x", "e/x", "e/y"])
QUANTITIES = st.sampled_from(["1", "80Gi", "1500m"]).map(
    lambda text: DeviceCapacity(value=Quantity.parse(text))
)
DEVICES = st.builds(
    Device,
    name=st.sampled_from(["one", "two"]),
    attributes=st.dictionaries(NAMES, VALUES, max_size=4),
    capacity=st.dictionaries(NAMES, QUANTITIES, max_size=2),
    allow_multiple_allocations=st.sampled_from([None, True]),
)

TERMS = (
    "true",
    "device.driver == 'd'",
    "device.allowMultipleAllocations",
    "device.attributes['d'].x",
    "device.attributes['d']['x'] == 'a'",
    "device.attributes['e'].x == 1",
    "device.attributes[device.driver].y == 1",
    "device.attributes['d'].x[0] == 1",
    "device.attributes['d'].x % 2 == 1",
    "device.attributes['d'].x % -2 == 1",
    "device.attributes['d'].x / 2 == 0",
    "device.attributes['d'].x / 0 == 0",
    "device.attributes['d'].x >= 1",
    "device.attributes['d'].x < 2",
    "device.attributes['d'].x.z",
    "device.attributes['d'].x.exists(p, p == 2)",
    "device.attributes['d'].x.isLessThan(semver('2.0.0'))",
    "device.attributes['d'].all(k, k != 'y')",
    "has(device.attributes['d'].x)",
    "has(device.attributes['unknown'].x)",
    "has(device.attributes['d'].x.z)",
    "'e' in device.attributes",
    "'x' in device.attributes['e']",
    "device.attributes['unknown'] == {}",
    "device.attributes['unknown'].x == 1",
    "device.attributes['d'].?x.orValue(true)",
    "device.attributes[?'d'].?x.hasValue()",
    "device.?attributes['e'].x.orValue(1) == 1",
    "device.?driver.orValue('') == 'e'",
    "device.attributes['d'].?x[?0].orValue(0) == 0",
    "has(device.?attributes['d'].x)",
    "device.capacity['d'].x.compareTo(quantity('2')) > 0",
    "device.capacity['e'].?y.hasValue()",
    "cel.bind(device, device.attributes['d'], device.x == 1 || .device.driver == 'd')",
    "['x', 'y'].exists(k, k in device.attributes['d'] && device.attributes['d'][k] == 1)",
    "[1, 2].all(i, device.attributes['d'].x > i)",
    "device == device",
)
# Of these only extensions know.
NAME_TERMS = (
    "device.name == 'one'",
    "has(device.name)",
)


def expressions(*terms: str) -> st.SearchStrategy[str]:
    """Return expressions that are put together from terms."""
    return st.recursive(
        st.sampled_from(terms),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["&&", "||", "=="]), inner).map(
                lambda parts: f"(dyn({parts[0]}) {parts[1]} dyn({parts[2]}))"
            ),
            st.tuples(inner, inner, inner).map(
                lambda parts: f"(dyn({parts[0]}) ? dyn({parts[1]}) : dyn({parts[2]}))"
            ),
            inner.map(lambda part: f"!dyn({part})"),
        ),
        max_leaves=4,
    )
