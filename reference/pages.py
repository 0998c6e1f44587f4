"""Write the reference pages that are made from the code: `python -m reference`.

    page              made from
    cel-functions.md  the libraries of moorage.cel
    cli.md            the commands and options of `moor`
    explain-json.md   the types of `moor explain -o json`, with explain.schema.json
    feature-gates.md  the gates of moorage.api.gates
    kinds.md          the catalogue of kinds, the strategies of validation, and every built-in kind
    library.md        the names of moorage, and of the packages that are frozen with it
    limits.md         the limits of moorage.api.documents and of validation
    metrics.md        the metrics of the programs, as they define them
    profiles.md       the hardware profiles of moorage.hardware

and the pictures beside them, in docs/pictures:

    plan.svg          what `moor plan --picture` draws for the example
    terminal.svg      commands in a terminal, typed and run
    topology.svg      claims on two machines of a profile
    sweep.svg         the chart of the notebook in docs/tutorial/library.md
    architecture.svg  the packages in their layers, of pyproject.toml and ARCHITECTURE.md
    funnel.svg        what `moor explain` says of a pod of the example
    claim-life.svg    the life of a ResourceClaim
    bench-NAME.svg    what a benchmark recorded in docs/data/NAME.json

and THIRD_PARTY_NOTICES.md, from the folders called `vendor`.

A page depends on nothing else, so the same code gives the same bytes. With `--check` nothing is
written: pages that differ from what would be written are named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click

from moorage.api.catalogue import KINDS
from moorage.api.documents.document import DEFAULT_LIMITS, Limits
from moorage.api.documents.scalars import DIGITS_MAX as NUMBER_LENGTH_MAX
from moorage.api.go_types import ITEMS_MAX
from moorage.api.kinds import Kind
from moorage.api.object_reader import reports_unknown
from moorage.api.quantity import DIGITS_MAX as QUANTITY_DIGITS_MAX
from moorage.cli.main import moor
from moorage.insight.snapshot import bundle
from moorage.insight.snapshot.archive import UNPACKED_BYTES_MAX
from moorage.insight.snapshot.workloads import PODS_MAX
from moorage.sources.inputs import FILE_LIMITS
from moorage.validation.registry import strategy_for
from moorage.validation.strategy import MetadataStrategy, Strategy
from reference.built_in_kinds import built_in_section
from reference.cel_functions import functions_page
from reference.command_tree import meaning_of, names_of, options_of, usage_of, walk
from reference.completion_table import completion_text
from reference.diagrams import architecture, claim_life, funnel, plan_picture
from reference.example_picture import example_picture
from reference.explain_json import explain_page, schema_text
from reference.feature_gates import gates_page
from reference.hardware_profiles import profile_sections
from reference.library_page import library_page
from reference.man_pages import man_pages
from reference.markdown import MADE, page_of, table_of
from reference.metrics import metrics_page
from reference.plots import plots
from reference.recording import recording
from reference.tutorial_picture import sweep_picture
from release.vendored import NOTICES, notices

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
PICTURE_FOLDER = FOLDER.parent / "pictures"
MAN_FOLDER = FOLDER.parent / "man"
SHELL_FOLDER = FOLDER.parents[1] / "src" / "moorage" / "cli" / "shell"
NOTICES_FOLDER = FOLDER.parents[1]


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or say which are stale, and return an exit status."""
    parser = argparse.ArgumentParser(prog="reference", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="only say which pages are stale")
    only_check = parser.parse_args(arguments).check
    if not FOLDER.is_dir():
        print(f"{FOLDER}: no such folder: the pages are part of a checkout", file=sys.stderr)
        return 3
    is_stale = False
    for shown, folder, pages in (
        ("docs/reference", FOLDER, PAGES),
        ("docs/pictures", PICTURE_FOLDER, PICTURES),
        ("docs/man", MAN_FOLDER, man_pages()),
        ("src/moorage/cli/shell", SHELL_FOLDER, SHELL_FILES),
        (".", NOTICES_FOLDER, {NOTICES: notices}),
    ):
        for name in stale_pages(folder, pages):
            is_stale = True
            print(f"{shown}/{name}: {'stale' if only_check else 'written'}")
            if not only_check:
                folder.mkdir(exist_ok=True)
                (folder / name).write_text(pages[name](), encoding="utf-8")
    return 1 if is_stale and only_check else 0


def stale_pages(folder: Path, pages: Mapping[str, Callable[[], str]] | None = None) -> list[str]:
    """Return the names of the pages that are missing or outdated."""
    wanted = PAGES if pages is None else pages
    return [name for name, page in wanted.items() if _content(folder / name) != page()]


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


# --- the command line ---------------------------------------------------------------------


def cli_page() -> str:
    """Return the page of all commands and options."""
    sections = [
        "# The command line",
        MADE,
        "`kubectl-moor` is the same program: with it on the path, `kubectl moor` works.",
        *(part for context in walk(moor, "moor") for part in _command_section(context)),
    ]
    return page_of(sections)


def _command_section(context: click.Context) -> Iterator[str]:
    """Give the section of a command."""
    command = context.command
    yield f"## {context.command_path}"
    yield f"```text\n{usage_of(context)}\n```"
    yield _paragraphs(command.help)
    yield table_of(("option", "meaning"), map(_option_row, options_of(context)))
    if command.epilog:
        yield _paragraphs(command.epilog)


def _option_row(option: click.Option) -> tuple[str, str]:
    names, value = names_of(option)
    shown = ", ".join(f"`{name}`" for name in names)
    return (f"{shown} `{value}`" if value else shown), meaning_of(option, "`{}`")


def _paragraphs(text: str | None) -> str:
    paragraphs = (text or "").replace("\r", "").split("\n\n")
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    """Return a paragraph of a help text; text that click leaves unwrapped becomes a block."""
    if not text.lstrip().startswith("\b"):
        return " ".join(text.split())
    lines = textwrap.dedent(text.replace("\b", "").strip("\n")).strip("\n")
    return f"```text\n{lines}\n```"


# --- kinds --------------------------------------------------------------------------------


_KINDS_INTRODUCTION = """\
The kinds that Moorage reads, by API group.

- *Versions*: Moorage stores objects in the first version. *Extension* marks versions that
  Kubernetes 1.37 does not serve; `--strict` rejects them.
- *Scope*: `file` marks kinds that no server serves; Moorage reads them from files.
- *Checked*: **rules** means that Moorage applies Kubernetes' rules for the kind (see
  [differences](../differences.md) for exceptions), **metadata** that it checks the metadata only,
  and **nothing** that it only reads the objects.
- *Unknown fields* are **reported** as warnings, or as errors with `--strict`, or they are **kept**:
  Moorage declares the fields that it uses and passes on the others."""


def kinds_page() -> str:
    """Return the page of all kinds."""
    sections = [
        "# Kinds",
        MADE,
        _KINDS_INTRODUCTION,
    ]
    groups = list(dict.fromkeys(kind.group for kind in KINDS))
    in_groups = sorted(KINDS, key=lambda kind: groups.index(kind.group))
    for group, kinds in groupby(in_groups, key=attrgetter("group")):
        columns = (
            "kind",
            "versions",
            "scope",
            "plural",
            "short",
            "status",
            "checked",
            "unknown fields",
        )
        sections.append(f"## {group or 'core'}")
        sections.append(table_of(columns, _kind_rows(kinds)))
    sections.append(built_in_section())
    return page_of(sections)


def _kind_rows(kinds: Iterable[Kind]) -> Iterator[tuple[str, ...]]:
    for _, versions in groupby(kinds, key=attrgetter("name")):
        yield _kind_row(list(versions))


def _kind_row(versions: list[Kind]) -> tuple[str, ...]:
    kind = versions[0]
    shown = sorted(versions, key=lambda version: version.api_version != version.hub_version)
    scope = "namespace" if kind.namespaced else "cluster"
    return (
        f"`{kind.name}`",
        ", ".join(f"{v.version}{' (extension)' if v.is_extension else ''}" for v in shown),
        scope if kind.plural or kind.is_asked else "file",
        f"`{kind.plural}`" if kind.plural else "",
        ", ".join(f"`{name}`" for name in kind.short_names),
        "yes" if kind.has_status else "",
        _checked(kind),
        "reported" if reports_unknown(kind.struct, kind.api_version, kind.name) else "kept",
    )


def _checked(kind: Kind) -> str:
    strategy = strategy_for(kind)
    if isinstance(strategy, MetadataStrategy):
        return "metadata"
    return "nothing" if type(strategy).validate is Strategy.validate else "rules"


# --- limits -------------------------------------------------------------------------------

_LIMIT_MEANINGS = {
    "bytes_max": "bytes of one file, archive or standard input, also unpacked",
    "documents_max": "documents in one file, empty ones included",
    "depth_max": "lists and maps inside one another",
    "nodes_max": "values in all documents of a file, aliases counted as written out",
    "aliased_nodes_max": "values of one document that come from YAML aliases",
    "duplicates_max": "duplicate keys that are reported for one document",
    "directives_max": "`%TAG` directives of one YAML document",
}


_LIMITS_INTRODUCTION = """\
Input beyond one of these is refused, with the place and the limit. What is wrong with a file as a
whole ends its reading, and `moor` exits with 3; a quantity is refused with its object. Only
duplicate keys beyond their limit are passed over. The named limits are fields of
`moorage.api.documents.Limits`; the command line has no options for them. Programs that call
`moorage.api.documents.read` read {bytes_max:,} bytes at most unless they say otherwise."""


def limits_page() -> str:
    """Return the page of the limits of reading."""
    rows = [_limit_row(limit.name) for limit in fields(Limits)]
    rows.append(("", f"{NUMBER_LENGTH_MAX:,}", "characters of one number"))
    rows.append(("", f"{QUANTITY_DIGITS_MAX:,}", "digits before the point of one quantity"))
    rows.append(("", f"{ITEMS_MAX:,}", "objects in all lists of one pod, workload or the like"))
    rows.append(("", f"{UNPACKED_BYTES_MAX:,}", "bytes in a snapshot, unpacked"))
    rows.append(("", f"{bundle.BYTES_MAX:,}", "bytes in the manifests of a tar or zip, unpacked"))
    rows.append(("", f"{bundle.FILES_MAX:,}", "manifests in a tar or zip"))
    rows.append(("", f"{bundle.ENTRIES_MAX:,}", "members of a tar or zip"))
    rows.append(("", f"{bundle.STREAM_BYTES_MAX:,}", "bytes of a tar, unpacked"))
    rows.append(("", f"{PODS_MAX:,}", "pods made for the controllers of a cluster"))
    sections = [
        "# Limits of reading",
        MADE,
        _LIMITS_INTRODUCTION.format(bytes_max=DEFAULT_LIMITS.bytes_max),
        table_of(("limit", "at most", "of what"), rows),
    ]
    return page_of(sections)


def _limit_row(name: str) -> tuple[str, str, str]:
    return f"`{name}`", f"{getattr(FILE_LIMITS, name):,}", _LIMIT_MEANINGS[name]


# --- hardware profiles --------------------------------------------------------------------


def profiles_page() -> str:
    """Return the page of hardware profiles."""
    return page_of(["# Hardware profiles", MADE, *profile_sections()])


PAGES: dict[str, Callable[[], str]] = {
    "cel-functions.md": functions_page,
    "cli.md": cli_page,
    "explain-json.md": explain_page,
    "explain.schema.json": schema_text,
    "feature-gates.md": gates_page,
    "kinds.md": kinds_page,
    "library.md": library_page,
    "limits.md": limits_page,
    "metrics.md": metrics_page,
    "profiles.md": profiles_page,
}

PICTURES: dict[str, Callable[[], str]] = {
    "topology.svg": example_picture,
    "plan.svg": plan_picture,
    "terminal.svg": recording,
    "sweep.svg": sweep_picture,
    "architecture.svg": architecture,
    "funnel.svg": funnel,
    "claim-life.svg": claim_life,
    **plots(),
}

SHELL_FILES: dict[str, Callable[[], str]] = {"completion.json": completion_text}
