"""The machine of a benchmark in one line, which belongs beside every figure in a document."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from moorage.kit.extras import is_compiled


def machine_line() -> str:
    """Return date, cores, processor, Python, system and load."""
    date = datetime.now(UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    python += " with compiled modules" if is_compiled() else ""
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    load = os.getloadavg()[0]
    return f"{date}, {cores} cores of {_processor()}, {python}, {system}, load {load:.1f}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
