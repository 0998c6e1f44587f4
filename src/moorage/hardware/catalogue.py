"""The catalogue of profiles, by name, alias and count.

    profile = name [ ( "x" | "=" ) count ]

`dgx-h100x4` and `dgx-h100=4` are four machines; `gb200-nvl72` is a rack of eighteen, and
`gb200-nvl72x2` two racks. A name that itself ends in x and digits takes precedence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from moorage.api.core.node import Node
from moorage.api.resource.v1 import DeviceClass, ResourceSlice
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.board import Profile
from moorage.hardware.drivers import DRIVERS
from moorage.hardware.errors import ProfileError
from moorage.hardware.machine import Machine, device_classes, node_of, slices_of
from moorage.hardware.profile_files import ProfileFolder
from moorage.hardware.sysfs import sysfs_tree
from moorage.kit.checkpoints import checkpoint

MACHINES_MAX = 10_000
_PROFILE_COUNT = re.compile(r"(?P<name>[^=]*?)(?:=(?P<count>.*)|x(?P<times>[0-9]+))", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,9}")

CLIQUE_LABEL = "nvidia.com/gpu.clique"


class Fleet(NamedTuple):
    """Machines of one profile, as objects of a cluster."""

    profile: Profile
    nodes: tuple[Node, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]


class ProfileCount(NamedTuple):
    """A profile and how many of its boards."""

    profile: Profile
    units: int

    @property
    def machines(self) -> int:
        """How many machines these are."""
        return self.units * self.profile.board.machines

    @property
    def node_names(self) -> Iterator[str]:
        """The names of all machines."""
        return self.names_from(0)

    def names_from(self, first: int) -> Iterator[str]:
        """Yield the names of all machines, numbered from `first`."""
        for index in range(self.machines):
            yield f"{self.profile.name}-{first + index}"

    def first_free(self, taken: Iterable[str]) -> int:
        """Return the first number after all taken names, rounded up to whole racks."""
        prefix = f"{self.profile.name}-"
        numbers = (name.removeprefix(prefix) for name in taken if name.startswith(prefix))
        used = [int(number) + 1 for number in numbers if _NUMBER.fullmatch(number)]
        machines = self.profile.board.machines
        return -(-max(used, default=0) // machines) * machines


class Catalogue:
    """All profiles of a folder; each file is read once."""

    def __init__(self, folder: ProfileFolder | None = None) -> None:
        self._folder = folder or ProfileFolder()
        self._names = self._folder.names()
        self._profiles: dict[str, Profile] = {}

    @property
    def names(self) -> list[str]:
        """The names of all profiles, without aliases."""
        return self._names

    def profile(self, name: str) -> Profile:
        """Return a profile by its name or alias, or raise ProfileError with the nearest name."""
        if name in self._names:
            return self._profile(name)
        if name in self._aliases:
            return self._profile(self._aliases[name])
        existing = [*self._names, *self._aliases]
        near = difflib.get_close_matches(name[:64].lower(), existing, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are: {', '.join(self._names)}"
        raise ProfileError(f"there is no profile {name[:64]!r}; {remedy}")

    def wanted(self, text: str) -> ProfileCount:
        """Parse `dgx-h100x4`, `dgx-h100=4` or `profile/dgx-h100`, or raise ProfileError."""
        text = text.removeprefix("profile/")  # which `moor profiles -o name` prints
        found = _PROFILE_COUNT.fullmatch(text)
        # A name may itself end in x and digits.
        if found is None or text in self._names or text in self._aliases:
            return ProfileCount(self.profile(text), 1)
        profile = self.profile(found["name"])
        count = found["times"] if found["count"] is None else found["count"]
        units_max = MACHINES_MAX // profile.board.machines
        if not _NUMBER.fullmatch(count) or not 1 <= int(count) <= units_max:
            raise ProfileError(f"{text[:64]}: the count must be a number from 1 to {units_max:,}")
        return ProfileCount(profile, int(count))

    def fleet(
        self,
        text: str,
        form: NumaNodeForm | bool = NumaNodeForm.SCALAR,
        *,
        taken: Iterable[str] = (),
    ) -> Fleet:
        """Return the objects of the machines that a text names, or raise ProfileError.

        Their numbers come after those of existing nodes (`taken`).
        """
        wanted = self.wanted(text)
        tree = sysfs_tree(wanted.profile)
        nodes: list[Node] = []
        slices: list[ResourceSlice] = []
        first = wanted.first_free(taken)
        for index, name in enumerate(wanted.names_from(first), first):
            checkpoint()
            nodes.append(node_of(wanted.profile, name, _unit_labels(wanted.profile, index)))
            machine = Machine(wanted.profile, name, tree, NumaNodeForm(form))
            for driver, sheets in DRIVERS.items():
                slices.extend(slices_of(name, driver, sheets(machine)))
        drivers = sorted({each.spec.driver for each in slices})
        classes = tuple(device_classes(drivers))
        return Fleet(wanted.profile, tuple(nodes), tuple(slices), classes)

    def _profile(self, name: str) -> Profile:
        if name not in self._profiles:
            self._profiles[name] = self._folder.read(name)
        return self._profiles[name]

    @cached_property
    def _aliases(self) -> dict[str, str]:
        return {alias: name for name in self._names for alias in self._profile(name).board.aliases}


def _unit_labels(profile: Profile, index: int) -> dict[str, str]:
    """Return the label of machines that share memory: those of one rack."""
    if not profile.board.options.compute_domains:
        return {}
    return {CLIQUE_LABEL: f"{profile.name}-{index // profile.board.machines}.0"}
