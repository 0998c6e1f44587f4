"""`moor explain --apply-fix`: shows what a fix changes in a running cluster, asks, and makes it."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator
from typing import Any

import click

from moorage.cli.errors import DOES_NOT_FIT, FITS
from moorage.cli.live_fix import (
    HalfReplacedError,
    LiveFix,
    NotPossibleError,
    Step,
    failure_text,
)
from moorage.cli.live_hint import fail_to_reach
from moorage.cli.output import complain, yaml_text
from moorage.cli.terminal import ask, coloured, echo, is_asked, printable, printable_lines
from moorage.client.client_factory import RestConfig, http_client
from moorage.client.errors import ClientError
from moorage.insight.answer.changes.edits import without_server_fields
from moorage.insight.answer.consequences import sibling_notes
from moorage.insight.answer.finding import Fix
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.sources.live_source import Live

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_DONE = {"change": "changed", "create": "created", "replace": "replaced", "delete": "deleted"}


def apply_fix(live: Live, plan: Plan, answered: AnsweredPods, fix: Fix, *, is_sure: bool) -> int:
    """Make a fix in the cluster that was planned, and return an exit status."""
    snapshot = plan.before
    access = live.access
    if isinstance(access, ClientError):
        fail_to_reach(access)
    try:
        steps = asyncio.run(_planned(access, snapshot, answered, fix))
    except NotPossibleError as error:
        complain(f"nothing was changed: {error}")
        return DOES_NOT_FIT
    except ClientError as error:
        fail_to_reach(error)
    echo(printable(f"{answered.title(live.namespace)}: {fix.marked}"))
    for note in sibling_notes(plan, fix, (each.pod for each in answered.pods)):
        echo(printable(f"  {note}"))
    for step in steps:
        _show(step)
    echo("\nThe server has tried all of it (dry run).")
    if not is_sure:
        if not is_asked():
            raise click.UsageError("there is no terminal to ask on: --yes makes the fix unasked")
        if not ask("Apply?"):
            echo("Nothing was changed.")
            return DOES_NOT_FIT
    return asyncio.run(_made(access, snapshot, answered, fix, steps))


async def _planned(
    access: RestConfig, snapshot: Snapshot, answered: AnsweredPods, fix: Fix
) -> list[Step]:
    async with http_client(access, manager="moor") as client:
        return await LiveFix(client, snapshot, answered, fix).steps()


async def _made(
    access: RestConfig,
    snapshot: Snapshot,
    answered: AnsweredPods,
    fix: Fix,
    steps: list[Step],
) -> int:
    """Make all steps, one after the other, until one fails."""
    async with http_client(access, manager="moor") as client:
        fixer = LiveFix(client, snapshot, answered, fix)
        for number, step in enumerate(steps):
            try:
                await fixer.make(step)
            except HalfReplacedError as error:
                complain(f"{step} was deleted, but not created: {error}; create it from this:")
                echo(yaml_text([step.after]))
            except ClientError as error:
                complain(failure_text(step, error))
            else:
                echo(printable(f"{_DONE[step.verb]} {step}"))
                continue
            for each in steps[number + 1 :]:
                echo(printable(f"not {_DONE[each.verb]}: {each}"), err=True)
            return DOES_NOT_FIT
    return FITS


def _show(step: Step) -> None:
    """Print a step: what is done to which object, and how it differs then."""
    note = f" ({step.note})" if step.note else ""
    echo(f"\n{coloured(printable(f'{step.verb} {step}'), 'yellow')}{printable(note)}")
    if step.verb == "delete":
        return
    for line in _difference(step.before, step.after):
        colour = _COLOURS.get(line[:1])
        shown = printable(line)
        echo(coloured(shown, colour, is_bold=False) if colour else shown)


def _difference(before: Any, after: Any) -> Iterator[str]:
    old, new = (_lines(tree) for tree in (before, after))
    return difflib.unified_diff(old, new, "in the cluster", "with the fix", lineterm="")


def _lines(tree: Any) -> list[str]:
    if tree is None:
        return []
    return printable_lines(yaml_text([without_server_fields(tree)])).splitlines()
