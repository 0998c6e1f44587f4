"""Write the reference pages that are made from the code: `python -m mooring.cli.reference`.

    page              made from
    cel-functions.md  the libraries of mooring.cel
    cli.md            the commands and options of `moor`
    feature-gates.md  the gates of mooring.api.gates
    kinds.md          the catalogue of kinds and the strategies of validation
    limits.md         the limits of mooring.api.documents and of validation
    profiles.md       the hardware profiles of mooring.hardware

A page depends on nothing else, so the same code gives the same bytes. With `--check` nothing is
written: pages that differ from what would be written are named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click

from mooring.api.catalogue import KINDS
from mooring.api.documents.limits import DEFAULT_LIMITS, Limits
from mooring.api.documents.numbers import DIGITS_MAX as NUMBER_LENGTH_MAX
from mooring.api.gates import CURRENT, HISTORY, NEEDS, Gate, Spec, Stage, spec_of
from mooring.api.kinds import Kind
from mooring.api.quantity import DIGITS_MAX as QUANTITY_DIGITS_MAX
from mooring.api.structs import Open
from mooring.cel.device import DeviceCompiler, Features, Scope
from mooring.cel.lang.declarations import Library, Macro, Overload
from mooring.cli.cluster_sources import ARCHIVE_LIMITS
from mooring.cli.main import moor
from mooring.cli.profilepage import profile_sections
from mooring.insight.archive import UNPACKED_BYTES_MAX
from mooring.insight.workloads import PODS_MAX
from mooring.validation.admission import MetadataOnly, strategy_of
from mooring.validation.strategy import Strategy

FOLDER = Path(__file__).parents[3] / "docs" / "reference"

MADE = "<!-- Made from the code by `python3 dev.py docs`. Do not edit. -->"


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or say which are stale, and return an exit status."""
    parser = argparse.ArgumentParser(prog="reference", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="only say which pages are stale")
    only_check = parser.parse_args(arguments).check
    if not FOLDER.is_dir():
        print(f"{FOLDER}: no such folder: the pages are part of a checkout", file=sys.stderr)
        return 3
    names = stale_pages(FOLDER)
    for name in names:
        print(f"docs/reference/{name}: {'stale' if only_check else 'written'}")
        if not only_check:
            (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
    return 1 if names and only_check else 0


def stale_pages(folder: Path) -> list[str]:
    """Return the names of the pages that are missing or not what the code gives."""
    return [name for name, page in PAGES.items() if _content(folder / name) != page()]


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


# --- the command line ---------------------------------------------------------------------


def cli_page() -> str:
    """Return the page of all commands and options."""
    context = click.Context(moor, info_name="moor", **moor.context_settings)
    sections = [
        "# The command line",
        MADE,
        "`kubectl-moor` is the same program: with it on the path, `kubectl moor` works.",
        *_command_sections(context),
    ]
    return _page(sections)


def _command_sections(context: click.Context) -> Iterator[str]:
    """Give the sections of a command, then those of its subcommands."""
    command = context.command
    yield f"## {context.command_path}"
    yield f"```text\n{_usage(context)}\n```"
    yield _paragraphs(command.help)
    yield _table(("option", "meaning"), map(_option_row, _options(context)))
    if command.epilog:
        yield _paragraphs(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None, name
            settings = subcommand.context_settings
            inner = click.Context(subcommand, info_name=name, parent=context, **settings)
            yield from _command_sections(inner)


def _usage(context: click.Context) -> str:
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *pieces])


def _options(context: click.Context) -> Iterator[click.Option]:
    """Give the options of a command; arguments are named in its usage and told in its text."""
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option):
            yield parameter


def _option_row(option: click.Option) -> tuple[str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = _value_name(option)
    meaning = option.help or ""
    if option.required:
        meaning += " Required."
    if option.show_default and not option.is_flag:
        meaning += f" Default: `{option.default}`."
    return (f"{names} `{value}`" if value else names), meaning


def _value_name(option: click.Option) -> str:
    if option.is_flag or option.is_eager:
        return ""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()


def _paragraphs(text: str | None) -> str:
    paragraphs = (text or "").replace("\r", "").split("\n\n")
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    """Return a paragraph of a help text; what click leaves as it is becomes a block."""
    if not text.lstrip().startswith("\b"):
        return " ".join(text.split())
    lines = textwrap.dedent(text.replace("\b", "").strip("\n")).strip("\n")
    return f"```text\n{lines}\n```"


# --- functions of CEL ---------------------------------------------------------------------

# What a library is for; a test finds libraries without a word.
LIBRARY_PURPOSES: dict[str, str] = {
    "cel.lib.std": "The language itself: operators, conversions, text, time, standard macros.",
    "cel.lib.ext.strings": "Text: parts, positions, case, splitting and joining.",
    "cel.lib.ext.strings.format": "Text from a template, `%s` and its like.",
    "cel.lib.ext.sets": "Lists as sets, whatever their order and repetitions.",
    "cel.lib.ext.lists": "Lists: parts, order, flattening, ranges.",
    "cel.lib.optional": "Values that may be absent.",
    "cel.lib.ext.comprev2": "Macros with two variables: index and element, or key and value.",
    "cel.lib.ext.cel.bindings": "Names for values.",
    "kubernetes.urls": "URLs and their parts.",
    "kubernetes.regex": "What a regular expression finds.",
    "kubernetes.lists": "Lists: sums, extremes, positions, whether they are sorted.",
    "kubernetes.authz": (
        "Permissions. Declared, but no expression about devices has an `Authorizer` to begin with."
    ),
    "kubernetes.quantity": "Quantities, such as the capacities of devices.",
    "kubernetes.net.ip": "IP addresses.",
    "kubernetes.net.cidr": "Networks: ranges of IP addresses.",
    "kubernetes.format": "Named formats, such as that of a label, and whether text has them.",
    "kubernetes.authzSelectors": "Permissions for what selectors select; declared only, as above.",
    "kubernetes.Semver": "Semantic versions, such as those in attributes.",
    "kubernetes.lists.includes": "Membership for attributes that may be lists or single values.",
    "mooring.include": "Another name for `includes`, which KEPs use.",
}

_FUNCTIONS_INTRODUCTION = """\
Every function and macro that expressions about devices may use, by library.
[The language](cel.md) tells what they mean, with examples.

- A call is written with the types of its arguments. `A`, `K`, `V` and the like stand for any type.
- *Overload* is the name that Kubernetes has for the signature.
- Unless a library says otherwise, new and stored expressions have it under all feature gates."""

_OPERATORS = {"_?_:_": "{} ? {} : {}", "_[_]": "{}[{}]", "_[?_]": "{}[?{}]", "_?._": "{}.?{}"}
_INFIX = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||")
_OPERATORS |= {f"_{sign}_": f"{{}} {sign} {{}}" for sign in _INFIX}
_OPERATORS |= {"!_": "!{}", "-_": "-{}", "@in": "{} in {}"}


def functions_page() -> str:
    """Return the page of all functions and macros of CEL."""
    always = _library_names(Features(), Scope.NEW)
    stored = _library_names(Features(), Scope.STORED)
    sections = ["# Functions of CEL", MADE, _FUNCTIONS_INTRODUCTION]
    for library in DeviceCompiler(Features())._environment(Scope.STORED).libraries:
        sections += [f"## {library.name}", LIBRARY_PURPOSES[library.name]]
        if library.name not in stored:
            sections.append("An extension; `--strict` does not know it.")
        if library.name not in always:
            sections.append("In new expressions only if `DRAListTypeAttributes` is on.")
        sections += _library_tables(library)
    return _page(sections)


def _library_names(features: Features, scope: Scope) -> set[str]:
    environment = DeviceCompiler(features, extensions=False)._environment(scope)
    return {library.name for library in environment.libraries}


def _library_tables(library: Library) -> Iterator[str]:
    if library.macros:
        yield _table(("macro",), ((f"`{_macro_call(macro)}`",) for macro in library.macros))
    rows = [
        (f"`{_signature(function.name, overload)}`", f"`{overload.result}`", f"`{overload.id}`")
        for function in library.functions
        if function.name[0] not in "@_" or function.name in _OPERATORS  # Others are for macros.
        for overload in function.overloads
    ]
    if rows:
        yield _table(("call", "gives", "overload"), rows)


def _macro_call(macro: Macro) -> str:
    target = "cel." if macro.name == "bind" else "value." if macro.is_member else ""
    return f"{target}{macro.name}({', '.join('…' * macro.arity)})"


def _signature(name: str, overload: Overload) -> str:
    params = list(map(str, overload.params))
    if name in _OPERATORS:
        return _OPERATORS[name].format(*params)
    target = f"{params.pop(0)}." if overload.is_member else ""
    return f"{target}{name}({', '.join(params)})"


# --- feature gates ------------------------------------------------------------------------

# What a gate switches, said once for all of Mooring; a test finds gates without a word.
GATE_PURPOSES: dict[Gate, str] = {
    Gate.ALL_ALPHA: "all alpha gates that are not named themselves",
    Gate.ALL_BETA: "all beta gates that are not named themselves",
    Gate.DRA_ADMIN_ACCESS: "requests with `adminAccess`, which see devices that are in use",
    Gate.DRA_CONSUMABLE_CAPACITY: "devices that several claims share, each with some capacity",
    Gate.DRA_DERIVED_ATTRIBUTES: "attributes that a claim computes with CEL and compares",
    Gate.DRA_DEVICE_BINDING_CONDITIONS: "devices that must become ready before a pod is bound",
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: "groups of partitions that may be in use together",
    Gate.DRA_DEVICE_TAINT_RULES: "DeviceTaintRule: taints that an administrator puts on devices",
    Gate.DRA_DEVICE_TAINTS: "taints of devices in slices, and tolerations of requests",
    Gate.DRA_EXTENDED_RESOURCE: "extended resources of containers served by a DeviceClass",
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: "ranges of shared capacity in steps of milli units",
    Gate.DRA_LIST_TYPE_ATTRIBUTES: "attributes whose value is a list",
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: "devices that stand for CPU or memory of their node",
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: "slices whose devices need no preparing on the node",
    Gate.DRA_PARTITIONABLE_DEVICES: "devices that are made from shared counters",
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: "the attribute that names the type of a partition",
    Gate.DRA_PRIORITIZED_LIST: "requests with `firstAvailable`, a list of alternatives",
    Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS: "what drivers report of devices in a claim's status",
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (
        "permissions for each part of a claim's status"
    ),
    Gate.DRA_RESOURCE_POOL_STATUS: "ResourcePoolStatusRequest: a question about free devices",
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: "a bound on the time that the search for devices takes",
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: "claims that all pods of a PodGroup share",
    Gate.DYNAMIC_RESOURCE_ALLOCATION: "Dynamic Resource Allocation as a whole",
    Gate.GENERIC_WORKLOAD: "Workload and PodGroup, and pods that belong to one",
    Gate.KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES: "claims in the kubelet's PodResources API",
    Gate.KUBELET_POD_RESOURCES_GET: "asking the kubelet's PodResources API for one pod",
    Gate.KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS: (
        "only running pods in the kubelet's PodResources API"
    ),
    Gate.NODE_DECLARED_FEATURES: "features that a node declares in its status",
    Gate.RESOURCE_HEALTH_STATUS: "the health of devices in a pod's status",
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: "a message with the health of a device",
}

_GATES_INTRODUCTION = """\
The gates of Kubernetes 1.37 that concern Dynamic Resource Allocation.
[How to choose gates and versions](../how-to/choose-gates.md) tells how to set them.

- *Stage* and *default* are those of Kubernetes 1.37; `--gates-preset kubernetes-1.37` gives them.
  With Mooring's own preset every gate is on.
- A *locked* gate cannot be switched.
- *Since* tells in which version the gate came to each stage.
- *Needs*: the gate can only be on while these are."""

_STAGE_NAMES = {
    Stage.ALPHA: "alpha",
    Stage.BETA: "beta",
    Stage.GA: "stable",
    Stage.DEPRECATED: "deprecated",
}


def gates_page() -> str:
    """Return the page of all feature gates."""
    columns = ("gate", "switches", "stage", "default", "locked", "since", "needs")
    sections = [
        "# Feature gates",
        MADE,
        _GATES_INTRODUCTION,
        _table(columns, map(_gate_row, HISTORY)),
    ]
    return _page(sections)


def _gate_row(gate: Gate) -> tuple[str, ...]:
    spec = spec_of(gate, CURRENT)
    return (
        f"`{gate}`",
        GATE_PURPOSES[gate],
        _STAGE_NAMES[spec.stage],
        "on" if spec.default else "off",
        "yes" if spec.locked else "",
        ", ".join(_stages(HISTORY[gate])),
        ", ".join(f"`{need}`" for need in NEEDS.get(gate, ())),
    )


def _stages(history: tuple[Spec, ...]) -> Iterator[str]:
    """Give each stage of a gate once, with the version it came in."""
    for stage, specs in groupby(history, key=attrgetter("stage")):
        first: Spec = next(iter(specs))
        if first.minor:  # Gates that always were have no version.
            yield f"{_STAGE_NAMES[stage]} 1.{first.minor}"


# --- kinds --------------------------------------------------------------------------------


_KINDS_INTRODUCTION = """\
What Mooring reads, by API group.

- *Versions*: objects are stored in the first. *Extension* marks a version that Kubernetes 1.37
  does not serve; `--strict` does not know it.
- *Scope*: `file` marks kinds that no server serves; they are read from files.
- *Checked*: **rules** is Kubernetes' rules for the kind ([differences](../differences.md) tells
  what is left out), **metadata** the rules for metadata only, **nothing** that it is only read.
- *Unknown fields* are **reported**, with a warning or with `--strict` an error, or **kept**:
  Mooring declares the fields that it uses and passes the others on. In `metadata` they are
  reported for every kind."""


def kinds_page() -> str:
    """Return the page of all kinds."""
    sections = [
        "# Kinds",
        MADE,
        _KINDS_INTRODUCTION,
    ]
    for group, kinds in groupby(KINDS, key=attrgetter("group")):
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
        sections.append(_table(columns, _kind_rows(kinds)))
    return _page(sections)


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
        scope if kind.plural else "file",
        f"`{kind.plural}`" if kind.plural else "",
        ", ".join(f"`{name}`" for name in kind.short_names),
        "yes" if kind.has_status else "",
        _checked(kind),
        "kept" if issubclass(kind.struct, Open) else "reported",
    )


def _checked(kind: Kind) -> str:
    strategy = strategy_of(kind)
    if isinstance(strategy, MetadataOnly):
        return "metadata"
    return "nothing" if type(strategy).check_create is Strategy.check_create else "rules"


# --- limits -------------------------------------------------------------------------------

_LIMIT_MEANINGS = {
    "bytes_max": "bytes of one file or of standard input, also unpacked",
    "documents_max": "documents in one file, empty ones included",
    "depth_max": "lists and maps inside one another",
    "nodes_max": "values in all documents of a file, aliases counted as written out",
    "aliased_nodes_max": "values of one document that come from YAML aliases",
    "duplicates_max": "duplicate keys that are reported for one document",
}


_LIMITS_INTRODUCTION = """\
Input beyond one of these is refused, with the place and the limit. What is wrong with a file as a
whole ends its reading, and `moor` exits with 3; a quantity is refused with its object. Only
duplicate keys beyond their limit are passed over. The named limits are fields of
`mooring.api.documents.Limits`; the command line has no options for them."""


def limits_page() -> str:
    """Return the page of the limits of reading."""
    rows = [_limit_row(limit.name) for limit in fields(Limits)]
    rows.append(("", f"{NUMBER_LENGTH_MAX:,}", "characters of one number"))
    rows.append(("", f"{QUANTITY_DIGITS_MAX:,}", "digits before the point of one quantity"))
    rows.append(("", f"{ARCHIVE_LIMITS.bytes_max:,}", "bytes of one archive of `moor snapshot`"))
    rows.append(("", f"{UNPACKED_BYTES_MAX:,}", "bytes in such an archive, unpacked"))
    rows.append(("", f"{PODS_MAX:,}", "pods made for the controllers of a cluster"))
    sections = [
        "# Limits of reading",
        MADE,
        _LIMITS_INTRODUCTION,
        _table(("limit", "at most", "of what"), rows),
    ]
    return _page(sections)


def _limit_row(name: str) -> tuple[str, str, str]:
    return f"`{name}`", f"{getattr(DEFAULT_LIMITS, name):,}", _LIMIT_MEANINGS[name]


# --- Markdown -----------------------------------------------------------------------------


def profiles_page() -> str:
    """Return the page of hardware profiles."""
    return _page(["# Hardware profiles", MADE, *profile_sections()])


def _page(sections: Iterable[str]) -> str:
    return "\n\n".join(sections) + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "cel-functions.md": functions_page,
    "cli.md": cli_page,
    "feature-gates.md": gates_page,
    "kinds.md": kinds_page,
    "limits.md": limits_page,
    "profiles.md": profiles_page,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
