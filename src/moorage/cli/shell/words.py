"""Parses the words of a command line as click does; the last one is still incomplete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

Node = Mapping[str, Any]  # in the table: a command with its options, arguments and subcommands

LINE_LENGTH_MAX: Final = 100_000  # characters of a command line


class Option(NamedTuple):
    """An option in the table of completions."""

    names: tuple[str, ...]
    help: str
    is_multiple: bool
    values: str | tuple[str, ...] | None  # a source, all values, or None for a flag


class CommandLine(NamedTuple):
    """The parsed words before the last one."""

    path: tuple[str, ...]  # of the command
    node: Node
    options: tuple[Option, ...]
    used: frozenset[str]  # all names of the options that were given
    values: tuple[tuple[str, str], ...]  # long name of an option, and its value
    arguments: tuple[str, ...]
    pending: Option | None = None  # the option that the last word is the value of
    has_ended: bool = False  # after --, no options follow
    is_unknown: bool = False  # the command does not exist

    def values_of(self, *names: str) -> list[str]:
        """Return the values that were given for options, by their long names."""
        return [value for name, value in self.values if name in names]


def options_of(node: Node) -> tuple[Option, ...]:
    """Return the options of a command."""
    return tuple(
        Option(
            tuple(each["names"]),
            each["help"],
            each.get("multiple", False),
            tuple(values) if isinstance(values := each.get("values"), list) else values,
        )
        for each in node["options"]
    )


def read_words(words: Sequence[str], node: Node) -> CommandLine:
    """Read the words before the last one."""
    return _Reader(node).read(words)


class _Reader:
    def __init__(self, node: Node) -> None:
        self._node, self._path = node, [""][:0]
        self._options = options_of(node)
        self._used: set[str] = set()
        self._values: list[tuple[str, str]] = []
        self._arguments: list[str] = []
        self._pending: Option | None = None
        self._has_ended = self._is_unknown = False

    def read(self, words: Sequence[str]) -> CommandLine:
        for word in words:
            if self._pending is not None:
                self._take(self._pending, word)
            elif self._has_ended or not word.startswith("-") or word == "-":
                self._argument(word)
            elif word == "--":
                self._has_ended = True
            elif word.startswith("--"):
                self._long(word)
            else:
                self._short(word)
        return CommandLine(
            tuple(self._path),
            self._node,
            self._options,
            frozenset(self._used),
            tuple(self._values),
            tuple(self._arguments),
            self._pending,
            self._has_ended,
            self._is_unknown,
        )

    def _find(self, name: str) -> Option | None:
        return next((each for each in self._options if name in each.names), None)

    def _take(self, option: Option, value: str) -> None:
        self._pending = None
        self._values.append((option.names[-1], value))

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        option = self._find(name)
        if option is None:
            return
        self._used.update(option.names)
        if equals:
            self._take(option, value)
        elif option.values is not None:
            self._pending = option

    def _short(self, word: str) -> None:
        """Read short options, which may be combined: `-Rf FILE`, `-ojson`."""
        for index, letter in enumerate(word[1:], 2):
            option = self._find(f"-{letter}")
            if option is None:
                return
            self._used.update(option.names)
            if option.values is not None:
                if rest := word[index:]:
                    self._take(option, rest)
                else:
                    self._pending = option
                return

    def _argument(self, word: str) -> None:
        commands = self._node.get("commands")
        if commands is None:
            self._arguments.append(word)
        elif word in commands:
            self._path.append(word)
            self._node = commands[word]
            self._options = options_of(self._node)
            self._used.clear()
        else:
            self._is_unknown = True
