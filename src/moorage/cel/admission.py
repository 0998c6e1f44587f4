"""Expressions of admission policies and of match conditions, as the API server compiles them.

    object, oldObject     the object after and before the request, as JSON; null if there is none
    request               the request; its fields are those of an AdmissionRequest
    namespaceObject       the namespace of the object, null for an object without one
    params                the parameters of a policy that has a kind of them
    authorizer            asks what users may do; `authorizer.requestResource` about this request
    variables             the variables of the policy, each evaluated when it is first used

A call may cost PER_CALL_LIMIT. All validations of a policy for one binding and one parameter share
a budget, and so do all match conditions. Variables cost what their evaluation costs, once for each
group of expressions that is evaluated together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from moorage.cel import mutation_types
from moorage.cel.device import PYTHON_TYPES, Scope
from moorage.cel.lang import macros
from moorage.cel.lang import types as t
from moorage.cel.lang.environment import Environment, Library
from moorage.cel.lang.errors import CompileError, InstantiationError
from moorage.cel.lang.interpretable import Failure
from moorage.cel.lang.library import formatting, lists, optionals, standard, strings
from moorage.cel.lang.metering import Interrupted, Meter
from moorage.cel.lang.program import Evaluated, Program, compile_expression
from moorage.cel.lang.types import Type, TypeKind, full_name, same, struct
from moorage.cel.lang.unpaid_work import begin_evaluation, unpaid_of_evaluation
from moorage.cel.library import kubernetes_libraries, with_equality_costs
from moorage.cel.library.authz import AUTHORIZER, RESOURCE_CHECK
from moorage.cel.mutation_types import JSON_PATCHES, OBJECT, MutationEnvironment
from moorage.kit.go_quote import go_quote

PER_CALL_LIMIT: Final = 1_000_000
BUDGET: Final = 10_000_000  # of a policy, for one binding and one parameter
MATCH_CONDITIONS_BUDGET: Final = 2_500_000
MESSAGE_BYTES_MAX: Final = 5 * 1024

VARIABLES: Final = "kubernetes.variables"
REQUEST_AUTHORIZER: Final = "authorizer.requestResource"

_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Declared(NamedTuple):
    """The variables and types that not all expressions have."""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


class Returns(Enum):
    """The types that an expression may have; all, if there are none."""

    BOOL = (t.BOOL,)
    STRING = (t.STRING,)
    STRING_OR_NULL = (t.STRING, t.NULL)
    OBJECT = (OBJECT,)
    JSON_PATCHES = (JSON_PATCHES,)
    ANYTHING = ()


@dataclass(frozen=True, eq=False, slots=True)
class CompiledExpression:
    """A compiled expression, or its error."""

    expression: str
    program: Program | None = None
    error: str = ""
    is_internal: bool = False  # the error is one of instantiation
    unpaid: int = 0  # work of compiling it, beyond its length


class ObjectTypes(NamedTuple):
    """The types of the objects that a policy sees, where they are known."""

    object: Type = t.DYN  # and oldObject
    params: Type = t.DYN
    structs: Mapping[str, Mapping[str, Type]] = {}


class AdmissionCompiler:
    """Compiles the expressions of one policy; those that come later see the variables so far.

    `composes`: whether `variables` is declared.
    `types`: of objects, to find what can go wrong; expressions that are evaluated know none.
    """

    def __init__(self, *, composes: bool = True, types: ObjectTypes | None = None) -> None:
        self._composes = composes
        self._types = types
        self._fields: dict[str, Type] = {}
        self.variables: dict[str, CompiledExpression] = {}

    def compile(
        self, expression: str, returns: Returns, declared: Declared, scope: Scope = Scope.STORED
    ) -> CompiledExpression:
        """Return a compiled expression."""
        return _compiled(expression, returns, self._declaring(declared, scope))

    def type_error(self, expression: str, declared: Declared) -> str:
        """Return what the checker says against an expression of any type; empty if nothing."""
        begin_evaluation()
        try:
            compile_expression(expression, self._declaring(declared, Scope.STORED))
        except CompileError as error:
            return str(error)
        except (RecursionError, InstantiationError):
            pass  # Its types are right, or nobody knows.
        return ""

    def _declaring(self, declared: Declared, scope: Scope) -> Environment:
        environment = _environment(declared, scope)
        variables: dict[str, Type] = {}
        structs: dict[str, Mapping[str, Type]] = {}
        if self._types is not None:
            variables |= {"object": self._types.object, "oldObject": self._types.object}
            if declared.params:
                variables["params"] = self._types.params
            structs |= self._types.structs
        if self._composes:
            variables["variables"] = struct(VARIABLES)
            structs[VARIABLES] = dict(self._fields)
        if not variables:
            return environment
        return environment.extended(variables=variables, structs=structs)

    def add_variable(
        self, name: str, expression: str, declared: Declared, scope: Scope = Scope.STORED
    ) -> CompiledExpression:
        """Compile a variable, and declare it for the expressions that follow."""
        compiled = self.compile(expression, Returns.ANYTHING, declared, scope)
        output = None if compiled.program is None else compiled.program.output_type
        self._fields[name] = t.DYN if output is None else _declared_type(output)
        self.variables[name] = compiled
        return compiled


def _compiled(expression: str, returns: Returns, environment: Environment) -> CompiledExpression:
    begin_evaluation()
    try:
        program = compile_expression(expression, environment)
    except CompileError as error:
        return CompiledExpression(expression, error=f"compilation failed: {error}")
    except RecursionError:
        return CompiledExpression(expression, error="compilation failed: nested too deeply")
    except InstantiationError as error:
        refused = _refused_type(error.checked.output_type, returns)
        detail = refused or f"program instantiation failed: {error}"
        return CompiledExpression(expression, error=detail, is_internal=refused is None)
    refused = _refused_type(program.output_type, returns)
    if refused is not None:
        return CompiledExpression(expression, error=refused)
    return CompiledExpression(expression, program, unpaid=unpaid_of_evaluation())


def _refused_type(output: Type, returns: Returns) -> str | None:
    """Return why an expression of this type cannot be used, or None."""
    wanted: tuple[Type, ...] = returns.value
    if not wanted or any(same(output, each) for each in wanted):
        return None
    if len(wanted) == 1:
        return f"must evaluate to {full_name(wanted[0])} but got {full_name(output)}"
    listed = " ".join(map(full_name, wanted))
    return f"must evaluate to one of [{listed}] but got {full_name(output)}"


def _declared_type(output: Type) -> Type:
    """Return the type of a variable; others than plain ones, lists and maps are not known."""
    match output.kind:
        case TypeKind.LIST:
            return t.list_of(_declared_type(output.params[0]))
        case TypeKind.MAP:
            return t.map_of(*map(_declared_type, output.params))
    return output if output in _PLAIN_TYPES else t.DYN


_PLAIN_TYPES: Final = (
    *(t.ANY, t.BOOL, t.BYTES, t.DOUBLE, t.DURATION),
    *(t.INT, t.NULL, t.STRING, t.TIMESTAMP, t.UINT),
)


# --- evaluation -----------------------------------------------------------------------------------


class OutOfBudget(Exception):  # noqa: N818 - it ends a group of evaluations, which decides by it
    """All expressions together cost more than they may."""


class Answer(NamedTuple):
    """The value of an expression, or its error."""

    value: Any = None
    error: str = ""


class Evaluator:
    """Evaluates expressions about one request, which share their budget and their variables."""

    def __init__(
        self,
        values: Mapping[str, Any],
        variables: Mapping[str, CompiledExpression],
        *,
        budget: int,
        meter: Meter,
    ) -> None:
        self._lazy = _LazyVariables(self, variables)
        self._values = {**values, "variables": self._lazy}
        self._meter = meter
        self.budget = budget  # that is left

    def evaluate(self, compiled: CompiledExpression) -> Answer:
        """Return the answer of an expression, or raise OutOfBudget."""
        if compiled.program is None:
            return Answer(error=f"compilation error: {compiled.error}")
        start_s = self._meter.now_s()
        outcome = self.run(compiled.program)
        composed, cost = self._lazy.take_cost(), outcome.cost or 0
        self._meter.record(compiled.expression, 1, start_s, (composed + cost,))
        self._spend(composed)
        self._spend(cost)
        if outcome.error is not None:
            fact = f"expression '{compiled.expression}' resulted in error: {outcome.error}"
            return Answer(error=fact)
        return Answer(outcome.value)

    def run(self, program: Program) -> Evaluated:
        """Return the outcome of a program; generated code leaves failures to the plan."""
        lazy, limit = self._lazy, PER_CALL_LIMIT
        before = lazy.is_planned
        try:
            if program.fast is not None:
                lazy.is_planned = False
                begin_evaluation()
                try:
                    return Evaluated(*program.fast(self._values, *self._meter.checkpoints(limit)))
                except Interrupted:
                    raise
                except Exception:  # noqa: S110 - the plan finds the error
                    pass
            lazy.is_planned = True
            return program.run_plan(self._values, cost_limit=limit, meter=self._meter)
        finally:
            lazy.is_planned = before

    def _spend(self, cost: int) -> None:
        if cost > self.budget:
            raise OutOfBudget(_OUT_OF_BUDGET)
        self.budget -= cost


class _VariableFailed(Exception):  # noqa: N818 - a signal to run the plan
    """A variable has no value, which generated code leaves to the plan."""


class _LazyVariables(dict[str, Any]):
    """The variable `variables`: a map whose values are evaluated when they are first used."""

    def __init__(self, evaluator: Evaluator, compiled: Mapping[str, CompiledExpression]) -> None:
        super().__init__()
        self._evaluator = evaluator
        self._compiled = compiled
        self._cost = 0
        self.is_planned = False

    def __missing__(self, name: str) -> Any:
        compiled = self._compiled.get(name)
        if compiled is None:
            raise KeyError(name)
        self[name] = self._evaluated(name, compiled)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, Failure) and not self.is_planned:
            raise _VariableFailed
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._compiled

    def take_cost(self) -> int:
        """Return what variables have cost since it was last asked."""
        cost, self._cost = self._cost, 0
        return cost

    def _evaluated(self, name: str, compiled: CompiledExpression) -> Any:
        if compiled.program is None:
            return Failure(
                f"composited variable {go_quote(name)} fails to compile: {compiled.error}"
            )
        outcome = self._evaluator.run(compiled.program)
        self._cost += outcome.cost or 0
        if outcome.error is not None:
            return Failure(
                f"composited variable {go_quote(name)} fails to evaluate: {outcome.error}"
            )
        return outcome.value


# --- declarations ---------------------------------------------------------------------------------

_STRINGS: Final = t.list_of(t.STRING)
_TEXTS: Final = t.map_of(t.STRING, t.STRING)
_STRUCTS: Final[dict[str, dict[str, Type]]] = {
    "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), t.STRING),
    "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), t.STRING),
    "kubernetes.UserInfo": {
        "username": t.STRING,
        "uid": t.STRING,
        "groups": _STRINGS,
        "extra": t.map_of(t.STRING, _STRINGS),
    },
    "kubernetes.AdmissionRequest": {
        "kind": struct("kubernetes.GroupVersionKind"),
        "resource": struct("kubernetes.GroupVersionResource"),
        "subResource": t.STRING,
        "requestKind": struct("kubernetes.GroupVersionKind"),
        "requestResource": struct("kubernetes.GroupVersionResource"),
        "requestSubResource": t.STRING,
        "name": t.STRING,
        "namespace": t.STRING,
        "operation": t.STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": t.BOOL,
        "options": t.DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _STRINGS},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), t.STRING),
        "lastTransitionTime": t.TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {
        "conditions": t.list_of(struct("kubernetes.NamespaceCondition")),
        "phase": t.STRING,
    },
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), t.STRING),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "creationTimestamp": t.TIMESTAMP,
        "deletionGracePeriodSeconds": t.INT,
        "deletionTimestamp": t.TIMESTAMP,
        "generation": t.INT,
        "finalizers": _STRINGS,
    },
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
}


@lru_cache(maxsize=16)
def _environment(declared: Declared, scope: Scope) -> Environment:
    """Return an environment; new expressions cannot use what came with Kubernetes 1.37."""
    variables = {
        "object": t.DYN,
        "oldObject": t.DYN,
        "namespaceObject": struct("kubernetes.Namespace"),
        "request": struct("kubernetes.AdmissionRequest"),
    }
    if declared.params:
        variables["params"] = t.DYN
    if declared.authorizer:
        variables |= {"authorizer": AUTHORIZER, REQUEST_AUTHORIZER: RESOURCE_CHECK}
    libraries = _libraries(includes=scope is Scope.STORED)
    make = Environment
    if declared.patches:
        make, libraries = MutationEnvironment, (*libraries, mutation_types.library())
    return make(libraries, variables=variables, structs=_STRUCTS)


def _libraries(*, includes: bool) -> tuple[Library, ...]:
    """Return Kubernetes' base libraries."""
    return (
        with_equality_costs(standard.library()),
        strings.library(),
        formatting.library(dict(PYTHON_TYPES)),
        lists.sets_library(),
        lists.library(),
        optionals.library(),
        macros.two_variable_library(),
        *kubernetes_libraries(with_includes=includes),
    )
