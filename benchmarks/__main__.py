"""Run benchmarks: `python -m benchmarks [NAME …]`, all by default.

The first line names the machine and the date: figures in a document belong together with it.

`simulation`, `live` and `offline` take arguments of their own: all that follow them are for them.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks import live, offline, simulation
from benchmarks._machine import machine_line


def main(names: list[str]) -> int:
    """Run the named benchmarks and return an exit status."""
    print(machine_line(), flush=True)
    for each in (simulation, live, offline):
        if names[:1] == [each.NAME]:
            each.main(names[1:])
            return 0
    found = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] != "_")
    unknown = [name for name in names if name not in found]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(found)}", file=sys.stderr)
        return 2
    for name in names or found:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
