"""Every backend keeps the contract."""

from __future__ import annotations

import asyncio

import pytest

from tests.store.contract_suite import CASES, Case
from tests.store.harness import Harness

SECONDS_MAX = 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, harness: Harness) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await case(harness)

    asyncio.run(run())
