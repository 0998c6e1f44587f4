"""Run a campaign: `python -m soak NAME`, or list them: `python -m soak`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import sys
from types import ModuleType

import soak
from soak import Outcome, Plan

SECONDS = 60.0


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status: 0 no failure, 1 failures, 2 usage."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has printed what there is to say
        return int(stop.code or 0)
    if options.name is None:
        print("\n".join(_listing()))
        return 0
    if options.name not in campaigns():
        print(
            f"soak: no campaign {options.name!r}; there are: {', '.join(campaigns())}",
            file=sys.stderr,
        )
        return 2
    campaign = _module(options.name)
    outcome: Outcome = campaign.run(_plan(options, getattr(campaign, "CASES", None)))
    _print(options.name, outcome)
    return 1 if outcome.faults else 0


def campaigns() -> list[str]:
    """Return the names of the campaigns there are."""
    modules = (module.name for module in pkgutil.iter_modules(soak.__path__))
    return sorted(name.replace("_", "-") for name in modules if name[0] != "_")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"soak.{name.replace('-', '_')}")


def _listing() -> list[str]:
    width = max(map(len, campaigns()))
    documented = ((name, _module(name).__doc__) for name in campaigns())
    return [f"{name:{width}}  {(text or '').splitlines()[0]}" for name, text in documented]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description="Run a long campaign.")
    parser.add_argument("name", metavar="NAME", nargs="?", help="without it: list the campaigns")
    parser.add_argument(
        "--seconds", type=float, help=f"how long ({SECONDS:g}, unless a number of cases is set)"
    )
    parser.add_argument("--cases", type=int, help="how many cases at most")
    parser.add_argument("--seed", type=int, help="which cases (default: a random seed)")
    parser.add_argument("--case", type=int, metavar="N", help="run only case N of the seed")
    return parser


def _plan(options: argparse.Namespace, cases: int | None) -> Plan:
    """Return what to run; `cases` is how many make the whole campaign, if it has an end."""
    # Which cases are run is no secret.
    seed = random.randrange(2**32) if options.seed is None else options.seed  # noqa: S311
    if options.case is not None:
        return Plan(seed, cases=1, first=options.case)
    if options.seconds is None and options.cases is None:
        return Plan(seed, seconds=SECONDS if cases is None else None, cases=cases)
    return Plan(seed, seconds=options.seconds, cases=options.cases)


def _print(name: str, outcome: Outcome) -> None:
    for fault in outcome.faults:
        print(fault, end="\n\n")
    print(f"== {name}")
    width = max(map(len, outcome.figures))
    for figure, value in outcome.figures.items():
        print(f"{figure:{width}}  {value}")
    print(f"{'faults':{width}}  {len(outcome.faults)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
