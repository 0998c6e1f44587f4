"""Write the body of a generated function, line by line, from a plan.

Names are made up: v0 is an input, t0 an intermediate value, k0 a constant, c the cost so far.

    # root: a variable of the caller, as opposed to an iteration variable
    # cell: the value at the end of a constant path, which is an input of its own (see attributes)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from moorage.cel.lang import code_support
from moorage.cel.lang.attributes import (
    ABSENT,
    SELECT_COST,
    Attribute,
    Computed,
    Conditional,
    Path,
    Pattern,
    Qualifier,
    Variable,
    longest_cell,
)
from moorage.cel.lang.code_support import Lines, NotCompilable
from moorage.cel.lang.equality import equal
from moorage.cel.lang.interpretable import (
    Activation,
    Budget,
    Constant,
    Failure,
    Fold,
    FunctionCall,
    Interpretable,
    Logic,
    Membership,
    OrElse,
)
from moorage.cel.lang.literals import LIST_COST, MakeList
from moorage.cel.lang.types import BOOL
from moorage.cel.lang.values import NONE, Optional

LENGTHS_MAX = 256  # the plan handles longer texts
CONSTANT_COST_MAX = 100_000
UNLIMITED = 2**64


class Writer(Lines):
    """Writes the body of one function."""

    def __init__(self, cells: Iterable[Pattern] = ()) -> None:
        super().__init__()
        self.inputs: dict[Path, str] = {}  # inputs that the caller must provide, and their names
        self._cells = tuple(cells)
        self._scope: dict[str, str | _LazyVariable] = {}
        self._bools = {"True", "False"}  # names whose values are certainly bools
        self.unusual = self.constant(code_support.Unusual())

    # --- steps ------------------------------------------------------------------------

    def write(self, step: Interpretable) -> str:
        """Write the lines for a step and return the name of its value."""
        match step:
            case Constant(value=value):
                return self.constant(value)
            case Conditional():
                return self._conditional(step)
            case Attribute():
                return self._attribute(step, costs_itself=True)
            case Logic():
                return self._logic(step)
            case FunctionCall():
                return self._call(step)
            case Membership():
                return self._membership(step)
            case MakeList() if not step.optional:
                values = [self.write(element) for element in step.elements]
                self._cost += LIST_COST
                return self._assign(f"[{', '.join(values)}]")
            case Fold():
                return self._loop(step)
            case OrElse():
                return self._or_else(step)
            case _:
                raise NotCompilable

    def _assign_bool(self, code: str) -> str:
        self._bools.add(name := self._assign(code))
        return name

    # --- attributes -------------------------------------------------------------------

    def _attribute(self, step: Attribute, *, costs_itself: bool) -> str:
        cell = self._cell(step)
        if cell is not None:
            value = self._read_cell(cell, step.qualifiers)
        elif any(q.optional for q in step.qualifiers):
            value = self._optional_chain(self._source(step), step.qualifiers)
        else:
            value = self._chain(self._source(step), step.qualifiers)
        if costs_itself and not step.is_presence_test:
            self._cost += SELECT_COST
        return value

    def _source(self, step: Attribute) -> str:
        match step.source:
            case Computed(step=inner):
                value = self.write(inner)
            case Variable(name=name):
                if self._is_root(step.source):
                    return self._input((name,))
                found = self._scope[name]
                if isinstance(found, _LazyVariable):
                    found = found.force(self)
                value = found
            case _:
                raise NotCompilable
        if step.qualifiers:
            self.line(f"if type({value}) is {self.constant(Optional)}: raise {self.unusual}")
        return value

    def _is_root(self, variable: Variable) -> bool:
        return variable.is_outermost or variable.name not in self._scope

    def _input(self, path: Path) -> str:
        return self.inputs.setdefault(path, f"v{len(self.inputs)}")

    def _cell(self, step: Attribute) -> Path | None:
        match step.source:
            case Variable(name=name) if self._is_root(step.source):
                return longest_cell(name, step.qualifiers, self._cells)
        return None

    def _read_cell(self, path: Path, qualifiers: list[Qualifier]) -> str:
        """Write the value of a cell and of the keys behind it."""
        value = self._input(path)
        keys, rest = qualifiers[: len(path) - 1], qualifiers[len(path) - 1 :]
        self._cost += len(keys) - 1  # All but the last lead to maps for certain.
        if any(q.optional for q in keys):
            if keys[-1].tests:
                raise NotCompilable
            return self._optional_rest(value, rest)
        self._cost += 1
        absent = self.constant(ABSENT)
        if keys[-1].tests:
            return self._assign_bool(f"{value} is not {absent}")
        self.line(f"if {value} is {absent}: raise {self.unusual}")
        if any(q.optional for q in rest):
            return self._optional_chain(value, rest)
        return self._chain(value, rest)

    def _qualified(self, value: str, qualifier: Qualifier) -> str:
        if qualifier.computed is not None:
            key = self._resolved(qualifier.computed)
            self._cost += 1
            return self._assign(f"{self.constant(code_support.indexed)}({value}, {key})")
        self._cost += 1
        key = self.constant(qualifier.key)
        if qualifier.tests:
            present = self.constant(code_support.is_present)
            return self._assign_bool(
                f"{key} in {value} if type({value}) is dict else {present}({value}, {key})"
            )
        if type(qualifier.key) is str:
            return self._assign(f"{value}[{key}]")
        return self._assign(f"{self.constant(code_support.indexed)}({value}, {key})")

    def _chain(self, value: str, qualifiers: list[Qualifier]) -> str:
        for qualifier in qualifiers:
            value = self._qualified(value, qualifier)
        return value

    def _optional_chain(self, value: str, qualifiers: list[Qualifier]) -> str:
        """Write a chain that has an optional qualifier; from there on, an absent value ends it."""
        position = next(i for i, q in enumerate(qualifiers) if q.optional)
        value = self._chain(value, qualifiers[:position])
        return self._optional_rest(*self._looked_up(value, qualifiers[position:]))

    def _looked_up(self, value: str, qualifiers: list[Qualifier]) -> tuple[str, list[Qualifier]]:
        """Write the value of the first qualifier, or ABSENT, and return the rest with it."""
        first, *rest = qualifiers
        if first.computed is not None or first.tests:
            raise NotCompilable
        looked_up = self.constant(code_support.looked_up)
        return self._assign(f"{looked_up}({value}, {self.constant(first.key)})"), rest

    def _optional_rest(self, value: str, qualifiers: list[Qualifier]) -> str:
        """Write the optional that a chain gives whose value so far may be ABSENT."""
        self.flush()
        result = self._assign(self.constant(NONE))
        depth = self._depth
        while True:
            self.line(f"if {value} is not {self.constant(ABSENT)}:")
            self._depth += 1
            self.line("c += 1")
            if not qualifiers:
                break
            value, qualifiers = self._looked_up(value, qualifiers)
        self.line(f"{result} = {self.constant(Optional)}({value})")
        self._depth = depth
        return result

    def _resolved(self, attribute: Attribute) -> str:
        """Write an attribute that another step resolves and pays for."""
        if isinstance(attribute, Conditional):
            return self._conditional(attribute)
        return self._attribute(attribute, costs_itself=False)

    def _conditional(self, step: Conditional) -> str:
        if step.is_presence_test:
            raise NotCompilable
        condition = self.write(step.condition)
        result = self.temporary()
        values = []
        for wanted, side in ((True, step.truthy), (False, step.falsy)):
            keyword = "if" if wanted else "elif"
            with self.block(f"{keyword} {self._is(condition, wanted)}:"):
                values.append(self._resolved(side))
                self.line(f"{result} = {values[-1]}")
        self.line(f"else: raise {self.unusual}")
        if self._bools.issuperset(values):
            self._bools.add(result)
        return result

    # --- logic and calls --------------------------------------------------------------

    def _logic(self, step: Logic) -> str:
        result, depth = self.temporary(), self._depth
        *firsts, last = step.terms
        values = []
        for term in firsts:
            values.append(self.write(term))
            self.flush()
            self.line(f"{result} = {values[-1]}")
            self.line(f"if {self._is(values[-1], not step.decisive)}:")
            self._depth += 1
        values.append(self.write(last))
        self.flush()
        self.line(f"{result} = {values[-1]}")
        self._depth = depth
        if not self._bools.issuperset(values):
            self.line(f"if {result} is not True and {result} is not False: raise {self.unusual}")
        self._bools.add(result)
        return result

    def _is(self, value: str, wanted: bool) -> str:
        """Return the test whether a value is the wanted bool."""
        if value in self._bools:
            return value if wanted else f"not {value}"
        return f"{value} is {wanted}"

    def _call(self, step: FunctionCall) -> str:
        if all(isinstance(arg, Constant) for arg in step.args):
            return self._constant_call(step)
        args = [self.write(arg) for arg in step.args]
        if step.evaluate is equal:
            return self._equal(step, args)
        if not step.is_strict:
            self._cost += 1
            (only,) = args
            return only if only in self._bools else self._assign_bool(f"{only} is not False")
        result = self._assign(self._call_code(step, args))
        if step.certain is not None and step.certain.result == BOOL:
            self._bools.add(result)
        if step.cost is None:
            self._cost += 1
        else:
            cost = self.constant(step.cost)
            self.line(f"c += {cost}(({', '.join(args)},), {result})")
        return result

    def _call_code(self, step: FunctionCall, args: list[str]) -> str:
        """Return the call; without type checks, if the types are certain."""
        if (overload := step.certain) is None or overload.evaluate is None:
            called = f"{self.constant(step.evaluate)}({', '.join(args)})"
            return code_support.with_int(step, args, called)
        if overload.id in code_support.COMPARISONS:
            return f"{args[0]} {code_support.COMPARISONS[overload.id]} {args[1]}"
        if overload.id == "logical_not":
            return f"not {args[0]}"
        return f"{self.constant(overload.evaluate)}({', '.join(args)})"

    def _constant_call(self, step: FunctionCall) -> str:
        """Write the value of a call with constant arguments, and add its cost."""
        budget = Budget(UNLIMITED)
        value = step.run(Activation({}, budget))
        if isinstance(value, Failure) or budget.spent > CONSTANT_COST_MAX:
            raise NotCompilable
        self._cost += budget.spent
        return self.constant(value)

    def _equal(self, step: FunctionCall, args: list[str]) -> str:
        """Write an equality; with a constant string or int it is Python's, and its cost known."""
        self._bools.add(result := self.temporary())
        constant: Any = next((a.value for a in step.args if isinstance(a, Constant)), None)
        if step.cost is None or type(constant) not in (str, int):
            self._general_equal(step, args, result)
            return result
        other = args[1] if isinstance(step.args[0], Constant) else args[0]
        if step.certain is not None:
            self._plain_equal(constant, args, other, result)
            return result
        with self.block(f"if type({other}) is {'str' if type(constant) is str else 'int'}:"):
            self._plain_equal(constant, args, other, result)
        with self.block("else:"):
            self._general_equal(step, args, result)
        return result

    def _plain_equal(self, constant: str | int, args: list[str], other: str, result: str) -> None:
        self.line(f"{result} = {args[0]} == {args[1]}")
        if type(constant) is str:  # a tenth of the shorter length, rounded up
            costs = tuple((min(n, len(constant)) + 9) // 10 for n in range(LENGTHS_MAX))
            self.line(f"c += {self.constant(costs)}[len({other})]")
        else:
            self._cost += 1

    def _general_equal(self, step: FunctionCall, args: list[str], result: str) -> None:
        arguments = ", ".join(args)
        self.line(f"{result} = {self.constant(step.evaluate)}({arguments})")
        if step.cost is None:
            self._cost += 1
        else:
            self.line(f"c += {self.constant(step.cost)}(({arguments}), {result})")

    def _membership(self, step: Membership) -> str:
        value = self.write(step.arg)
        member = self.constant(code_support.Members(step.members))
        return self._assign_bool(f"{member}({value})")

    def _or_else(self, step: OrElse) -> str:
        value = self.write(step.first)
        result = self.temporary()
        optional, none = self.constant(Optional), self.constant(NONE)
        self.line(f"if type({value}) is not {optional}: raise {self.unusual}")
        with self.block(f"if {value} is {none}:"):
            self.line(f"{result} = {self.write(step.second)}")
        with self.block("else:"):
            code = f"{self.constant(code_support.unwrapped)}({value})" if step.unwraps else value
            self.line(f"{result} = {code}")
        return result

    # --- loops ------------------------------------------------------------------------

    def _loop(self, step: Fold) -> str:
        values, outer = self.write(step.iter_range), dict(self._scope)
        accu = self.temporary()
        lazy = _LazyVariable(accu, step.accu_init, outer)
        if isinstance(step.accu_init, Constant):
            self.line(f"{accu} = {self.constant(step.accu_init.value)}")
            self._scope[step.accu_var] = accu
            if type(step.accu_init.value) is bool:
                self._bools.add(accu)
        else:
            self.flush()
            self.line(f"{accu} = {self.constant(ABSENT)}")
            self._scope[step.accu_var] = lazy
        is_empty = isinstance(step.iter_range, Constant) and not step.iter_range.value
        if not is_empty:
            self._loop_body(step, values, accu)
        self._scope.pop(step.iter_var, None)
        result = self.write(step.result)
        self._scope = outer
        return result

    def _loop_body(self, step: Fold, values: str, accu: str) -> None:
        if step.iter_var2 is not None:
            raise NotCompilable
        item = self.temporary()
        elements = self.constant(code_support.elements)
        self._scope[step.iter_var] = item
        listed = f"{values} if type({values}) is tuple else {elements}({values})"
        with self.block(f"for {item} in {listed}:"):
            if not (isinstance(step.condition, Constant) and step.condition.value is True):
                condition = self.write(step.condition)
                self.flush()
                self.line(f"if {self._is(condition, False)}: break")
            value = self.write(step.step)
            if accu in self._bools and value not in self._bools:
                self.line(f"if type({value}) is not bool: raise {self.unusual}")
            self.line(f"{accu} = {value}")
            self.flush()
            self.line("if c > limit: limit = more(c)")


class _LazyVariable(NamedTuple):
    """A variable that its first use evaluates."""

    name: str
    init: Interpretable
    outer: dict[str, Any]

    def force(self, writer: Writer) -> str:
        with writer.block(f"if {self.name} is {writer.constant(ABSENT)}:"):
            inner, writer._scope = writer._scope, dict(self.outer)
            writer.line(f"{self.name} = {writer.write(self.init)}")
            writer._scope = inner
        return self.name
