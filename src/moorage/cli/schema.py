"""`moor schema`: JSON Schemas of all kinds, for editors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from moorage.cli.output import FORMATS, aligned, print_answer, print_table
from moorage.cli.terminal import echo
from moorage.insight.messages import counted, listed, similar_hint
from moorage.insight.object_names import KINDS as SHORT_NAMES

DEPTH_MAX = 8  # of lists in maps in lists
Tree = dict[str, Any]


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
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    show_default="json with [KIND], otherwise table",
    help="Output format; name prints what [KIND] may be, table and csv with [KIND] its fields.",
)
def command(kind_name: str | None, folder: str | None, strict: bool, output: str | None) -> None:
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
        if output is not None:
            raise click.UsageError("--all writes files: give it without -o")
        _write_all(Path(folder), strict=strict)
    elif kind_name is not None:
        _print_schema(_kind(kind_name, strict=strict), output or "json", strict=strict)
    else:
        _print_kinds(list(schema_kinds(strict=strict)), output or "table")


def _print_kinds(kinds: list[Kind], output: str) -> None:
    names = ("kind", "api_version", "file", "namespaced", "short_names")
    rows = [
        (k.name, k.api_version, f"{schema_name(k)}.json", k.namespaced, ",".join(k.short_names))
        for k in kinds
    ]
    print_answer(
        output,
        table=lambda is_wide: _print_lines(
            [[str(cell) for cell in row[: 5 if is_wide else 3]] for row in rows]
        ),
        document=lambda: {"kinds": [dict(zip(names, row, strict=True)) for row in rows]},
        rows=lambda: (dict(zip(names, row, strict=True)) for row in rows),
        names=lambda: map(_argument, kinds),
        columns=names,
    )


def _print_lines(rows: list[list[str]]) -> None:
    for line in aligned(rows):
        echo(line)


def _argument(kind: Kind) -> str:
    """Return the name of a kind as `kubectl api-resources` prints it, with its version."""
    return f"{kind.plural}.{kind.version}.{kind.group}".rstrip(".")


# --- the fields of a kind -------------------------------------------------------------------------


def _print_schema(kind: Kind, output: str, *, strict: bool) -> None:
    schema = json_schema(kind, strict=strict)
    names = ("field", "type", "required", "description")
    rows = [dict(zip(names, row, strict=True)) for row in _fields(schema, schema, "", ())]
    print_answer(
        output,
        table=lambda is_wide: print_table(
            [name.upper() for name in names],
            ([str(cell) for cell in row.values()] for row in rows),
            is_wide=is_wide,
        ),
        document=lambda: schema,
        rows=lambda: rows,
        names=lambda: [_argument(kind)],
        columns=names,
    )


def _fields(
    tree: Tree, schema: Tree, place: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str, bool, str]]:
    """Yield the fields of an object as `kubectl explain --recursive` does; types do not repeat."""
    for name, field in tree.get("properties", {}).items():
        path = f"{place}.{name}" if place else name
        required = name in tree.get("required", ())
        below, mark = _below(field)
        target = below.get("$ref", "").rpartition("/")[2]
        inner = schema.get("definitions", {}).get(target, below)
        yield path, f"{mark}{_type(inner)}", required, field.get("description", "")
        if target not in above:
            yield from _fields(inner, schema, path, (*above, target) if target else above)


def _below(field: Tree) -> tuple[Tree, str]:
    """Return the schema of a field's elements, and how they are held: `[]` or `map of `."""
    mark = ""
    for _ in range(DEPTH_MAX):
        if len(field.get("allOf", ())) == 1:
            field = field["allOf"][0]
        elif isinstance(field.get("items"), dict):
            field, mark = field["items"], f"{mark}[]"
        elif isinstance(field.get("additionalProperties"), dict):
            field, mark = field["additionalProperties"], f"{mark}map of "
        else:
            break
    return field, mark


def _type(field: Tree) -> str:
    types = field.get("type", "any")
    names = [types] if isinstance(types, str) else [each for each in types if each != "null"]
    return str(field.get("title", "")) or " or ".join(names)


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
