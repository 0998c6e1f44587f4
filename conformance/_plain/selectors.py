"""Expressions: which devices a choice selects, and the attributes that it derives."""

from __future__ import annotations

from conformance._plain.model import Candidate, Choice, DeviceId, Failure
from conformance._plain.pools import matches_node
from moorage.api.core.node import Node
from moorage.api.resource.v1 import DeviceAttribute, DeviceSelector
from moorage.cel.device import CelFeatures, Compiled, DeviceCompiler
from moorage.cel.lang.program import Evaluated

COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check "
    "with has() for optional fields"
)


class Selectors:
    """The results of expressions in one attempt; each is evaluated once."""

    def __init__(self, node: Node, features: frozenset[str]) -> None:
        self._node = node
        self._features = features
        self._selected: dict[tuple[Choice, DeviceId], bool] = {}
        self._derived: dict[tuple[DeviceId, str], DeviceAttribute] = {}

    def selects(self, choice: Choice, candidate: Candidate, claim: str) -> bool:
        """Return whether class, request and node allow the device, or raise Failure."""
        device = candidate.device
        if device.binding_conditions and "DeviceBindingAndStatus" not in self._features:
            return False
        key = choice, candidate.id
        if key not in self._selected:
            class_ = choice.class_
            self._selected[key] = (
                _match(f"class {class_.metadata.name}", class_.spec.selectors, candidate)
                and _match(f"claim {claim}", choice.ask.selectors, candidate)
                and (
                    not candidate.slice.spec.per_device_node_selection
                    or matches_node(device, self._node)
                )
            )
        return self._selected[key]

    def attribute(self, choice: Choice, candidate: Candidate, name: str) -> DeviceAttribute | None:
        """Return the attribute that a constraint of this name sees, or raise Failure."""
        expressions = {entry.name: entry.expression for entry in choice.ask.derived_attributes}
        if name in expressions:
            return self._derive(candidate, name, expressions[name])
        attributes = candidate.device.attributes
        domain, slash, short_name = name.partition("/")
        if name in attributes or not slash or domain != candidate.id.driver:
            return attributes.get(name)
        return attributes.get(short_name)

    def _derive(self, candidate: Candidate, name: str, expression: str) -> DeviceAttribute:
        key = candidate.id, expression
        if key not in self._derived:
            compiled = COMPILER.compile(expression, kind="derived")
            if compiled.error is not None:
                raise Failure(f"compile derived attribute {name} failed: {compiled.error}")
            evaluated = _evaluate(compiled, candidate)
            if evaluated.error is not None:
                place = f"evaluate derived attribute {name} on device {candidate.id}"
                raise Failure(f"{place} failed: {evaluated.error}")
            self._derived[key] = evaluated.value
        return self._derived[key]


def _match(owner: str, selectors: tuple[DeviceSelector, ...], candidate: Candidate) -> bool:
    """Return whether all selectors are true; the first that is not ends the matter."""
    for number, selector in enumerate(selectors):
        assert selector.cel is not None, "was checked"
        compiled = COMPILER.compile(selector.cel.expression)
        place = f"{owner}: selector #{number}"
        if compiled.error is not None:
            raise Failure(f"{place}: CEL compile error: {compiled.error}")
        evaluated = _evaluate(compiled, candidate)
        if evaluated.error is not None:
            hint = HINT if "no such key:" in evaluated.error else ""
            text = f"CEL runtime error: {evaluated.error}{hint}"
            raise Failure(f"{place} on device {candidate.id}: {text}")
        if not evaluated.value:
            return False
    return True


def _evaluate(compiled: Compiled, candidate: Candidate) -> Evaluated:
    device = candidate.device
    return compiled.evaluate(
        driver=candidate.id.driver,
        attributes=device.attributes,
        capacity=device.capacity,
        allow_multiple_allocations=device.allow_multiple_allocations,
    )
