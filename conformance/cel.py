"""CEL: compiling, evaluating, cost and estimate, against cel-go with Kubernetes' options.

P counts lines in which error or none at both stages, the value and its type are equal. Error
classes, costs, estimates and texts are figures above the last line.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from conformance._cel_classes import error_class
from conformance.runner import EQUAL, Case, Outcome, Suite, compared
from moorage.api.codec import decode_tree
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.api.semver import Version
from moorage.cel.device import CelFeatures, DeviceCompiler, Scope
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.values import Optional, TypeValue, double_text, key_value


def open_suite() -> Suite:
    """Return the suite."""
    return CelSuite()


class CelSuite(Suite):
    """The suite of cel/*.jsonl."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, bool]] = Counter()

    def fits(self, case: Case) -> bool:
        """Return whether the case is one of CEL."""
        return case.id.startswith("cel-")

    def compare(self, case: Case) -> Outcome:
        """Compare outcome and value; count the rest."""
        expected = case.fields["expect"]
        if expected["error_class"] == "panic":
            return EQUAL
        actual = answer(case.fields)
        if expected["error_class"] is not None:
            self._count("error classes", expected["error_class"] == actual["error_class"])
            self._count("error texts", _texts(expected) == _texts(actual))
        if expected["cost"] is not None:
            self._count("run-time costs", expected["cost"] == actual["cost"])
        if expected["max_cost_estimate"] is not None and not expected["compile_error"]:
            equal = expected["max_cost_estimate"] == actual["max_cost_estimate"]
            self._count("estimates", equal)
        return compared(_essence(expected), _essence(actual))

    def _count(self, name: str, equal: bool) -> None:
        self._counts[name, equal] += 1

    def figures(self) -> Iterable[str]:
        """Return the figures of the finer levels."""
        for name in ("error classes", "run-time costs", "estimates", "error texts"):
            equal, different = self._counts[name, True], self._counts[name, False]
            total = equal + different
            if total:
                yield f"{name}: {equal}/{total} equal ({equal / total:.1%})"


def _essence(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "compile_error": bool(answer["compile_error"]),
        "eval_error": bool(answer["eval_error"]),
        "value": answer["value"],
        "value_type": answer["value_type"],
    }


def _texts(answer: dict[str, Any]) -> tuple[Any, Any]:
    return answer["compile_error"], answer["eval_error"]


@lru_cache(maxsize=16)
def _compiler(consumable: bool, lists: bool) -> DeviceCompiler:
    features = CelFeatures(consumable_capacity=consumable, list_attributes=lists)
    return DeviceCompiler(features, extensions=False)


def answer(fields: Any) -> dict[str, Any]:
    """Return our record of a case, in the shape of the recorded one."""
    features = fields["features"]
    compiler = _compiler(features["DRAConsumableCapacity"], features["DRAListTypeAttributes"])
    scope = Scope.NEW if fields["env"] == "new" else Scope.STORED
    compiled = compiler.compile(fields["expression"], kind=fields["kind"], scope=scope)
    record: dict[str, Any] = dict.fromkeys(
        ("compile_error", "eval_error", "value", "value_type", "cost", "max_cost_estimate")
    )
    if compiled.error is not None:
        record["compile_error"] = compiled.error
        record["error_class"] = error_class(compiled.error, None)
        return record
    record["max_cost_estimate"] = compiled.cost_max
    device = fields["device"]
    limit = fields.get("cost_limit")
    outcome = compiled.evaluate(
        driver=device.get("driver") or "",
        attributes=_read(device.get("attributes"), DeviceAttribute),
        capacity=_read(device.get("capacity"), DeviceCapacity),
        allow_multiple_allocations=device.get("allowMultipleAllocations"),
        cost_limit=1_000_000 if limit is None else limit,
    )
    record["cost"] = outcome.cost
    record["eval_error"] = outcome.error
    record["error_class"] = error_class(None, outcome.error) if outcome.error else None
    if outcome.error is None:
        record["value"], record["value_type"] = _encoded(fields["kind"], outcome.value, compiler)
    return record


def _read(tree: Any, struct: Any) -> dict[str, Any]:
    return {name: decode_tree(value, struct).value for name, value in (tree or {}).items()}


# --- values -------------------------------------------------------------------------------

_ATTRIBUTE_TYPES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")


def _encoded(kind: str, value: Any, compiler: DeviceCompiler) -> tuple[Any, str]:
    if kind == "selector":
        return value, "bool"
    if kind == "derived":
        tree = msgspec.to_builtins(value)
        for name in _ATTRIBUTE_TYPES:
            if name in tree:
                found = tree[name]
                return list(found) if isinstance(found, tuple) else found, name
    return _raw(value), compiler.type_name(value)


def _raw(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case float():
            return double_text(value)
        case int():
            return int(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Duration():
            return f"{value.nanoseconds}ns"
        case Timestamp() | Quantity() | Version():
            return str(value)
        case TypeValue():
            return value.name
        case Optional():
            if not value.has_value:
                return {"none": True}
            return {"some": _typed(value.value)}
        case list() | tuple():
            return [_typed(item) for item in value]
        case dict():
            pairs = [[_typed(key_value(key)), _typed(item)] for key, item in value.items()]
            return sorted(pairs, key=lambda pair: msgspec.json.encode(pair))
        case _:
            return str(value)


def _typed(value: Any) -> dict[str, Any]:
    return {"t": _compiler(True, True).type_name(value), "v": _raw(value)}
