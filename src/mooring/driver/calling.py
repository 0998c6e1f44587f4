"""Methods of drivers called, whether they are async or not.

Those that are not run in a thread, and so does the generator that they return: it may wait, too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any


async def ask(method: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a method of a driver returns; a generator is read to its end."""
    if inspect.iscoroutinefunction(method):
        found = await method(*arguments)
    else:
        found = await asyncio.to_thread(_called, method, *arguments)
        if inspect.isawaitable(found):
            found = await found
    return list(found) if isinstance(found, Iterator) else found


def _called(method: Callable[..., Any], *arguments: Any) -> Any:
    found = method(*arguments)
    return list(found) if isinstance(found, Iterator) else found
