"""How large the parts of a device can be: what bounds the estimated cost of an expression."""

from __future__ import annotations

from mooring.cel.lang.sizes import Bound, DeclaredSizes

DOMAIN_MAX = 63
IDENTIFIER_MAX = 32
NAME_MAX = 63
ENTRIES_MAX = 32
VALUE_MAX = 64  # characters of a text, and more than the values of a list


def device_sizes() -> DeclaredSizes:
    """Return the bounds of the variable `device`."""
    value = Bound(VALUE_MAX)
    attributes = Bound(ENTRIES_MAX, keys=Bound(IDENTIFIER_MAX), values=value, any_field=value)
    capacity = Bound(ENTRIES_MAX, keys=Bound(IDENTIFIER_MAX), values=Bound(0))
    device = Bound(
        0,
        fields={
            "driver": Bound(NAME_MAX),
            "name": Bound(NAME_MAX),
            "allowMultipleAllocations": Bound(1),
            "attributes": Bound(ENTRIES_MAX, keys=Bound(DOMAIN_MAX), values=attributes),
            "capacity": Bound(ENTRIES_MAX, keys=Bound(DOMAIN_MAX), values=capacity),
        },
    )
    return DeclaredSizes({"device": device})
