"""Where the CPU time of a process goes: samples of its main thread, by component.

    python -m benchmarks._cpu_samples FILE MODULE [ARGUMENT …]

runs a module as `python -m` does. A timer of CPU time interrupts the main thread every two
milliseconds, and the innermost frame that belongs to a component counts. SIGUSR1 begins to count
anew, SIGUSR2 writes the counts to the file: so only the part that matters is counted. Functions in
C count where they are called. Other threads are known by their CPU time alone.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

INTERVAL_S = 0.002
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
DEPTH_MAX = 200

# The beginning of a module's path below site-packages, the standard library or src, and the
# component; the first that fits counts. None: the caller counts.
COMPONENTS: tuple[tuple[str, str | None], ...] = (
    ("asyncio/sslproto", "TLS"),
    ("ssl", "TLS"),
    ("asyncio/", "asyncio"),
    ("selectors", "asyncio"),
    ("uvicorn/", "HTTP server (uvicorn)"),
    ("h11/", "HTTP server (uvicorn)"),
    ("moorage/apiserver/auth/", "authentication and authorization"),
    ("moorage/apiserver/admission/", "admission"),
    ("moorage/apiserver/patching/", "managed fields and patches"),
    ("moorage/apiserver/verbs/managed_fields", "managed fields and patches"),
    ("moorage/apiserver/verbs/watch", "watches"),
    ("moorage/apiserver/verbs/list", "lists"),
    ("moorage/store/broadcaster", "watches"),
    ("moorage/apiserver/http/response_encoder", "encoding and decoding"),
    ("moorage/apiserver/", "requests: routing, verbs, registry"),
    ("moorage/validation/", "defaults and validation"),
    ("moorage/store/", "store"),
    ("sqlite3/", "store"),
    ("moorage/api/", "encoding and decoding"),
    ("msgspec/", "encoding and decoding"),
    ("json/", "encoding and decoding"),
    ("moorage/client/indexer", "informers"),
    ("moorage/client/informer", "informers"),
    ("moorage/client/decoder", "encoding and decoding"),
    ("moorage/client/", "client"),
    ("moorage/allocator/", "allocator"),
    ("moorage/cel/", "allocator"),
    ("moorage/scheduler/", "scheduler"),
    ("moorage/controllers/", "controllers"),
    ("moorage/claims/", None),
    ("moorage/kit/", None),
    ("moorage/cluster/", "other"),
)


class Sampler:
    """Counts where the main thread is."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: dict[str, str | None] = {}  # component by file name
        self._samples: Counter[str] = Counter()
        self._before: dict[str, float] = {}

    def start(self) -> None:
        """Begin to count; in the main thread."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, self._begin)
        signal.signal(signal.SIGUSR2, self._write)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def component(self, file: str) -> str | None:
        """Return the component of a source file; None if its caller counts."""
        if file not in self._found:
            self._found[file] = component_of(file)
        return self._found[file]

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        for _ in range(DEPTH_MAX):
            if frame is None:
                break
            found = self.component(frame.f_code.co_filename)
            if found is not None:
                self._samples[found] += 1
                return
            frame = frame.f_back
        self._samples["other"] += 1

    def _begin(self, *_: Any) -> None:
        self._samples.clear()
        self._before = thread_seconds()

    def _write(self, *_: Any) -> None:
        after = thread_seconds()
        seconds = {name: after[name] - self._before.get(name, 0.0) for name in after}
        text = json.dumps({"samples": dict(self._samples), "threads": seconds})
        part = self._file.with_suffix(".part")
        part.write_text(text)
        part.rename(self._file)


def component_of(file: str) -> str | None:
    """Return the component of a source file; None if its caller counts."""
    path = file.replace("\\", "/")
    for marker in (
        "/src/",
        "/site-packages/",
        f"/python{sys.version_info[0]}.{sys.version_info[1]}/",
    ):
        _, found, rest = path.rpartition(marker)
        if found:
            path = rest
            break
    return next((name for start, name in COMPONENTS if path.startswith(start)), None)


def thread_seconds() -> dict[str, float]:
    """Return the CPU seconds of the threads of this process, by name."""
    names = {each.native_id: each.name for each in threading.enumerate()}
    found: Counter[str] = Counter()
    for folder in Path("/proc/self/task").iterdir():
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        name = names.get(int(folder.name), "other threads")
        found[name] += (int(fields[11]) + int(fields[12])) / TICKS_PER_S  # type: ignore[assignment]
    return dict(found)


def main(arguments: list[str]) -> None:
    """Run a module while it is sampled."""
    file, module, *rest = arguments
    Sampler(Path(file)).start()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
