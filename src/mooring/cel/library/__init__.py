"""The CEL libraries of Kubernetes, one module each.

They are what Kubernetes adds to the language: types of its own (quantities, versions, addresses,
networks, URLs, formats) and functions on them, with the costs that Kubernetes charges.
"""

from __future__ import annotations

from mooring.cel.lang.declarations import Library
from mooring.cel.library import (
    authz,
    cidr,
    formats,
    ip,
    klists,
    quantity,
    regex,
    semver,
    urls,
)
from mooring.cel.library.equality import with_equality_costs

__all__ = ["kubernetes_libraries", "with_equality_costs"]


def kubernetes_libraries(*, with_includes: bool) -> tuple[Library, ...]:
    """Return all libraries, in the order in which Kubernetes declares them."""
    return (
        urls.library(),
        regex.library(),
        klists.library(),
        authz.library(),
        quantity.library(),
        ip.library(),
        cidr.library(),
        formats.library(),
        authz.selectors_library(),
        semver.library(),
        *((klists.includes_library(),) if with_includes else ()),
    )
