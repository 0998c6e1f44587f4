"""A stream that tells when it is over, however it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Self


class Ending:
    """Chunks of another stream. Whoever has it must close it, begun or not."""

    def __init__(self, chunks: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        self._chunks = chunks
        self._ended: Callable[[], None] | None = ended

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Close the stream, and tell that once."""
        try:
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await close()
        finally:
            ended, self._ended = self._ended, None
            if ended is not None:
                ended()
