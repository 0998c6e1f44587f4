"""Run one suite over files of recorded cases and say how many answers are equal.

    python -m conformance SUITE FILE [--show N]

FILE is JSON lines, plain or gzip, or a folder of such files; of a folder, the files that fit the
suite are read. A case is one line; a suite may have another form of its own (`cases`). The suite
answers each with one of

    EQUAL              our answer is the recorded one in everything that is compared
    Mismatch(…)        it is not, and this differs
    Apart(reason)      the case is outside what is compared; counted by reason, in no total

The last line printed is `SUITE: P/T equal`. Exit status: 0 all equal, 1 some are not, 2 usage,
3 a file cannot be read.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import pkgutil
import sys
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import conformance

ALL_EQUAL, SOME_DIFFER, USAGE, UNREADABLE = range(4)

SHOWN_MISMATCHES = 10
SHOWN_LENGTH_MAX = 300
PROGRESS_EVERY_LINES = 500
GZIP_MAGIC = b"\x1f\x8b"


# --- the contract of a suite --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One recorded case: its line in the file, and the parsed JSON."""

    id: str
    fields: Mapping[str, Any]
    line: bytes


@dataclass(frozen=True)
class Equal:
    """Our answer is the recorded one."""


@dataclass(frozen=True)
class Mismatch:
    """Our answer is another one; each difference is one readable line."""

    differences: tuple[str, ...]


@dataclass(frozen=True)
class Apart:
    """The case is outside what the suite compares."""

    reason: str


Outcome = Equal | Mismatch | Apart

EQUAL = Equal()


class Suite(ABC):
    """One kind of cases. Each run has its own, so it may keep counts."""

    @abstractmethod
    def fits(self, case: Case) -> bool:
        """Return whether a file whose first case is this one belongs to the suite."""

    @abstractmethod
    def compare(self, case: Case) -> Outcome:
        """Return how our answer compares with the recorded one."""

    def cases(self, target: Path) -> Iterator[Case] | None:  # noqa: ARG002
        """Return the cases of a target that is not in JSON lines; None if it is."""
        return None

    def figures(self) -> Iterable[str]:
        """Return lines to print above the result, when all cases are done."""
        return ()

    def close(self) -> None:  # noqa: B027 - most suites start nothing
        """Stop what the suite started; whoever opened it calls this at the end."""


def compared(expected: object, actual: object) -> Outcome:
    """Return EQUAL or the Mismatch between two values as JSON holds them, key by key."""
    found = tuple(_differences("", expected, actual))
    return Mismatch(found) if found else EQUAL


def _differences(path: str, expected: object, actual: object) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in sorted({*expected, *actual}):
            inner = f"{path}.{key}" if path else key
            yield from _differences(inner, expected.get(key, ABSENT), actual.get(key, ABSENT))
    # To Python True is 1 and 1 is 1.0; to JSON they are not.
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path or 'answer'}: Kubernetes {_shown(expected)}, Moorage {_shown(actual)}"


class _Absent:
    """The placeholder for a key that one side does not have."""


ABSENT = _Absent()


def _shown(value: object) -> str:
    if value is ABSENT:
        return "has none"
    text = json.dumps(value, default=repr)
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…"


# --- the run ------------------------------------------------------------------------------------


class UsageError(Exception):
    """The command names a suite or a file that does not exist."""


class UnreadableError(Exception):
    """A file cannot be read, or is not JSON lines."""


@dataclass
class Tally:
    """The counts of a run so far."""

    equal: int = 0
    total: int = 0
    apart: Counter[str] = field(default_factory=Counter)
    mismatches: list[tuple[str, Mismatch]] = field(default_factory=list)

    def add(self, case: Case, outcome: Outcome, *, show: int) -> None:
        """Count one outcome, and keep it if it is among the first mismatches to show."""
        match outcome:
            case Apart(reason):
                self.apart[reason] += 1
                return
            case Equal():
                self.equal += 1
            case Mismatch():
                if len(self.mismatches) < show:
                    self.mismatches.append((case.id, outcome))
        self.total += 1


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has printed what there is to say
        return int(stop.code or 0)
    try:
        return run(options.suite, options.file, show=options.show)
    except UsageError as problem:
        print(f"conformance: {problem}", file=sys.stderr)
        return USAGE
    except UnreadableError as problem:
        print(f"conformance: {problem}", file=sys.stderr)
        return UNREADABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="conformance", description="Compare Moorage with recorded answers of Kubernetes."
    )
    parser.add_argument("suite", metavar="SUITE", help=f"one of: {', '.join(suite_names())}")
    parser.add_argument("file", metavar="FILE", type=Path, help="JSON lines, .gz, or a folder")
    parser.add_argument(
        "--show",
        metavar="N",
        type=int,
        default=SHOWN_MISMATCHES,
        help="how many mismatches to print (default: %(default)s)",
    )
    return parser


def run(name: str, target: Path, *, show: int = SHOWN_MISMATCHES) -> int:
    """Compare every case of the target, print the report, and return the exit status."""
    with closing(find_suite(name)) as suite:
        return _run(suite, name, target, show)


def _run(suite: Suite, name: str, target: Path, show: int) -> int:
    skipped: list[Path] = []
    cases = suite.cases(target)
    if cases is None:
        files, skipped = choose_files(suite, name, target)
        cases = _read_all(files)
    tally = Tally()
    for case in _with_progress(name, cases):
        tally.add(case, _outcome(suite, case), show=show)
    if not tally.total and not tally.apart:
        raise UnreadableError(f"{target}: holds no cases")
    _print_report(name, suite, tally, skipped)
    return ALL_EQUAL if tally.equal == tally.total else SOME_DIFFER


def _outcome(suite: Suite, case: Case) -> Outcome:
    try:
        return suite.compare(case)
    except Exception as fault:  # a case that breaks us is one more wrong answer, not the end
        return Mismatch((f"raised {type(fault).__name__}: {fault}",))


def _print_report(name: str, suite: Suite, tally: Tally, skipped: list[Path]) -> None:
    for identity, mismatch in tally.mismatches:
        print(identity)
        for difference in mismatch.differences:
            print(f"    {difference}")
    hidden = tally.total - tally.equal - len(tally.mismatches)
    if hidden:
        print(f"… and {hidden} more mismatches (--show N shows more)")
    for path in skipped:
        print(f"skipped {path.name}: no {name} cases")
    for reason, count in sorted(tally.apart.items()):
        print(f"counted apart: {count} × {reason}")
    for figure in suite.figures():
        print(figure)
    print(f"{name}: {tally.equal}/{tally.total} equal")


def _with_progress(name: str, cases: Iterator[Case]) -> Iterator[Case]:
    """Yield the cases, and show the number so far on a terminal."""
    is_watched = sys.stderr.isatty()
    for number, case in enumerate(cases, start=1):
        yield case
        if is_watched and number % PROGRESS_EVERY_LINES == 0:
            print(f"\r{name}: {number} cases", end="", file=sys.stderr, flush=True)
    if is_watched:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# --- finding suites and files -------------------------------------------------------------------


def suite_names() -> list[str]:
    """Return the names of the suites there are, without importing them."""
    modules = (module.name for module in pkgutil.iter_modules(conformance.__path__))
    return sorted(
        name.replace("_", "-") for name in modules if name != "runner" and not name.startswith("_")
    )


def find_suite(name: str) -> Suite:
    """Return a new suite of this name; its module is imported only now."""
    if name not in suite_names():
        raise UsageError(f"no suite {name!r}; there are: {', '.join(suite_names())}")
    module = importlib.import_module(f"conformance.{name.replace('-', '_')}")
    opener = getattr(module, "open_suite", None)
    if opener is None:
        raise UsageError(f"{module.__name__} is not a suite: it has no open_suite()")
    suite: Suite = opener()
    return suite


def choose_files(suite: Suite, name: str, target: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to read, and those of a folder that belong to other suites."""
    if not target.exists():
        raise UsageError(f"{target}: no such file or folder")
    if not target.is_dir():
        return [target], []
    fitting: list[Path] = []
    skipped: list[Path] = []
    for path in sorted([*target.glob("*.jsonl"), *target.glob("*.jsonl.gz")]):
        first = next(read_cases(path), None)
        (fitting if first is not None and suite.fits(first) else skipped).append(path)
    if not fitting:
        raise UsageError(f"{target}: no file with {name} cases")
    return fitting, skipped


# --- reading ------------------------------------------------------------------------------------


def _read_all(files: Iterable[Path]) -> Iterator[Case]:
    for path in files:
        yield from read_cases(path)


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of one file; empty lines are none."""
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _case(line.rstrip(b"\r\n"), f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as fault:
        raise UnreadableError(f"{path}: cannot be read: {fault}") from fault


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    with path.open("rb") as probe:
        is_gzip = probe.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return gzip.open(path, "rb") if is_gzip else path.open("rb")


def _case(line: bytes, place: str) -> Case:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise UnreadableError(f"{place}: not JSON: {fault}") from fault
    if not isinstance(fields, dict):
        raise UnreadableError(f"{place}: not a JSON object")
    return Case(str(fields.get("id", place)), fields, line)
