"""Compile and evaluate expressions about devices, as the API server and the scheduler do.

New expressions see what the feature gates allow; stored ones see everything, because they were
valid once. Either kind is compiled to one Compiled, which is cached by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple

from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device_values import CELLS, as_attribute, as_match, device_variables
from moorage.cel.lang import types as t
from moorage.cel.lang.ast import ParsedAST
from moorage.cel.lang.cost_estimator import estimate_cost
from moorage.cel.lang.costs import UNBOUNDED, DeclaredSizes, SizeBound
from moorage.cel.lang.environment import Environment
from moorage.cel.lang.errors import CompileError, EvalError, InstantiationError
from moorage.cel.lang.metering import Meter
from moorage.cel.lang.parser import parse
from moorage.cel.lang.program import Evaluated, Program, compile_expression
from moorage.cel.lang.types import Type, full_name, same
from moorage.cel.lang.unpaid_work import begin_evaluation, nests, unpaid_of_evaluation
from moorage.cel.lang.values import runtime_type
from moorage.cel.library import environment_libraries, include_library
from moorage.cel.library.quantity import QUANTITY, SEMVER
from moorage.kit.lru import LRU

COST_LIMIT = 1_000_000
CACHE_SIZE = 1024
# Up to this estimate an expression is evaluated for many devices at once, needed or not: the
# evaluation takes less than, or hardly more than, what it takes to ask a device by itself.
CHEAP_COST_MAX = 500
COMPILE_COST = 100  # of a character, for callers that admit costs: it takes about 10 µs
ANSWERS_MAX = 65_536
ANSWERS_SIZE_MAX = 64 << 20  # bytes of large ones
DRIVERS_MAX = 64  # whose answers an expression remembers that reads the driver only

DEVICE = "kubernetes.DRADevice"
DRIVER_PATH = ("device", "driver")
UNKNOWN = object()

ExpressionKind = Literal["selector", "derived", "raw"]


class Scope(Enum):
    """Whether an expression is new or stored."""

    NEW = "new"
    STORED = "stored"


class CelFeatures(NamedTuple):
    """The feature gates that decide what new expressions may use."""

    consumable_capacity: bool = True
    list_attributes: bool = False

    @classmethod
    def of(cls, gates: Gates) -> CelFeatures:
        """Return the features whose gates are on."""
        return cls(
            consumable_capacity=gates.enabled(Gate.DRA_CONSUMABLE_CAPACITY),
            list_attributes=gates.enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES),
        )


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled expression, or the error."""

    expression: str
    kind: ExpressionKind
    program: Program | None
    error: str | None
    is_internal: bool = False  # the error is one of instantiation
    unpaid: int = 0  # work of compiling it, beyond its length
    cheap_cost_max: int = CHEAP_COST_MAX
    meter: Meter = field(default_factory=Meter)
    answers: LRU[Any, Any] = field(default_factory=lambda: LRU(ANSWERS_MAX, ANSWERS_SIZE_MAX))
    _of_drivers: dict[str, bool | None] = field(default_factory=dict)

    @cached_property
    def cost_max(self) -> int:
        """The estimated maximal cost of an evaluation."""
        if self.program is None:
            return UNBOUNDED
        estimate = estimate_cost(
            self.program.checked, self.program.environment, size_hints=device_sizes()
        )
        return estimate.high

    @cached_property
    def admission_cost(self) -> int:
        """The cost of an evaluation as callers admit it: the limit, if some work costs nothing."""
        if self.program is not None and nests(self.program.checked):
            return max(self.cost_max, COST_LIMIT)
        return self.cost_max

    @cached_property
    def is_cheap(self) -> bool:
        """Whether evaluating it for a device costs little, or it has no program."""
        return self.program is None or self.admission_cost <= self.cheap_cost_max

    @cached_property
    def is_by_driver(self) -> bool:
        """Whether it is cheap, and all devices of a driver have the same answer."""
        many = None if self.program is None or not self.is_cheap else self.program.many
        return many is not None and set(many.paths) <= {DRIVER_PATH}

    def match_of_driver(self, driver: str) -> bool | None:
        """Return whether all devices of a driver match; None if that depends on the device."""
        if not self.is_by_driver:
            return None
        found = self._of_drivers.get(driver, UNKNOWN)
        if found is UNKNOWN:
            assert self.program is not None and self.program.many is not None  # noqa: PT018
            (found,), _ = self.evaluate_batch([(driver,) * len(self.program.many.paths)])
            self.meter.record(self.expression, 1, self.meter.now_s())
            if len(self._of_drivers) >= DRIVERS_MAX:
                self._of_drivers.clear()
            self._of_drivers[driver] = found if type(found) is bool else None
        return self._of_drivers[driver]

    def evaluate(
        self,
        *,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        allow_multiple_allocations: bool | None = None,
        name: str | None = None,
        cost_limit: int = COST_LIMIT,
    ) -> Evaluated:
        """Return the result of the expression for a device."""
        assert self.program is not None
        try:
            variables = device_variables(
                driver,
                attributes,
                capacity,
                allow_multiple_allocations=allow_multiple_allocations,
                name=name,
            )
        except EvalError as error:
            return Evaluated(None, None, str(error))
        return self.evaluate_variables(variables, cost_limit=cost_limit)

    def evaluate_batch(
        self, batch: Iterable[tuple[Any, ...]]
    ) -> tuple[list[Any], list[int | None]]:
        """Return values and costs for a batch, for `program.many.paths`; None where that fails."""
        assert self.program is not None
        assert self.program.many is not None
        begin_evaluation()
        return self.program.many.evaluate(batch, *self.meter.checkpoints(COST_LIMIT))

    def evaluate_variables(
        self, variables: dict[str, Any], *, cost_limit: int = COST_LIMIT, only_plan: bool = False
    ) -> Evaluated:
        """Return the result of the expression for prepared variables."""
        assert self.program is not None
        evaluate = self.program.run_plan if only_plan else self.program.evaluate
        return self.converted(evaluate(variables, cost_limit=cost_limit, meter=self.meter))

    def converted(self, outcome: Evaluated) -> Evaluated:
        """Return an outcome whose value is a match, or an attribute, as the kind says."""
        if outcome.error is not None or self.kind == "raw":
            return outcome
        try:
            if self.kind == "selector":
                return outcome._replace(value=as_match(outcome.value, PYTHON_TYPES))
            return outcome._replace(value=as_attribute(outcome.value))
        except EvalError as error:
            return Evaluated(None, outcome.cost, str(error))


class DeviceCompiler:
    """Compiles expressions for one set of features."""

    def __init__(
        self,
        features: CelFeatures,
        *,
        extensions: bool = True,
        cheap_cost_max: int = CHEAP_COST_MAX,
    ) -> None:
        self.features = features
        self._cheap_cost_max = cheap_cost_max
        self.extensions = extensions
        self.meter = Meter()
        self._answers: LRU[Any, Any] = LRU(
            ANSWERS_MAX, ANSWERS_SIZE_MAX
        )  # of all expensive expressions
        self._compiled: LRU[tuple[str, ExpressionKind, Scope], Compiled] = LRU(CACHE_SIZE)

    def __reduce__(self) -> tuple[object, ...]:  # pickled without what it has compiled
        cost_max, extensions = self._cheap_cost_max, self.extensions
        again = partial(DeviceCompiler, extensions=extensions, cheap_cost_max=cost_max)
        return again, (self.features,)

    def compile(
        self, expression: str, *, kind: ExpressionKind = "selector", scope: Scope = Scope.STORED
    ) -> Compiled:
        """Return the compiled expression; the same text is compiled once."""
        key = (expression, kind, scope)
        found = self._compiled.get(key)
        if found is None:
            found = self._compile(*key)
            self._compiled.put(key, found)
        return found

    def parse(self, expression: str) -> ParsedAST:
        """Return the tree of a new expression, whatever its types; raises CompileError."""
        return parse(expression, self._environment(Scope.NEW).macros)

    def type_name(self, value: Any) -> str:
        """Return the name of a value's type."""
        return runtime_type(value, PYTHON_TYPES).name

    def _compile(self, expression: str, kind: ExpressionKind, scope: Scope) -> Compiled:
        self.meter.admit(COMPILE_COST * len(expression))
        start_s = self.meter.now_s()
        begin_evaluation()
        found = self._checked(expression, kind, scope)
        self.meter.record(expression, 0, start_s)
        return replace(found, unpaid=unpaid_of_evaluation())

    def _checked(self, expression: str, kind: ExpressionKind, scope: Scope) -> Compiled:
        environment = self._environment(scope)
        try:
            program = compile_expression(expression, environment)
        except CompileError as error:
            hint = _hyphen_hint(error) if self.extensions else ""
            return Compiled(expression, kind, None, f"compilation failed: {error}{hint}")
        except RecursionError:
            return Compiled(expression, kind, None, "compilation failed: nested too deeply")
        except InstantiationError as error:
            refused = self._refuse_type(error.checked.output_type, kind, scope)
            if refused is not None:
                return Compiled(expression, kind, None, refused)
            detail = f"program instantiation failed: {error}"
            return Compiled(expression, kind, None, detail, is_internal=True)
        refused = self._refuse_type(program.output_type, kind, scope)
        if refused is not None:
            return Compiled(expression, kind, None, refused)
        return Compiled(
            expression,
            kind,
            program,
            None,
            cheap_cost_max=self._cheap_cost_max,
            meter=self.meter,
            answers=self._answers,
        )

    def _has_lists(self, scope: Scope) -> bool:
        return scope is Scope.STORED or self.features.list_attributes

    def _environment(self, scope: Scope) -> Environment:
        return _environment(
            self._has_lists(scope),
            scope is Scope.STORED or self.features.consumable_capacity,
            self.extensions,
        )

    def _refuse_type(self, output: Type, kind: ExpressionKind, scope: Scope) -> str | None:
        """Return why an expression of this type cannot be used, or None."""
        has_lists = self._has_lists(scope)
        if kind == "selector":
            attribute = t.DYN if has_lists else t.ANY
            if same(output, t.BOOL) or same(output, attribute):
                return None
            return f"must evaluate to bool or the unknown type, not {full_name(output)}"
        if kind == "derived":
            return _refuse_derived_type(output, has_lists=has_lists)
        return None


# The texts before and after a minus that was meant as a hyphen.
_BEFORE_HYPHEN = re.compile(r"\.([A-Za-z_]\w*(?:-\w+)*)-\Z", re.ASCII)
_AFTER_HYPHEN = re.compile(r"\w+(?:-\w+)*", re.ASCII)


def _hyphen_hint(error: CompileError) -> str:
    """Return how to write `.some-name`, which is a subtraction to CEL; empty if it is none.

    Then the name after the minus is undeclared, or no name.
    """
    source = error.source
    for issue in error.issues:
        if not issue.message.startswith(("undeclared reference to ", "reserved identifier")):
            continue
        before = _BEFORE_HYPHEN.search(source, 0, issue.offset)
        after = _AFTER_HYPHEN.match(source, issue.offset)
        if before and after:
            name = f"{before[1]}-{after[0]}"
            parts = " minus ".join(name.split("-"))
            return f'\nhint: .{name} is .{parts} to CEL; write ["{name}"]'
    return ""


_SCALARS = (t.BOOL, t.INT, t.STRING, t.ANY, t.DYN, SEMVER)


def _refuse_derived_type(output: Type, *, has_lists: bool) -> str | None:
    is_list = output.kind is t.TypeKind.LIST and _is_scalar(output.params[0])
    if _is_scalar(output) or (has_lists and is_list):
        return None
    scalars = "a primitive scalar (string, integer, boolean, semver)"
    if has_lists:
        scalars += " or a list of these scalars"
    return f"must evaluate to {scalars}, not {full_name(output)}"


def _is_scalar(output: Type) -> bool:
    return any(same(output, scalar) for scalar in _SCALARS)


@lru_cache(maxsize=8)
def _environment(lists: bool, consumable: bool, extensions: bool) -> Environment:
    attribute = t.DYN if lists else t.ANY
    fields = {
        "driver": t.STRING,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, attribute)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, QUANTITY)),
    }
    if consumable:
        fields["allowMultipleAllocations"] = t.BOOL
    if extensions:
        fields["name"] = t.STRING
    libraries = environment_libraries(includes=lists)
    if extensions and lists:
        libraries += (include_library(),)
    return Environment(
        libraries,
        variables={"device": t.struct(DEVICE)},
        structs={DEVICE: fields},
        # Names that only Kubernetes' type provider knows.
        type_names={
            "duration": t.DURATION,
            "timestamp": t.TIMESTAMP,
            f"{DEVICE}.attributes": fields["attributes"],
            f"{DEVICE}.capacity": fields["capacity"],
        },
        cells=CELLS,
    )


PYTHON_TYPES: Mapping[type, Type] = {
    class_: type_
    for library in environment_libraries(includes=True)
    for class_, type_ in library.python_types.items()
}


# --- sizes, for cost estimates --------------------------------------------------------------------

DOMAIN_MAX = 63
IDENTIFIER_MAX = 32
NAME_MAX = 63
ENTRIES_MAX = 32
VALUE_MAX = 64  # characters of a text, and more than the values of a list


def device_sizes() -> DeclaredSizes:
    """Return the bounds of the variable `device`."""
    value = SizeBound(VALUE_MAX)
    attributes = SizeBound(
        ENTRIES_MAX, keys=SizeBound(IDENTIFIER_MAX), values=value, any_field=value
    )
    capacity = SizeBound(ENTRIES_MAX, keys=SizeBound(IDENTIFIER_MAX), values=SizeBound(0))
    device = SizeBound(
        0,
        fields={
            "driver": SizeBound(NAME_MAX),
            "name": SizeBound(NAME_MAX),
            "allowMultipleAllocations": SizeBound(1),
            "attributes": SizeBound(ENTRIES_MAX, keys=SizeBound(DOMAIN_MAX), values=attributes),
            "capacity": SizeBound(ENTRIES_MAX, keys=SizeBound(DOMAIN_MAX), values=capacity),
        },
    )
    return DeclaredSizes({"device": device})
