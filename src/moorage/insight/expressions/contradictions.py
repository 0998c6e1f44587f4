"""Terms that no device can fulfil together, whatever it has.

model == "a" && model == "b"    ─► model in ["a", "b"]
memory > 80Gi && memory < 40Gi  ─► the bounds the other way round
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from moorage.cel.lang import ast
from moorage.insight.expressions.comparisons import ORDER, Comparison, comparison_of
from moorage.insight.expressions.explanation import Parts
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.syntax import readings, shown, terms
from moorage.insight.expressions.values import literal, quantity_of, version_of
from moorage.insight.messages import fitting

_WORDS = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most"}


def contradictions(parts: Parts) -> Iterator[Mistake]:
    """Yield what two terms of an expression ask for at once, though nothing can have both."""
    root = parts.root
    if not isinstance(root, ast.Call) or root.function != "_&&_":
        return
    nodes = list(terms(root))
    compared = [found for node in nodes if (found := comparison_of(node, parts.macro_calls))]
    for one, other in combinations(compared, 2):
        if parts.text(one.subject) != parts.text(other.subject):
            continue
        if one.relation == other.relation == "==" and one.literal.value != other.literal.value:
            yield _two_values(parts, nodes, one, other)
        elif ORDER.get(one.relation, 0) * ORDER.get(other.relation, 0) < 0:
            low, high = (one, other) if ORDER[one.relation] > 0 else (other, one)
            if _exclude(low, high):
                yield _crossed(parts, low, high)


def _two_values(
    parts: Parts, nodes: Sequence[ast.Expr], one: Comparison, other: Comparison
) -> Mistake:
    name = _label(one)
    values = [_asked(each) for each in (one, other)]
    subject = parts.text(one.subject)
    either = f"{subject} in [{', '.join(map(literal, values))}]"
    rest = [parts.text(node, tight=True) for node in nodes if node is not other.node]
    place = [node for node in nodes if node is not other.node].index(one.node)
    rest[place] = either
    option = Option(RepairKind.JOINED, f"ask for either: {either}", {}, " && ".join(rest))
    texts = " and ".join(map(shown, values))
    cause = f"{name} cannot be {texts} at once: && asks for both, || or `in` for either"
    short = f"{name} cannot have two values at once"
    return Mistake(MistakeKind.TOGETHER, fitting(cause, short), (option,), subject)


def _crossed(parts: Parts, low: Comparison, high: Comparison) -> Mistake:
    name = _label(low)
    bounds = [f"{_WORDS[each.relation]} {each.literal.value}" for each in (low, high)]
    low_text, high_text = shown(low.literal.value), shown(high.literal.value)
    option = Option(
        RepairKind.JOINED,
        f"exchange the bounds of {name}: {_WORDS[low.relation]} {high.literal.value} and "
        f"{_WORDS[high.relation]} {low.literal.value}",
        {low.literal.id: high_text, high.literal.id: low_text},
    )
    cause = f"{name} cannot be {bounds[0]} and {bounds[1]} at once"
    return Mistake(MistakeKind.TOGETHER, cause, (option,), parts.text(low.subject))


def _exclude(low: Comparison, high: Comparison) -> bool:
    """Whether nothing lies between a lower and an upper bound."""
    least, most = _asked(low), _asked(high)
    if least is None or most is None or type(least) is not type(most):
        return False
    is_open = "=" not in low.relation or "=" not in high.relation
    return bool(least > most or (least == most and is_open))


def _asked(compared: Comparison) -> Any:
    value = compared.literal.value
    if compared.wraps and isinstance(value, str):
        return version_of(value) if compared.wraps == "semver" else quantity_of(value)
    return value


def _label(compared: Comparison) -> str:
    return next((each.read.name or each.read.field for each in readings(compared.subject)), "it")
