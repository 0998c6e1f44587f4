"""`moor examples`: lists the examples of the documentation, or copies some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

import moorage
from moorage.cli import CONTEXT
from moorage.cli.errors import fail, os_error_text
from moorage.cli.output import aligned
from moorage.cli.terminal import echo

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
def command(names: tuple[str, ...], folder: Path) -> None:
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
        rows = [("EXAMPLE", "WHAT IT SHOWS"), *EXAMPLES.items()]
        for line in aligned(rows):
            echo(line)
        return
    try:
        for name in names:
            _copy(name, folder / name)
    except OSError as error:
        fail(os_error_text(error))


def source() -> Path:
    """Return the folder of the examples, in the wheel or in the checkout."""
    package = Path(moorage.__file__).parent
    packed = package / "examples"
    return packed if packed.is_dir() else package.parents[1] / "examples"


def _copy(name: str, target: Path) -> None:
    """Copy an example, or nothing if one of its files exists with other content."""
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
    echo(f"{target}: {len(files)} {'file' if len(files) == 1 else 'files'}")


def _files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder), path.read_bytes()


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() != content
