"""Results of a benchmark as data, from which the documents make their plots.

`dev.py bench simulation --record docs/data/simulation.json` writes one; `dev.py docs` draws it.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks._machine import machine_line


class Row(NamedTuple):
    """One group of bars: a value for each series, None where there is none."""

    name: str
    values: tuple[float | None, ...]


class Record(NamedTuple):
    """What a benchmark measured."""

    title: str
    unit: str
    series: tuple[str, ...]
    rows: list[Row]
    note: str = ""
    is_logarithmic: bool = False

    def write(self, path: Path) -> None:
        """Write the record, with the machine, the date and the command."""
        content = {
            "title": self.title,
            "command": f"python3 dev.py bench {shlex.join(sys.argv[1:])}",
            "machine": machine_line(),
            "note": self.note,
            "unit": self.unit,
            "logarithmic": self.is_logarithmic,
            "series": self.series,
            "rows": [{"name": row.name, "values": row.values} for row in self.rows],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
