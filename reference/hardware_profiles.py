"""The reference page of hardware profiles, made from the profiles themselves."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.board import Profile
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.drivers import DRIVERS
from moorage.hardware.machine import machine_of

INTRO = """\
A profile describes a board: sockets, NUMA nodes and their distances, PCIe roots, and the devices
below them. From it come the sysfs of the machine, the standard attributes, and what each driver
publishes: see [how to use them](../how-to/use-hardware-profiles.md).

Every fact has a source. What no source gives is assumed: it is likely, and a machine that you have
may differ."""

RULES = """\
- Names of attributes are those that the drivers publish, and those of the table "Current Driver
  Attribute Names" of KEP-6072. The standard `pciBusID`, `pcieRoot` and `numaNode` stand beside
  them.
- CPUs and memory publish `numaNode` as a scalar; devices on PCI publish it as asked for.
- CPUs have no `pcieRoot`, as KEP-6072 has it. Their driver can publish a list of roots; it is left
  out here.
- A NIC is given away whole by `dra.net`, or by its virtual functions by the SR-IOV driver, never by
  both.
- Identifiers that differ from machine to machine (UUIDs, MAC addresses, serial numbers) are made
  from the name of the node and are always the same."""


def profile_sections() -> Iterator[str]:
    """Give the sections of the page, after its heading."""
    catalogue = Catalogue()
    profiles = [catalogue.profile(name) for name in catalogue.names]
    yield INTRO
    yield _lines(_overview(profiles))
    yield "## What drivers publish"
    yield RULES
    yield _lines(_driver_rows(profiles))
    yield "## Boards"
    for profile in profiles:
        yield from _profile_sections(profile)


def _overview(profiles: list[Profile]) -> Iterator[str]:
    yield "| profile | other names | board | machines | drivers |"
    yield "| --- | --- | --- | --- | --- |"
    for profile in profiles:
        board = profile.board
        aliases = ", ".join(f"`{alias}`" for alias in board.aliases)
        drivers = ", ".join(f"`{name}`" for name in _published(profile))
        cells = (f"`{profile.name}`", aliases, board.summary, str(board.machines), drivers)
        yield f"| {' | '.join(cells)} |"


def _driver_rows(profiles: list[Profile]) -> Iterator[str]:
    names: dict[str, dict[str, None]] = {}
    for profile in profiles:
        for driver, attributes in _published(profile).items():
            names.setdefault(driver, {}).update(attributes)
    yield "| driver | attributes and capacities |"
    yield "| --- | --- |"
    for driver in sorted(names):
        yield f"| `{driver}` | {', '.join(f'`{name}`' for name in sorted(names[driver]))} |"


def _published(profile: Profile) -> dict[str, dict[str, None]]:
    """Return the names of attributes and capacities that each driver publishes of a board."""
    machine = machine_of(profile, "node", NumaNodeForm.LIST)
    found: dict[str, dict[str, None]] = {}
    for driver, sheets in DRIVERS.items():
        for sheet in sheets(machine):
            for device in sheet.devices:
                names = dict.fromkeys((*device.attributes, *device.capacity))
                found.setdefault(driver, {}).update(names)
    return found


def _profile_sections(profile: Profile) -> Iterator[str]:
    yield f"### {profile.name}"
    yield f"{profile.board.title}: {profile.board.summary}."
    yield _lines(_facts(profile))


def _facts(profile: Profile) -> Iterator[str]:
    yield "| part | source | assumed |"
    yield "| --- | --- | --- |"
    rows: dict[tuple[str, str], list[str]] = {}
    for part, source, assumed in profile.facts():
        fields = ", ".join(assumed) if source else "everything"
        rows.setdefault((source, fields), []).append(f"`{part}`")
    for (source, fields), parts in rows.items():
        yield f"| {', '.join(parts)} | {source} | {fields} |"


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)
