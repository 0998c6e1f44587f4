"""What expressions say of the devices of one pool, as far as they were asked.

A device is asked once, and an interruption loses only the answer that is being computed. Positions
are those in the pool; a set of devices is an integer with their bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

from moorage.allocator.pools import bits, flags_mask, mask_of
from moorage.api.resource.v1 import DeviceAttribute
from moorage.cel.device import Compiled
from moorage.cel.device_batch import DeviceBatch
from moorage.cel.device_values import with_hint


class Answers:
    """What one expression says."""

    def __init__(self, compiled: Compiled, devices: DeviceBatch) -> None:
        self.compiled = compiled
        self.is_cheap = compiled.is_cheap  # whether asking many devices at once costs little
        self.asked = 0
        self._devices = devices

    def ask(self, wanted: int) -> None:
        """Ask the devices that were not asked before; may raise Interrupted."""
        missing = wanted & ~self.asked
        if not missing:
            return
        if self.compiled.error is not None:
            self._refuse(missing, self.compiled.error)
            self.asked |= missing
            return
        positions = bits(missing)
        for part, answers in self._devices.answers(self.compiled, positions):
            asked = missing if len(part) == len(positions) else mask_of(part)
            self._take(asked, part, answers)
            self.asked |= asked

    @abstractmethod
    def _take(
        self,
        asked: int,
        positions: Sequence[int],
        answers: Sequence[DeviceAttribute | bool | str],
    ) -> None:
        """Note the answers of devices; a text is an error."""

    @abstractmethod
    def _refuse(self, positions: int, error: str) -> None:
        """Note that the expression cannot be compiled."""


class SelectorAnswers(Answers):
    """Which devices an expression selects."""

    def __init__(self, compiled: Compiled, devices: DeviceBatch) -> None:
        super().__init__(compiled, devices)
        self.yes = 0
        self.faulty = 0
        self.faults: dict[int, str] = {}

    def ask(self, wanted: int) -> None:
        """Ask the devices that were not asked before; may raise Interrupted."""
        missing = wanted & ~self.asked
        if missing and self.compiled.is_by_driver and not self._devices.unreadable:
            match = self.compiled.match_of_driver(self._devices.driver)
            if match is not None:
                self.asked |= missing
                if match:
                    self.yes |= missing
                return
        super().ask(wanted)

    def _take(
        self,
        asked: int,
        positions: Sequence[int],
        answers: Sequence[DeviceAttribute | bool | str],
    ) -> None:
        if answers.count(True) == len(answers):  # as most often
            self.yes |= asked
            return
        if isinstance(positions, range) and set(map(type, answers)) == {bool}:
            self.yes |= flags_mask(answers) << positions.start
            return
        self.yes |= asked
        for position, answer in zip(positions, answers, strict=True):
            if answer is True:
                continue
            self.yes ^= 1 << position
            if answer is not False:
                assert isinstance(answer, str)
                self.faulty |= 1 << position
                self.faults[position] = with_hint(answer)

    def _refuse(self, positions: int, error: str) -> None:
        self.faulty |= positions
        self.faults.update(dict.fromkeys(bits(positions), error))


Derived = DeviceAttribute | str  # a text is an error


class DerivedAnswers(Answers):
    """The attribute that an expression derives of each device; a text is an error."""

    def __init__(self, compiled: Compiled, devices: DeviceBatch) -> None:
        super().__init__(compiled, devices)
        self.values: dict[int, Derived] = {}

    def _take(
        self,
        asked: int,  # noqa: ARG002
        positions: Sequence[int],
        answers: Sequence[DeviceAttribute | bool | str],
    ) -> None:
        # A derived attribute is never a bool.
        self.values.update(zip(positions, cast("Sequence[Derived]", answers), strict=True))

    def _refuse(self, positions: int, error: str) -> None:
        self.values.update(dict.fromkeys(bits(positions), error))
