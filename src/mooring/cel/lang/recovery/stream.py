"""The tokens of a text that is not correct, and what was found wrong with it so far."""

from __future__ import annotations

from typing import Final, NoReturn

from mooring.cel.lang.errors import Issue
from mooring.cel.lang.source import NOWHERE
from mooring.cel.lang.tokens import Garbage, Kind, Token

REPORTS_MAX: Final = 100


class Abandoned(Exception):  # noqa: N818 - the text is at fault
    """The rest of the text is not worth reading."""


class Stream:
    """Tokens to be read one by one; `issues` gathers the errors."""

    def __init__(self, text: str, tokens: list[Token], garbage: list[Garbage]) -> None:
        self._text = text
        self.tokens = tokens
        self._garbage = garbage
        self._garbage_reported = 0
        # The number of the token that is reported next to last: what is no token comes before it.
        self._garbage_before = garbage[0].token_number if garbage else len(tokens)
        self.position = 0
        self.issues: list[Issue] = []

    def token(self, distance: int = 0) -> Token:
        """Return a token ahead, in the end EOF; what is no token is reported when it is passed."""
        number = min(self.position + distance, len(self.tokens) - 1)
        if number >= self._garbage_before:
            self._report_garbage(number)
        return self.tokens[number]

    def skip(self) -> Token:
        """Return the current token and go to the next."""
        token = self.token()
        if token.kind is not Kind.EOF:
            self.position += 1
            self.token()
        return token

    def go_to(self, position: int) -> None:
        """Go on at a token further ahead."""
        self.position = position
        self.token()

    def last(self) -> Token | None:
        """Return the token before the current one, if there is one."""
        return self.tokens[self.position - 1] if self.position else None

    def text_between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, without what is no token."""
        if first.kind is Kind.EOF:
            return first.text
        start, stop = first.offset, last.offset + len(last.text)
        pieces = []
        for garbage in self._garbage:
            if start <= garbage.offset < stop:
                pieces.append(self._text[start : garbage.offset])
                start = garbage.offset + len(garbage.text)
        return "".join((*pieces, self._text[start:stop]))

    def report(self, offset: int, message: str) -> None:
        """Report an error; too many end it all."""
        is_over = len(self.issues) == REPORTS_MAX
        if is_over:
            message = f"More than {REPORTS_MAX} syntax errors"
        self.issues.append(Issue(offset, f"Syntax error: {message}"))
        if is_over:
            raise Abandoned

    def abandon(self, message: str) -> NoReturn:
        """Report an error of the whole text, and end it all."""
        self.issues.append(Issue(NOWHERE, message))
        raise Abandoned

    def _report_garbage(self, number: int) -> None:
        """Report all that is no token before the token with the number."""
        while self._garbage_before <= number:
            garbage = self._garbage[self._garbage_reported]
            self._garbage_reported += 1
            is_last = self._garbage_reported == len(self._garbage)
            self._garbage_before = (
                len(self.tokens) if is_last else self._garbage[self._garbage_reported].token_number
            )
            self.report(garbage.offset, f"token recognition error at: '{garbage.text}'")
