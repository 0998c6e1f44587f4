"""Parse text with errors as cel-go's ANTLR parser does: report, recover, continue.

A token that does not fit is handled in this order:

1. it is deleted, if the next token fits                extraneous input
2. the expected token is inserted, if this one fits     missing … at
   behind it
3. the rule is given up: tokens are consumed up to one  mismatched input, no viable alternative
   that can follow any of the active rules, and the
   rule around it continues

After an error nothing is reported until a token matches again. Parsing stops after too many errors
or recoveries, and where expressions are nested too deeply.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from moorage.cel.lang.descent_parser import (
    RULE_DEPTH_MAX,
    CorrectParts,
    ParseResult,
    RuleDepths,
    parse_correct_parts,
)
from moorage.cel.lang.lexer import NAMES, Abandoned, Garbage, Token, TokenKind, TokenStream
from moorage.cel.lang.parse_tree import Tree
from moorage.cel.lang.recovery.atn import (
    CEL_ATN,
    AlternativeSteps,
    ATNState,
    InvokeRule,
    Kinds,
    LeftRecursion,
    MatchToken,
    OptionalBlock,
    PlusLoop,
    RuleSteps,
    StarLoop,
    StateRole,
    Step,
    expected,
)
from moorage.cel.lang.recovery.prediction import (
    NoViableAlternative,
    Predictor,
    Stack,
    by_first,
)

REPAIRS_MAX: Final = 30
SKIPPED_MAX: Final = 256  # tokens, in one repair


def recover(
    text: str, tokens: list[Token], garbage: list[Garbage], *, is_thorough: bool = False
) -> ParseResult:
    """Return the errors of a text, and the expression as far as it could be read.

    A thorough recovery parses correct parts in small steps too; the result is the same.
    """
    stream = TokenStream(text, tokens, garbage)
    try:
        tree = _Machine(stream, is_thorough=is_thorough).run()
    except Abandoned:
        return ParseResult(None, stream.issues, is_abandoned=True)
    return ParseResult(tree, stream.issues)


class _Unfit(Exception):  # noqa: N818 - handled by the rule it happens in
    """A token that does not fit; the message is what to report."""

    def __init__(self, token: Token, message: str) -> None:
        self.token = token
        self.message = message


@dataclass(slots=True)
class _Context:
    """A rule under alt."""

    chart: RuleSteps
    start: Token
    alt: AlternativeSteps | None = None
    parts: dict[str, Any] = field(default_factory=dict)

    def add(self, label: str, value: Any, is_many: bool) -> None:
        """Keep a part that has a label."""
        if is_many:
            self.parts.setdefault(label, []).append(value)
        elif label:
            self.parts[label] = value

    def finish(self) -> Any:
        """Return the syntax node of the tokens read."""
        make = self.alt.make if self.alt else self.chart.rule.make_broken
        return make(self.start, self.parts)


# Yields rules to enter, is sent their results, and returns its own.
Steps = Generator[InvokeRule, Any, Any]


class _Machine:
    """Reads one text."""

    def __init__(self, stream: TokenStream, *, is_thorough: bool) -> None:
        self._stream = stream
        self._is_thorough = is_thorough
        self._predictor = Predictor(lambda distance: stream.token(distance).kind)
        self._depths: Counter[str] = Counter()
        # Of the rule under alt: its state, where it and those around it go on, its precedence.
        self._state = CEL_ATN.charts["start"].choice
        self._stack: Stack = None
        self._precedence = 0
        self._is_recovering = False
        self._repairs = 0
        self._survey = CorrectParts()
        self._surveyed_to = 0
        # Where a rule was given up, and in which states: a second time must skip a token.
        self._given_up_at = -1
        self._given_up_in: set[ATNState] = set()

    # --- rules --------------------------------------------------------------------------------

    def run(self) -> Tree | None:
        """Return the expression as far as it could be read."""
        waiting: list[Steps] = [self._rule(CEL_ATN.charts["start"], 0, None)]
        result: Any = None
        while waiting:
            try:
                step = waiting[-1].send(result)
            except StopIteration as done:
                waiting.pop()
                result = done.value
                continue
            result = self._known(step)
            if result is None:
                stack = self._predictor.frame(step.follow, self._stack)
                chart = CEL_ATN.charts[step.part.rule]
                waiting.append(self._rule(chart, step.part.precedence, stack))
        tree: Tree | None = result
        return tree

    def _known(self, step: InvokeRule) -> Tree | None:
        """Return what a rule reads here and go behind it, if it is correct and well followed.

        This is for speed alone: correct parts need not be parsed in small steps.
        """
        rule, start = step.part.rule, self._stream.position
        if self._is_thorough or step.part.precedence or rule not in ("expr", "relation"):
            return None
        if start >= self._surveyed_to:
            outer = self._depths["expr"] - (rule == "relation")
            depths = RuleDepths(outer, self._depths["relation"], self._depths["calc"])
            end = parse_correct_parts(self._stream.tokens, start, depths, self._survey)
            self._surveyed_to = max(end, start + 1)
        found = self._survey.expressions if rule == "expr" else self._survey.relations
        known = found.get(start)
        if known is None:
            return None
        follower = self._stream.tokens[known.end].kind
        if follower not in expected(step.follow, self._follows()):
            return None
        self._all_fits()
        self._stream.go_to(known.end)
        return known.tree

    def _rule(self, chart: RuleSteps, precedence: int, stack: Stack) -> Steps:
        """Read a rule; what does not fit in it is handled here, and the rule around it goes on."""
        outer = self._stack, self._precedence
        self._stack, self._precedence = stack, precedence
        context = _Context(chart, self._stream.token())
        self._count_depth(chart)
        try:
            yield from self._alts(context)
            if chart.tail:
                yield from self._tail(chart.tail, context)
        except _Unfit as unfit:
            self._report(unfit.token, unfit.message)
            self._give_up()
        self._depths[chart.rule.name] -= 1
        self._stack, self._precedence = outer
        return context.finish()

    def _count_depth(self, chart: RuleSteps) -> None:
        self._depths[chart.rule.name] += 1
        if self._depths[chart.rule.name] > RULE_DEPTH_MAX:
            self._stream.abandon(f"expression recursion limit exceeded: {RULE_DEPTH_MAX}")

    def _alts(self, context: _Context) -> Steps:
        chart = context.chart
        number = 1
        if len(chart.alts) > 1:
            self._sync(chart.choice)
            number = self._choose(chart.choice)
        context.alt = chart.alts[number - 1]
        yield from self._walk(context.alt.steps, context)

    def _tail(self, tail: LeftRecursion, context: _Context) -> Steps:
        self._sync(tail.entry)
        while self._choose(tail.entry) == 1:
            # As in cel-go, a rule counts as left while its next operator is looked at.
            name = context.chart.rule.name
            self._depths[name] = max(self._depths[name] - 1, 0)
            number = 1
            if len(tail.alts) > 1:
                self._sync(tail.choice)
                number = self._choose(tail.choice)
            context.parts = {context.chart.rule.left: context.finish()}
            context.alt = tail.alts[number - 1]
            self._count_depth(context.chart)
            yield from self._walk(context.alt.steps, context)
            self._sync(tail.back)

    def _walk(self, steps: tuple[Step, ...], context: _Context) -> Steps:
        for step in steps:
            match step:
                case MatchToken(state, part):
                    self._state = state
                    context.add(part.label, self._take(part.kinds), part.is_many)
                case InvokeRule(state, part):
                    self._state = state
                    context.add(part.label, (yield step), part.is_many)
                case OptionalBlock(choice, inner):
                    self._sync(choice)
                    if self._choose(choice, default=2) == 1:
                        yield from self._walk(inner, context)
                case StarLoop(entry, back, inner):
                    self._sync(entry)
                    while self._choose(entry, default=2) == 1:
                        yield from self._walk(inner, context)
                        self._sync(back)
                case PlusLoop(block, back, inner):
                    self._sync(block)
                    is_more = True
                    while is_more:
                        yield from self._walk(inner, context)
                        self._sync(back)
                        is_more = self._choose(back, default=2) == 1

    def _choose(self, choice: ATNState, default: int | None = None) -> int:
        """Return the number of the alt to go."""
        alts = by_first(choice)
        if alts is None:
            return self._predict(choice)
        token = self._stream.token()
        return alts.get(token.kind, default) or self._no_viable_alt(token, token)

    def _predict(self, choice: ATNState) -> int:
        try:
            return self._predictor.predict(choice, self._precedence, self._stack)
        except NoViableAlternative as error:
            return self._no_viable_alt(self._stream.token(), self._stream.token(error.distance))

    def _no_viable_alt(self, start: Token, unfit: Token) -> NoReturn:
        read = self._stream.text_between(start, unfit)
        message = f"no viable alternative at input {_quoted(read)}"
        # cel-go has its own message here.
        message = _KEYWORD_AS_FIELD.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        raise _Unfit(unfit, message)

    # --- repairs ------------------------------------------------------------------------------

    def _take(self, kinds: Kinds) -> Token:
        """Return a token of one of the kinds, the current one if it is, and go behind it."""
        if self._stream.token().kind in kinds:
            self._all_fits()
            return self._stream.skip()
        return self._repair(self._expected())

    def _expected(self) -> Kinds:
        """Return what can come next."""
        return expected(self._state, self._follows())

    def _follows(self) -> Iterator[ATNState]:
        """Yield where the rules under alt go on, the innermost first."""
        frame = self._stack
        while frame is not None:
            yield frame.follow
            frame = frame.below

    def _sync(self, state: ATNState) -> None:
        """Make sure, before a choice, that the current token can come next."""
        self._state = state
        if self._is_recovering:
            return
        if state.can_end or self._stream.token().kind in state.next:
            return
        if state.role is StateRole.BACK:
            self._report_unwanted(self._expected())
            self._skip_to(self._expected() | self._resume())
        elif not self._delete(self._expected()):
            self._mismatch()

    def _delete(self, kinds: Kinds) -> bool:
        """Leave out the current token if the one behind it fits."""
        if self._stream.token(1).kind not in kinds:
            return False
        self._report_unwanted(kinds)
        self._stream.skip()
        self._all_fits()
        return True

    def _repair(self, kinds: Kinds) -> Token:
        """Return the token that should be here, from the next place or made up."""
        self._count_repair()
        if self._delete(kinds):
            return self._stream.skip()
        edge = self._state.edges[0]
        if self._stream.token().kind not in expected(edge.target, self._follows()):
            self._mismatch()
        current = self._stream.token()
        self._report(current, f"missing {_names(kinds)} at {_quoted(current.text)}")
        at = (current.kind is TokenKind.EOF and self._stream.last()) or current
        kind = min(kinds)
        return Token(kind, f"<missing {_MADE_UP.get(kind, 'undefined')}>", at.offset)

    def _mismatch(self) -> NoReturn:
        token = self._stream.token()
        raise _Unfit(
            token, f"mismatched input {_quoted(token.text)} expecting {_names(self._expected())}"
        )

    def _give_up(self) -> None:
        """Leave the rule: skip to a token with which a rule around it can go on."""
        self._count_repair()
        skipped_max = SKIPPED_MAX
        if self._given_up_at == self._stream.position and self._state in self._given_up_in:
            # Nothing was skipped the last time here; without this it would go on for ever.
            self._stream.skip()
            skipped_max -= 1
        self._given_up_at = self._stream.position
        self._given_up_in.add(self._state)
        self._skip_to(self._resume(), skipped_max)

    def _resume(self) -> Kinds:
        """Return what can come next in any of the rules around this one."""
        return frozenset().union(*(follow.next for follow in self._follows()))

    def _skip_to(self, kinds: Kinds, skipped_max: int | None = None) -> None:
        skipped = 0
        while (
            self._stream.token().kind not in kinds
            and self._stream.token().kind is not TokenKind.EOF
        ):
            if skipped == skipped_max:
                self._stream.abandon(
                    f"error recovery token lookahead limit exceeded: {SKIPPED_MAX}"
                )
            self._stream.skip()
            skipped += 1

    def _count_repair(self) -> None:
        self._repairs += 1
        if self._repairs > REPAIRS_MAX:
            message = f"error recovery attempt limit exceeded: {REPAIRS_MAX}"
            self._stream.report(self._stream.token().offset, message)
            raise Abandoned

    def _all_fits(self) -> None:
        self._is_recovering = False
        self._given_up_at = -1
        self._given_up_in.clear()

    # --- reports ------------------------------------------------------------------------------

    def _report_unwanted(self, kinds: Kinds) -> None:
        token = self._stream.token()
        self._report(token, f"extraneous input {_quoted(token.text)} expecting {_names(kinds)}")

    def _report(self, token: Token, message: str) -> None:
        """Report an error, unless it may be only a consequence of the last."""
        if not self._is_recovering:
            self._is_recovering = True
            self._stream.report(token.offset, message)


_KEYWORD_AS_FIELD = re.compile(r"no viable alternative at input '.(true|false|null)'")
# The names of kinds that are always written the same.
_MADE_UP: Final = {kind: name for kind, name in NAMES.items() if name.startswith("'")} | {
    TokenKind.EOF: "EOF"
}


def _names(kinds: Kinds) -> str:
    names = [NAMES[kind] for kind in sorted(kinds)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _quoted(text: str) -> str:
    text = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{text}'"
