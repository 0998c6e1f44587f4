"""Mistakes in expressions, and what may have been meant.

# mistake: what is wrong with one part of an expression, in a sentence
# option: one way to write that part instead; nothing is sure until it is tried
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import NamedTuple


class RepairKind(IntEnum):
    """How sure it is that a repair is what the user meant; lower kinds are surer."""

    NAME = 1  # a name or domain that does not exist
    SYNTAX = 2  # the same, as CEL writes it
    TYPE = 3  # the same value, in the type that devices have
    VALUE = 4  # a value that looks alike
    UNIT = 5  # the same number in another unit
    JOINED = 6  # && in place of ||, bounds the wrong way round
    GUARD = 7  # devices without the attribute are passed over
    AMOUNT = 8  # less than was asked for
    OTHER_VALUE = 9  # a value that devices have instead
    DROPPED = 10  # the question is given up


class MistakeKind(Enum):
    """What a mistake is about."""

    DOMAIN = "domain"
    FIELD = "field"
    VALUE = "value"  # a question that is true for none
    ERROR = "error"  # a question that has no value
    GUARD = "guard"  # a field that only some devices have
    SYNTAX = "syntax"  # the expression does not compile
    TOGETHER = "together"  # questions that exclude each other


class Option(NamedTuple):
    """One way to write a part instead."""

    kind: RepairKind
    text: str  # what to do
    instead: Mapping[int, str]  # texts for nodes, by id
    whole: str = ""  # the whole expression, where that is not written from nodes
    cause: str = ""  # the mistake, if this is what was meant


class Mistake(NamedTuple):
    """What is wrong with a part of an expression, and what may have been meant."""

    kind: MistakeKind
    cause: str
    options: tuple[Option, ...] = ()
    part: str = ""  # of the expression
    selector: int = 0  # which of several expressions
    remedy: str = ""  # what to do, if it was tried
    repair: RepairKind = RepairKind.DROPPED  # how sure the remedy is
