"""`moor examples`: lists the examples of the documentation, or copies some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import moorage
from moorage.cli import CONTEXT
from moorage.cli.errors import fail, os_error_text
from moorage.cli.output import aligned, output_option, print_answer
from moorage.cli.terminal import echo
from moorage.insight.messages import counted

# by folder: what the example shows
EXAMPLES = {
    "training": "Two notebooks and two training workers, for a machine with eight GPUs.",
    "gpu-node": "A node with four GPUs and two NICs, and claims for them.",
    "busy-node": "A node with a partitioned GPU and a shared NIC, and claims that have some of it.",
    "two-nodes": "Two nodes with pods, and a maintenance that taints devices.",
    "library": "Programs that use Moorage as a library, and a trace for moor simulate.",
    "operators": "Workloads of JobSet, Kubeflow, Ray, Volcano, Kueue and other operators.",
    "driver-daemonset": "A DRA driver that runs as a DaemonSet.",
    "stories": "The user stories of the KEPs, each with its cluster.",
    "seeds": "The manifests of the KEPs, as they were written there.",
}


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 2 usage error, 3 a file could not be written.",
)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Choice(list(EXAMPLES)))
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default="examples",
    show_default=True,
    help="Directory to copy to; each example is a directory below it.",
)
@output_option(names="the examples")
def command(names: tuple[str, ...], folder: Path, output: str) -> None:
    """List the examples of the documentation, or copy some.

    The documentation runs its commands on examples/NAME. Without [NAME]..., lists the examples;
    with names, copies them to examples/NAME below the current directory, where those commands
    find them. A file that is there already with other content is an error.

    \b
    moor examples
    moor examples training gpu-node
    moor plan -f examples/training --profile dgx-h100
    """
    if not names:
        _list(output)
        return
    try:
        copied = [(name, folder / name, _copy(name, folder / name)) for name in names]
    except OSError as error:
        fail(os_error_text(error))
    rows = [{"name": name, "folder": str(path), "files": number} for name, path, number in copied]
    print_answer(
        output,
        table=lambda _: _print_copied(copied),
        document=lambda: {"copied": rows},
        rows=lambda: rows,
        names=lambda: (f"example/{name}" for name, *_ in copied),
    )


def _list(output: str) -> None:
    rows = [{"name": name, "summary": summary} for name, summary in EXAMPLES.items()]
    print_answer(
        output,
        table=lambda _: _print_lines(aligned([("EXAMPLE", "WHAT IT SHOWS"), *EXAMPLES.items()])),
        document=lambda: {"examples": rows},
        rows=lambda: rows,
        names=lambda: (f"example/{name}" for name in EXAMPLES),
    )


def _print_copied(copied: Iterable[tuple[str, Path, int]]) -> None:
    _print_lines(f"{path}: {counted(number, 'file')}" for _, path, number in copied)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        echo(line)


def source() -> Path:
    """Return the folder of the examples, in the wheel or in the checkout."""
    package = Path(moorage.__file__).parent
    packed = package / "examples"
    return packed if packed.is_dir() else package.parents[1] / "examples"


def _copy(name: str, target: Path) -> int:
    """Copy an example and return the number of its files.

    Nothing is copied if one of them exists with other content.
    """
    files = dict(_files(source() / name))
    if not files:
        fail(f"{source() / name}: the example is not part of this installation")
    changed = [path for path, content in files.items() if _differs(target / path, content)]
    if changed:
        raise click.UsageError(f"{target / changed[0]} is there with other content")
    for path, content in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if not (target / path).exists():
            (target / path).write_bytes(content)
    return len(files)


def _files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder), path.read_bytes()


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() != content
