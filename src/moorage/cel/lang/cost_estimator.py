"""The cost estimator: the cost of an expression, at least and at most.

The AST is walked once. For every node the walk records the path of its value, the size that the
value may have and the sizes of its entries; the estimate of a call depends on those of its
arguments. Loops cost their step for every element that their range may have.

    # local: a variable of a loop or of cel.bind, with its size if that is known
    # entry size: the sizes of keys and values in a list or map
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.cel.lang import ast
from moorage.cel.lang.ast import CheckedAST, Expr, Steps, Walker
from moorage.cel.lang.costs import (
    IMPOSSIBLE,
    NOTHING,
    UNKNOWN,
    Argument,
    CallEstimate,
    EntrySize,
    Path,
    Range,
    SizeHints,
    add,
    exactly,
    multiply,
    type_size,
    union,
    union_entries,
    written_size,
)
from moorage.cel.lang.environment import Environment
from moorage.cel.lang.types import DYN, Type, TypeKind

NAME_COST = exactly(1)  # an identifier or a select
LIST_COST = exactly(10)
MAP_COST = exactly(30)
STRUCT_COST = exactly(40)
CALL_COST = exactly(1)

_NAMED_ACCUMULATOR = "__result__"
_CONCATENATIONS = ("add_string", "add_bytes", "add_list")
_INDEX_STEPS = {"index_list": "@items", "index_map": "@values"}


def estimate_cost(checked: CheckedAST, environment: Environment, *, size_hints: SizeHints) -> Range:
    """Return the estimated cost of an expression; Kubernetes charges nothing for `has`."""
    return _Estimator(checked, environment, size_hints).walk(checked.parsed.expr)


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: Range | None
    entries: EntrySize | None = None


class _Estimator(Walker[Range]):
    def __init__(
        self, checked: CheckedAST, environment: Environment, size_hints: SizeHints
    ) -> None:
        self._checked = checked
        self._environment = environment
        self._size_hints = size_hints
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, EntrySize] = {}
        self._locals: dict[str, list[_Local]] = {}  # innermost last

    def visit(self, node: Expr) -> Range | Steps[Range]:
        """Return the estimated cost of a node, or the steps to it."""
        match node:
            case ast.Literal():
                return NOTHING
            case ast.Ident():
                return self._ident(node)
            case ast.Select():
                return self._select(node)
            case ast.Call(function="dyn"):
                return self._dyn(node)
            case ast.Call():
                return self._call(node)
            case ast.CreateList():
                return self._list(node)
            case ast.CreateMap():
                return self._map(node)
            case ast.CreateStruct():
                return self._struct(node)
            case ast.Comprehension():
                return self._bind(node) if _is_bind(node) else self._comprehension(node)

    # --- names ------------------------------------------------------------------------

    def _ident(self, node: ast.Ident) -> Range:
        local = self._local(node)
        self._paths[node.id] = Path(node.name) if local is None else local.path
        return NAME_COST

    def _select(self, node: ast.Select) -> Steps[Range]:
        operand = yield node.operand
        if node.test_only:
            return operand
        self._paths[node.id] = self._path(node.operand).then(node.field)
        kind = self._type(node.operand).kind
        # A field of a dynamic value is free: only what has fields for certain is charged.
        is_charged = kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.TYPE_PARAM)
        return add(operand, NAME_COST) if is_charged else operand

    # --- calls ------------------------------------------------------------------------

    def _dyn(self, node: ast.Call) -> Steps[Range]:
        (arg,) = node.args
        cost = yield arg
        self._copy_sizes(node, arg)
        return add(CALL_COST, cost)

    def _call(self, node: ast.Call) -> Steps[Range]:
        costs: list[Range] = []
        args: list[Argument] = []
        for arg in node.args:
            costs.append((yield arg))
            args.append(self._argument(arg))
        reference = self._checked.references.get(node.id)
        if reference is None:
            return NOTHING
        target_cost, target = NOTHING, None
        if node.target is not None:
            target_cost, target = (yield node.target), self._argument(node.target)
        cost, size = IMPOSSIBLE, None
        for overload_id in reference.overload_ids:
            estimate = self._overload(node, overload_id, target, tuple(args), costs)
            cost = union(cost, estimate.cost)
            size = self._result_size(node, overload_id, size, estimate.result_size)
        self._note_size(node, size)
        return add(target_cost, cost)

    def _overload(
        self,
        node: ast.Call,
        overload_id: str,
        target: Argument | None,
        args: tuple[Argument, ...],
        costs: list[Range],
    ) -> CallEstimate:
        """Return the estimate of a call of one overload, with its arguments."""
        match overload_id:
            case "logical_and" | "logical_or":
                left, right = costs
                # At least the left side; the right one may never be looked at.
                return CallEstimate(Range(left.low, add(left, right).high))
            case "conditional":
                return self._conditional(node, args, costs)
        if overload_id in _CONCATENATIONS:
            self._join_entries(node, node.args[0], node.args[1])
        estimate = self._estimate(node.function, overload_id, target, args)
        return CallEstimate(add(estimate.cost, *costs), estimate.result_size)

    def _estimate(
        self,
        function: str,
        overload_id: str,
        target: Argument | None,
        args: tuple[Argument, ...],
    ) -> CallEstimate:
        overload = self._environment.overload(function, overload_id)
        declared = None if overload is None else overload.estimate
        estimate = None if declared is None else declared(target, args)
        return CallEstimate(CALL_COST) if estimate is None else estimate

    def _conditional(
        self, node: ast.Call, args: tuple[Argument, ...], costs: list[Range]
    ) -> CallEstimate:
        self._join_entries(node, node.args[1], node.args[2])
        condition, then, otherwise = costs
        size = union(args[1].size, args[2].size)
        return CallEstimate(add(condition, union(then, otherwise)), size)

    def _result_size(
        self, node: ast.Call, overload_id: str, before: Range | None, size: Range | None
    ) -> Range | None:
        """Return the size that the result of this and the overloads before it may have."""
        if before is not None and size is not None:
            size = union(before, size)
        size = size or before
        step = _INDEX_STEPS.get(overload_id)
        if step is not None:
            size = _value_size(self._entry_size(node.args[0]))
            self._paths[node.id] = self._path(node.args[0]).then(step)
        return self._size(node) if size is None else size

    # --- literals of lists, maps and structs ------------------------------------------

    def _list(self, node: ast.CreateList) -> Steps[Range]:
        cost, size = LIST_COST, IMPOSSIBLE if node.elements else NOTHING
        for element in node.elements:
            cost = add(cost, (yield element))
            size = union(size, self._size_or_unknown(element))
        self._entries[node.id] = EntrySize(is_list=True, key=exactly(1), value=size)
        return cost

    def _map(self, node: ast.CreateMap) -> Steps[Range]:
        cost = MAP_COST
        key_size = value_size = IMPOSSIBLE if node.entries else NOTHING
        for entry in node.entries:
            cost = add(cost, (yield entry.key))
            cost = add(cost, (yield entry.value))
            key_size = union(key_size, self._size_or_unknown(entry.key))
            value_size = union(value_size, self._size_or_unknown(entry.value))
        self._entries[node.id] = EntrySize(is_list=False, key=key_size, value=value_size)
        return cost

    def _struct(self, node: ast.CreateStruct) -> Steps[Range]:
        cost = STRUCT_COST
        for entry in node.fields:
            cost = add(cost, (yield entry.value))
        return cost

    # --- loops ------------------------------------------------------------------------

    def _comprehension(self, node: ast.Comprehension) -> Steps[Range]:
        cost = add((yield node.iter_range), (yield node.accu_init))
        self._push(node.accu_var, self._initial(node.accu_init))
        variables = self._loop_variables(node)
        for name, local in variables:
            self._push(name, local)
        turn = add((yield node.loop_condition), (yield node.loop_step))
        for name, _ in variables:
            self._locals[name].pop()
        cost = add(cost, (yield node.result))
        self._locals[node.accu_var].pop()
        turns = self._size_or_unknown(node.iter_range)
        if isinstance(node.accu_init, ast.Literal):
            self._note_size(node, self._size(node.accu_init))
        elif isinstance(node.accu_init, ast.CreateList | ast.CreateMap):
            self._note_size(node, turns)
            self._note_entries(node, self._entry_size(node.loop_step))
        return add(cost, multiply(turns, turn))

    def _bind(self, node: ast.Comprehension) -> Steps[Range]:
        # The value is worked out at most once, when it is first used.
        cost = add((yield node.iter_range), (yield node.accu_init))
        self._push(node.accu_var, self._initial(node.accu_init))
        cost = add(cost, (yield node.result))
        self._locals[node.accu_var].pop()
        self._copy_sizes(node, node.result)
        return cost

    def _initial(self, node: Expr) -> _Local:
        return _Local(self._path(node), self._size(node), self._entry_size(node))

    def _loop_variables(self, node: ast.Comprehension) -> list[tuple[str, _Local]]:
        """Return the variables of a loop: an element, or key or index and value."""
        entries = self._entry_size(node.iter_range)
        is_list = self._type(node.iter_range).kind is TypeKind.LIST
        if entries is not None:
            is_list = entries.is_list
        path = self._path(node.iter_range)
        if node.iter_var2 is None:
            return [(node.iter_var, _element(path, entries, is_list=is_list))]
        key = _Local(path.then("@indices" if is_list else "@keys"), _key_size(entries))
        value = _Local(path.then("@items" if is_list else "@values"), _value_size(entries))
        return [(node.iter_var, key), (node.iter_var2, value)]

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local(self, node: Expr) -> _Local | None:
        stack = self._locals.get(node.name) if isinstance(node, ast.Ident) else None
        return stack[-1] if stack else None

    # --- properties of a node ---------------------------------------------------------

    def _type(self, node: Expr) -> Type:
        # The name in `a.?name` is a literal that nobody checks.
        return self._checked.types.get(node.id, DYN)

    def _path(self, node: Expr) -> Path:
        local = self._local(node)
        return self._paths.get(node.id, Path()) if local is None else local.path

    def _argument(self, node: Expr) -> Argument:
        type_ = self._type(node)
        path = self._path(node).steps
        items_size = None
        if type_.params and path:
            items_size = self._size_hints.size((*path, "@items"), type_.params[0])
        return Argument(node, type_, self._size(node), items_size)

    def _size_or_unknown(self, node: Expr) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: Expr) -> Range | None:
        """Return the size of a node's value: noted, written, hinted, of its type, of its name."""
        size = self._sizes.get(node.id) or written_size(node)
        if size is not None:
            return size
        hinted = self._size_hints.size(self._path(node).steps, self._type(node))
        if hinted is not None:
            self._sizes[node.id] = hinted
            return hinted
        size = type_size(self._type(node))
        local = self._local(node)
        return local.size if size is None and local is not None else size

    def _entry_size(self, node: Expr) -> EntrySize | None:
        entries = self._entries.get(node.id)
        local = self._local(node)
        return local.entries if entries is None and local is not None else entries

    def _note_size(self, node: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[node.id] = size

    def _note_entries(self, node: Expr, entries: EntrySize | None) -> None:
        if entries is not None:
            self._entries[node.id] = entries

    def _copy_sizes(self, node: Expr, source: Expr) -> None:
        self._note_size(node, self._size(source))
        self._note_entries(node, self._entry_size(source))

    def _join_entries(self, node: Expr, first: Expr, second: Expr) -> None:
        joined = union_entries(self._entry_size(first), self._entry_size(second))
        self._note_entries(node, joined)


def _element(path: Path, entries: EntrySize | None, *, is_list: bool) -> _Local:
    if is_list:
        return _Local(path.then("@items"), _value_size(entries))
    return _Local(path.then("@keys"), _key_size(entries))


def _is_bind(node: ast.Comprehension) -> bool:
    """Return whether a loop is what `cel.bind` and `optMap` expand to: it never turns."""
    is_empty = isinstance(node.iter_range, ast.CreateList) and not node.iter_range.elements
    condition = node.loop_condition
    never_turns = isinstance(condition, ast.Literal) and condition.value is False
    return is_empty and never_turns and node.accu_var != _NAMED_ACCUMULATOR


def _key_size(entries: EntrySize | None) -> Range | None:
    return None if entries is None else entries.key


def _value_size(entries: EntrySize | None) -> Range | None:
    return None if entries is None else entries.value
