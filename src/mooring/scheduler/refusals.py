"""How a rule says no.

# refusal: the pod cannot go there, or nowhere, as things are; an expected answer
# unresolvable: no other pod's leaving would change it, so that preemption is no use
# fault: the attempt ends with an error and is worth another try
"""

from __future__ import annotations

from msgspec import Struct


class Refusal(Struct, frozen=True, gc=False):
    """A no, with Kubernetes' words for it and the plugin that says it."""

    plugin: str
    texts: tuple[str, ...]
    is_unresolvable: bool = False


class Fault(Struct, frozen=True, gc=False):
    """Something in the pod that a plugin cannot read."""

    plugin: str
    text: str


Obstacle = Refusal | Fault
