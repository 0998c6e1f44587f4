"""`moor driver check`: a driver in any language, tried through its real sockets."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from moorage.cli import CONTEXT
from moorage.cli.command_classes import Duration, option_with_default
from moorage.cli.errors import DOES_NOT_FIT, FITS, fail, needs_extra, needs_system
from moorage.cli.output import output_option, print_answer, print_table
from moorage.cli.terminal import coloured, echo
from moorage.client.errors import ClientError
from moorage.kit.extras import MissingExtraError
from moorage.kit.system import System
from moorage.testing.check import REPUBLISH_S, START_S, Outcome, Report, Result

_COLOURS = {
    Result.PASSED: "green",
    Result.FAILED: "red",
    Result.ADVISED: "yellow",
    Result.SKIPPED: "cyan",
}


@click.command(
    "check",
    context_settings={**CONTEXT, "ignore_unknown_options": True},
    epilog="Exit status: 0 no check failed, 1 a check failed, 2 usage error, 3 the driver "
    "could not be tested.",
)
@click.option("--only", metavar="CHECK,…", default="", help="Run only these checks.")
@click.option(
    "--driver",
    metavar="NAME",
    default="",
    help="Driver to check when COMMAND runs several. By default, the first that registers.",
)
@click.option("--list", "lists", is_flag=True, help="List the checks and exit.")
@option_with_default(
    "--timeout",
    "start_s",
    type=Duration(1, 3600),
    default=f"{START_S:g}s",
    help="How long the driver may take to register and to publish its devices.",
)
@option_with_default(
    "--republish-timeout",
    "republish_s",
    type=Duration(1, 3600),
    default=f"{REPUBLISH_S:g}s",
    help="How long the driver may take to publish deleted slices again.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="With SOCKET: kubeconfig of the cluster that the driver publishes to.",
)
@click.option(
    "--node-name", metavar="NAME", default="", help="With SOCKET: node that the driver runs on."
)
@option_with_default(
    "--cdi-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("/var/run/cdi"),
    help="With SOCKET: directory of the CDI specs that the driver writes.",
)
@output_option("text", default="text", names="the checks")
@click.option("--log", is_flag=True, help="Print the end of the driver's log.")
@click.argument("subject", nargs=-1, type=click.UNPROCESSED, metavar="SOCKET|COMMAND…")
@needs_system(System.LINUX)
@needs_extra("server")
def command(only: str, lists: bool, output: str, subject: tuple[str, ...], **given: Any) -> None:
    """Check a DRA driver as a kubelet uses it.

    SOCKET|COMMAND… is what to check. COMMAND is started with an API server of its own, killed and
    restarted during the checks; everything is removed afterwards. These placeholders in COMMAND
    are replaced: {kubeconfig}, {node}, {registry} (the registration directory), {plugins} (the
    directory of its sockets), {root} (the parent of both) and {cdi}. Drivers that use Moorage's
    SDK need no placeholders: they read KUBECONFIG, NODE_NAME, KUBELET_DIR and CDI_ROOT from the
    environment. Other drivers also find KUBELET_REGISTRAR_DIRECTORY_PATH and
    KUBELET_PLUGINS_DIRECTORY_PATH there.

    SOCKET is the registration socket of a running driver, which is checked where it runs; checks
    that restart it are skipped.

    Each check passes, fails or is skipped, with the reason. Advice reports what kubelets do not
    require but users benefit from; it is not a failure. Standard error shows what a check is
    waiting for, and for how long.

    \b
    moor driver check -- python3 driver.py
    moor driver check -- ./my-driver --kubeconfig={kubeconfig} --node-name={node} \\
        --registrar-dir={registry} --plugin-dir={plugins} --cdi-dir={cdi}
    moor driver check /var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock \\
        --kubeconfig ~/.kube/config --node-name worker-1
    """
    from moorage.testing.check.bench import BenchError
    from moorage.testing.check.checks import CHECKS

    if lists:
        _list(output)
        return
    chosen = frozenset(filter(None, only.split(",")))
    if unknown := chosen - set(CHECKS):
        raise click.UsageError(f"--only: no check {min(unknown)!r}; there are {', '.join(CHECKS)}")
    if not subject:
        raise click.UsageError("nothing to check: give a SOCKET or a COMMAND")
    print_outcome = _print_outcome if output == "text" else lambda _: None
    try:
        report = asyncio.run(_check(subject, chosen, print_outcome, given))
    except (BenchError, ClientError) as error:
        fail(str(error))
    if output == "text":
        echo(_summary(report))
    else:
        _print_data(output, {"driver": report.driver, "good": report.is_good}, _trees(report))
    sys.exit(FITS if report.is_good else DOES_NOT_FIT)


async def _check(
    subject: tuple[str, ...],
    only: frozenset[str],
    print_outcome: Callable[[Outcome], None],
    given: dict[str, Any],
) -> Report:
    from moorage.testing.check.bench import BenchError, attached, bench
    from moorage.testing.check.suite import check_process, check_socket, run_checks

    limits = {name: given[name] for name in ("start_s", "republish_s")}
    run = partial(run_checks, only=only, tell=print_outcome, progress=_progress)
    if len(subject) == 1 and Path(subject[0]).is_socket():
        if not (given["kubeconfig"] and given["node_name"]):
            raise click.UsageError("a SOCKET needs --kubeconfig and --node-name as well")
        async with attached(given["kubeconfig"], given["node_name"], given["cdi_dir"]) as place:
            return await run(check_socket(place, Path(subject[0]), **limits))
    if shutil.which(subject[0]) is None:
        raise BenchError(f"{subject[0]}: neither a socket nor a program that can be run")
    async with bench() as place:
        trial = check_process(place, subject, name=given["driver"], **limits)
        report = await run(trial)
        if given["log"] and trial.process is not None:
            echo(f"\nThe driver's last words:\n{trial.process.last_words(40)}", err=True)
        return report


def _list(output: str) -> None:
    from moorage.testing.check.checks import CHECKS, promise_of

    if output != "text":
        checks = [{"check": name, "promise": promise_of(check)} for name, check in CHECKS.items()]
        _print_data(output, {}, checks)
        return
    for name, check in CHECKS.items():
        echo(f"{name:{_width()}}  {promise_of(check)}")


def _print_data(output: str, about: dict[str, object], checks: list[dict[str, str]]) -> None:
    print_answer(
        output,
        table=lambda is_wide: _print_table(checks, is_wide=is_wide),
        document=lambda: {**about, "checks": checks},
        rows=lambda: checks,
        names=lambda: (f"check/{each['check']}" for each in checks),
        columns=("check", "promise", "result", "why") if about else ("check", "promise"),
    )


def _print_table(checks: list[dict[str, str]], *, is_wide: bool) -> None:
    names = ("check", "promise") if "result" not in checks[0] else ("check", "result", "why")
    columns = (*names, "promise") if is_wide and "promise" not in names else names
    rows = ([" ".join(each.get(name, "").split()) for name in columns] for each in checks)
    print_table([name.upper() for name in columns], rows, is_wide=is_wide)


def _print_outcome(outcome: Outcome) -> None:
    mark = coloured(f"{outcome.result.value:6}", _COLOURS[outcome.result], is_bold=False)
    width = _width()
    echo(f"{mark}  {outcome.check:{width}}  {outcome.promise}")
    for line in outcome.why.splitlines():
        echo(f"{'':8}{'':{width}}  → {line}")


def _width() -> int:
    """Return how wide the names of all checks are."""
    from moorage.testing.check.checks import CHECKS

    return max(map(len, CHECKS))


def _progress(check: str, text: str) -> None:
    echo(f"{'…':6}  {check:{_width()}}  {text}", err=True)


def _summary(report: Report) -> str:
    counts = (f"{report.count(each)} {each.value}" for each in Result if report.count(each))
    return f"\n{report.driver or 'the driver'}: {', '.join(counts)}"


def _trees(report: Report) -> list[dict[str, str]]:
    return [
        {
            "check": each.check,
            "promise": each.promise,
            "result": each.result.value,
            **({"why": each.why} if each.why else {}),
        }
        for each in report.outcomes
    ]


def _checks_help() -> str:
    """Return the description of each check, as paragraphs that keep their lines."""
    try:
        from moorage.testing.check.checks import CHECKS, details_of, promise_of
    except MissingExtraError:  # which the help says, too
        return ""
    parts = ["The checks, in their order:"]
    for name, check in CHECKS.items():
        text = f"{promise_of(check)} {details_of(check)}".strip()
        lines = fill(text, 74, initial_indent="  ", subsequent_indent="  ")
        parts.append(f"\b\n{name}\n{lines}")
    return "\n\n".join(parts)


command.help = f"{inspect.cleandoc(command.help or '')}\n\n{_checks_help()}".rstrip()
