"""`moor profiles`: list hardware profiles, show one, or write its objects as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from moorage.api.codec import to_tree
from moorage.cli import CONTEXT
from moorage.cli.errors import FITS, UNREADABLE
from moorage.cli.gate_options import numa_node_option
from moorage.cli.output import (
    aligned,
    attribute_texts,
    complain,
    output_option,
    print_answer,
)
from moorage.cli.terminal import echo
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.board import Board, Profile, profile_tree
from moorage.hardware.catalogue import Catalogue, Fleet
from moorage.hardware.errors import ProfileError
from moorage.hardware.sysfs import sysfs_entries
from moorage.hardware.sysfs_tree import write_entries
from moorage.insight.messages import counted
from moorage.insight.object_names import kubectl_name
from moorage.insight.rows import PUBLISHED_COLUMNS, published_rows

DEVICES_SHOWN_MAX = 64


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 2 usage error or no such profile, 3 a file could not "
    "be written.",
)
@click.argument("name", metavar="[NAME]", required=False)
@numa_node_option(
    "How drivers publish numaNode; list needs the DRAListTypeAttributes feature gate."
)
@click.option(
    "--write",
    "objects_folder",
    metavar="DIR",
    help="Write Nodes, ResourceSlices and DeviceClasses as YAML files.",
)
@click.option("--sysfs", "sysfs_folder", metavar="DIR", help="Write the sysfs tree of one machine.")
@output_option(
    wide="adds aliases, or attributes of devices",
    names="the profiles, with [NAME] the nodes",
)
def command(
    name: str | None,
    form_name: str,
    objects_folder: str | None,
    sysfs_folder: str | None,
    output: str,
) -> None:
    """List hardware profiles, or show one.

    Without [NAME], the command lists all boards. With [NAME], such as dgx-h100, or dgx-h100=4 for
    four machines, it shows sockets, NUMA nodes with their distances, PCIe roots, devices with their
    standard attributes, and the source of each fact. Facts without a source are marked as
    assumed.

    \b
    moor profiles
    moor profiles dgx-h100
    moor profiles dgx-h100=4 --write ./manifests
    """
    catalogue = Catalogue()
    if name is None:
        if objects_folder or sysfs_folder:
            raise click.UsageError("--write and --sysfs need the name of a profile")
        _print_all([catalogue.profile(each) for each in catalogue.names], output)
        sys.exit(FITS)
    try:
        fleet = catalogue.fleet(name, NumaNodeForm[form_name.upper()])
    except ProfileError as error:
        raise click.UsageError(str(error)) from None
    if objects_folder or sysfs_folder:
        sys.exit(_write(fleet, objects_folder, sysfs_folder))
    _print_one(fleet, output)


# --- the list -----------------------------------------------------------------------------


def _print_all(profiles: list[Profile], output: str) -> None:
    trees = list(map(profile_tree, profiles))
    print_answer(
        output,
        table=lambda is_wide: _print_profiles(profiles, is_wide=is_wide),
        document=lambda: trees,
        rows=lambda: ({**tree, "aliases": ",".join(tree["aliases"]) or None} for tree in trees),
        names=lambda: (f"profile/{profile.name}" for profile in profiles),
    )


def _print_profiles(profiles: list[Profile], *, is_wide: bool) -> None:
    header = ("NAME", "MACHINES", "SOCKETS", "NUMA", "PCI DEVICES", "BOARD")
    wide = ("ALIASES", "SUMMARY") if is_wide else ()
    rows = [_profile_row(profile, is_wide=is_wide) for profile in profiles]
    for line in aligned([header + wide, *rows]):
        echo(line)


def _profile_row(profile: Profile, *, is_wide: bool) -> tuple[str, ...]:
    board = profile.board
    counts = (board.machines, len(board.sockets), len(board.numa.nodes), len(board.devices))
    more = (",".join(board.aliases) or "-", board.summary) if is_wide else ()
    return (profile.name, *map(str, counts), board.title, *more)


# --- one profile --------------------------------------------------------------------------


def _print_one(fleet: Fleet, output: str) -> None:
    print_answer(
        output,
        table=lambda is_wide: _print_board(fleet, is_wide=is_wide),
        document=lambda: _fleet_json(fleet),
        rows=lambda: published_rows(fleet.slices),
        names=lambda: (kubectl_name("node", node.metadata.name) for node in fleet.nodes),
        columns=PUBLISHED_COLUMNS,
    )


def _print_board(fleet: Fleet, *, is_wide: bool) -> None:
    for line in _board_lines(fleet, is_wide=is_wide):
        echo(line)


def _board_lines(fleet: Fleet, *, is_wide: bool) -> Iterator[str]:
    board = fleet.profile.board
    yield f"{board.title}: {board.summary}"
    machines = counted(len(fleet.nodes), "machine")
    yield f"{machines}; each {len(board.sockets)} × {board.cpu.model}"
    yield ""
    yield from aligned(list(_numa_rows(board)))
    yield ""
    yield from aligned([("ROOT", "NUMA", "BELOW IT"), *_root_rows(fleet.profile)])
    yield ""
    rows = list(_device_rows(fleet, is_wide=is_wide))
    yield from aligned([_device_header(is_wide=is_wide), *rows])
    yield ""
    yield from _fact_lines(fleet.profile)


def _numa_rows(board: Board) -> Iterator[tuple[str, ...]]:
    yield ("NUMA", "SOCKET", "CPUS", "MEMORY", "DISTANCES")
    for node in board.numa.nodes:
        distances = " ".join(map(str, board.numa.distances[node.id]))
        cpus = node.cpus if len(node.cpus) <= 20 else f"{len(node.cpu_ids)} CPUs"
        yield (str(node.id), str(node.socket), cpus, node.memory, distances)


def _root_rows(profile: Profile) -> Iterator[tuple[str, ...]]:
    for root, node in profile.board.pcie.roots.items():
        below = (
            f"{device.address} {model.product}"
            for device, model in profile.devices()
            if device.root == root
        )
        yield (root, "-" if node < 0 else str(node), ", ".join(below) or "-")


def _device_header(*, is_wide: bool) -> tuple[str, ...]:
    return ("DRIVER", "DEVICE", "PCIEROOT", "NUMANODE", *(("ATTRIBUTES",) if is_wide else ()))


def _device_rows(fleet: Fleet, *, is_wide: bool) -> Iterator[tuple[str, ...]]:
    first = fleet.nodes[0].metadata.name
    found = [
        (each.spec.driver, device)
        for each in fleet.slices
        if each.spec.node_name == first
        for device in each.spec.devices or ()
    ]
    shown = found if is_wide else found[:DEVICES_SHOWN_MAX]
    for driver, device in shown:
        values = {
            name: ",".join(attribute_texts(value)) for name, value in device.attributes.items()
        }
        root = values.pop("resource.kubernetes.io/pcieRoot", "-")
        node = values.pop("resource.kubernetes.io/numaNode", "-")
        others = " ".join(f"{name}={value}" for name, value in values.items())
        yield (driver, device.name, root, node, *((others,) if is_wide else ()))
    if len(found) > len(shown):
        left = f"… and {len(found) - len(shown)} more: -o wide shows all"
        yield (left, *[""] * (len(_device_header(is_wide=is_wide)) - 1))


def _fact_lines(profile: Profile) -> Iterator[str]:
    """Yield every source with its facts, then the assumed facts."""
    sourced: dict[str, list[str]] = {}
    assumed: dict[str, list[str]] = {}
    for part, source, fields in profile.facts():
        if source:
            sourced.setdefault(source, []).append(part)
        if fields:
            assumed.setdefault(", ".join(fields) if source else "everything", []).append(part)
    for source, parts in sourced.items():
        yield f"source: {source}"
        yield f"    {', '.join(parts)}"
    for fields_text, parts in assumed.items():
        yield f"assumed: {fields_text}"
        yield f"    {', '.join(parts)}"


def _fleet_json(fleet: Fleet) -> dict[str, Any]:
    board = fleet.profile.board
    return {
        **profile_tree(fleet.profile),
        "board": msgspec.to_builtins(board),
        "facts": [
            {"part": part, "source": source, "assumed": fields}
            for part, source, fields in fleet.profile.facts()
        ],
        "objects": list(map(to_tree, _objects(fleet))),
    }


# --- files --------------------------------------------------------------------------------


def _write(fleet: Fleet, objects_folder: str | None, sysfs_folder: str | None) -> int:
    try:
        if objects_folder:
            for line in _write_objects(fleet, Path(objects_folder)):
                echo(line)
        if sysfs_folder:
            entries = sysfs_entries(fleet.profile)
            write_entries(Path(sysfs_folder), entries)
            echo(f"{sysfs_folder}: {len(entries):,} files and links of sysfs")
    except OSError as error:
        complain(f"{error.filename}: {error.strerror or error}")
        return UNREADABLE
    return FITS


def _write_objects(fleet: Fleet, folder: Path) -> Iterator[str]:
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "deviceclasses.yaml": fleet.classes,
        "nodes.yaml": fleet.nodes,
        "resourceslices.yaml": fleet.slices,
    }
    for name, objects in files.items():
        trees = [to_tree(each) for each in objects]
        text = yaml.safe_dump_all(trees, sort_keys=False, allow_unicode=True)
        (folder / name).write_text(text, encoding="utf-8")
        yield f"{folder / name}: {counted(len(trees), 'object')}"


def _objects(fleet: Fleet) -> Iterator[msgspec.Struct]:
    yield from (*fleet.classes, *fleet.nodes, *fleet.slices)
