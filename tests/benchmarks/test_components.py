"""Samples of CPU time: source files belong to components, and counts become times."""

import asyncio
import ssl
from pathlib import Path

import pytest

from benchmarks import _cpu_samples, floor
from benchmarks._cpu_samples import component_of, thread_seconds
from benchmarks._live_profile import component_seconds
from benchmarks._machine import machine_line
from moorage.allocator import search
from moorage.apiserver.patching import managed_fields
from moorage.store.sqlite import writer


@pytest.mark.parametrize(
    ("file", "component"),
    [
        (ssl.__file__, "TLS"),
        (asyncio.__file__, "asyncio"),
        (managed_fields.__file__, "managed fields and patches"),
        (writer.__file__, "store"),
        (search.__file__, "allocator"),
        ("/tmp/other.py", None),
    ],
)
def test_a_source_file_belongs_to_a_component(file: str, component: str | None) -> None:
    assert component_of(file) == component


def test_every_component_is_the_beginning_of_a_path_that_exists() -> None:
    roots = [Path(ssl.__file__).parent]
    roots += [Path(writer.__file__).parents[3]]
    for start, _ in _cpu_samples.COMPONENTS:
        if start.startswith(("uvicorn", "h11", "msgspec")):
            continue
        assert any(list(root.glob(f"{start.rstrip('/')}*")) for root in roots), start


def test_samples_divide_the_time_of_the_main_thread() -> None:
    found = {"samples": {"TLS": 1.0, "store": 3.0}, "threads": {"MainThread": 8.0, "writer": 2.0}}
    assert component_seconds(found) == [("store", 6.0), ("TLS", 2.0), ("thread writer", 2.0)]


def test_threads_are_known_by_name() -> None:
    assert "MainThread" in thread_seconds()


def test_the_floor_counts_every_step_for_both_ways_to_run() -> None:
    line = machine_line()
    assert "CPython" in line
    assert "cores" in line
    assert floor.OWN_WRITES + 1 == floor.WRITES
