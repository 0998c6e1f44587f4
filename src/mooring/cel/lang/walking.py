"""Walk through a tree of any depth, with a stack of our own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Generic, TypeVar

from mooring.cel.lang.ast import Expr

Result = TypeVar("Result")
# Yields the nodes below a node one by one, gets their results back, returns the node's own.
Steps = Generator[Expr, Result, Result]


class Walker(ABC, Generic[Result]):
    """Makes a result of every node from the results of those below it."""

    @abstractmethod
    def visit(self, node: Expr) -> Result | Steps[Result]:
        """Return the result of a node, or the steps to it if it needs others first."""

    def walk(self, root: Expr) -> Result:
        """Return the result of a tree."""
        waiting: list[Steps[Result]] = []
        made = self.visit(root)
        while True:
            try:
                if isinstance(made, Generator):
                    waiting.append(made)
                    made = self.visit(next(made))
                elif waiting:
                    made = self.visit(waiting[-1].send(made))
                else:
                    return made
            except StopIteration as finished:
                waiting.pop()
                made = finished.value
