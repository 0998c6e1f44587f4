"""The selectors of stored objects, read once: to read one takes much longer than to match it."""

from __future__ import annotations

from moorage.api.labels import NOTHING, Selector, SelectorFault, read_selector
from moorage.api.meta import LabelSelector
from moorage.kit.lru import LRU

REQUIREMENTS_MAX = 2**19  # of selectors that are remembered
# By the identity of a selector, which is kept with what was read.
_READ: LRU[int, tuple[LabelSelector, Selector | SelectorFault]] = LRU(4096, REQUIREMENTS_MAX)


def stored_selector(selector: LabelSelector | None) -> Selector | SelectorFault:
    """Return a selector of an object that the informers keep, as `read_selector` does."""
    if selector is None:
        return NOTHING
    known = _READ.get(id(selector))
    if known is not None and known[0] is selector:
        return known[1]
    found = read_selector(selector)
    size = 1 + len(selector.match_labels) + len(selector.match_expressions)
    _READ.put(id(selector), (selector, found), size)
    return found
