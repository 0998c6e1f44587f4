"""Run benchmarks: `python -m benchmarks [NAME …]`, all by default.

The first line names the machine and the date: figures in a document belong together with it.

`simulation`, `live` and `offline` take arguments of their own: all that follow them are for them.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import ModuleType

import benchmarks
from benchmarks import live, offline, simulation
from benchmarks._machine import machine_line


def main(names: list[str]) -> int:
    """Run the named benchmarks and return an exit status."""
    for each in (simulation, live, offline):
        if names[:1] == [each.NAME]:
            _begin(names)
            each.main(names[1:])
            return 0
    found = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] != "_")
    wants_help = names[-1:] in (["-h"], ["--help"])
    names = names[:-1] if wants_help else names
    unknown = [name for name in names if name not in found]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(found)}", file=sys.stderr)
        return 2
    if wants_help:
        print("\n".join(_summaries(names or found)))
        return 0
    _begin(names)
    for name in names or found:
        print(f"== {name}", flush=True)
        _module(name).main()
    return 0


def _begin(names: list[str]) -> None:
    if not {"-h", "--help"}.intersection(names):
        print(machine_line(), flush=True)


def _summaries(names: list[str]) -> list[str]:
    """Return the names with the first sentence about each; all text for a single one."""
    texts = {name: (_module(name).__doc__ or "").strip() for name in names}
    if len(texts) == 1:
        return list(texts.values())
    return [f"{name:15} {text.partition(chr(10))[0]}" for name, text in texts.items()]


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
