"""`moor schema`: JSON Schemas of all kinds, for editors."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from moorage.api.kinds import Kind
from moorage.apiserver.openapi.json_schemas import (
    ALL,
    json_schema,
    schema_kinds,
    schema_name,
    schema_of_all,
)
from moorage.cli import CONTEXT
from moorage.cli.errors import fail, os_error_text
from moorage.cli.output import aligned, print_tree
from moorage.cli.terminal import echo
from moorage.insight.messages import counted, listed, similar_hint
from moorage.insight.object_names import KINDS as SHORT_NAMES


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 printed or written, 2 usage error or no such kind, 3 a file could not "
    "be written.",
)
@click.argument("kind_name", metavar="[KIND]", required=False)
@click.option(
    "--all",
    "folder",
    metavar="DIR",
    help="Write the schemas of all kinds to this folder, one file for each, and all.json for "
    "objects of any kind.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Reject unknown fields, and allow only what Kubernetes 1.37 supports.",
)
def command(kind_name: str | None, folder: str | None, strict: bool) -> None:
    """Print the JSON Schema of a kind, or write those of all kinds.

    [KIND] is a kind, a plural or a short name, in the version that is stored; append a version and
    group for another: resourceclaims.v1beta1.resource.k8s.io. Without it and without --all, the
    command lists all kinds with the names of their files.

    Editors use the schemas to complete fields, to show what they mean, and to mark mistakes.
    Schemas describe fields and types only: `moor validate` applies all of Kubernetes' rules.

    \b
    moor schema resourceclaim --strict > claim.json
    moor schema --all .schemas --strict
    """
    if folder is not None:
        if kind_name is not None:
            raise click.UsageError("give KIND or --all DIR, not both")
        _write_all(Path(folder), strict=strict)
    elif kind_name is not None:
        print_tree(json_schema(_kind(kind_name, strict=strict), strict=strict))
    else:
        kinds = schema_kinds(strict=strict)
        for line in aligned([(k.name, k.api_version, f"{schema_name(k)}.json") for k in kinds]):
            echo(line)


def _kind(text: str, *, strict: bool) -> Kind:
    """Return the kind with a name that kubectl would accept, or raise UsageError."""
    word, _, api = text.partition(".")
    word = SHORT_NAMES.get(word.lower(), word)
    version, _, group = api.partition(".")
    named = [kind for kind in schema_kinds(strict=strict) if word.lower() in _words(kind)]
    found = [k for k in named if (k.version, k.group) == (version, group)] if api else named
    if not found and api:  # deployments.apps: a group without a version
        found = [kind for kind in named if kind.group == api]
    if found:
        return next((k for k in found if k.api_version == k.hub_version), found[0])
    if named:
        known = listed(
            [f"{text.partition('.')[0]}.{k.version}.{k.group}".rstrip(".") for k in named]
        )
        raise click.UsageError(f"there is no schema of {text}; there is {known}")
    words = {each for kind in schema_kinds(strict=strict) for each in _words(kind)}
    raise click.UsageError(f"there is no schema of {text}{similar_hint(word.lower(), words)}")


def _words(kind: Kind) -> tuple[str, ...]:
    return (kind.name.lower(), kind.plural, *kind.short_names)


def _write_all(folder: Path, *, strict: bool) -> None:
    kinds = schema_kinds(strict=strict)
    trees = {schema_name(kind): json_schema(kind, strict=strict) for kind in kinds}
    trees[ALL] = schema_of_all(kinds, strict=strict)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, tree in trees.items():
            text = msgspec.json.format(msgspec.json.encode(tree), indent=1)
            (folder / f"{name}.json").write_bytes(text + b"\n")
    except OSError as error:
        fail(os_error_text(error))
    echo(f"{counted(len(trees), 'schema')} written to {folder}")
