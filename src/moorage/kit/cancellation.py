"""Whose cancellation a CancelledError is."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Return whether somebody cancelled this task; gRPC raises the same when a channel closes."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
