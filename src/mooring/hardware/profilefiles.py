"""Profiles as files: TOML, one a board, read strictly.

A file with `base` takes what another says and puts its own top-level entries in place of it. All
that is wrong is a ProfileError that names the file and the field.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec

from mooring.hardware.board import Board, Profile
from mooring.hardware.errors import ProfileError
from mooring.hardware.models import Model
from mooring.hardware.profilechecks import board_faults, model_fault

T = TypeVar("T")

SUFFIX = ".toml"
MODELS = "models"
FILE_BYTES_MAX = 1 << 20
BASES_MAX = 4


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of all models."""

    sources: dict[str, str]
    models: dict[str, Model]


class ProfileFolder:
    """A folder of profiles and the models that their boards carry."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder or files("mooring.hardware") / "profiles"

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        stems = (path.name.removesuffix(SUFFIX) for path in self._folder.iterdir())
        return sorted(stem for stem in stems if stem != MODELS)

    def read(self, name: str) -> Profile:
        """Return a profile, or raise ProfileError."""
        tree = self._tree(name, BASES_MAX)
        board = _decoded(name, tree, Board)
        known = self.models()
        faults = board_faults(board, known.models)
        if faults:
            raise ProfileError("\n".join(f"{name}{SUFFIX}: {fault}" for fault in faults))
        used = {device.model: known.models[device.model] for device in board.devices}
        return Profile(name, board, used, known.sources)

    def models(self) -> Models:
        """Return all models, or raise ProfileError."""
        found = _decoded(MODELS, self._toml(MODELS), Models)
        for name, model in found.models.items():
            fault = model_fault(model, found.sources)
            if fault:
                raise ProfileError(f"{MODELS}{SUFFIX}: models.{name}.{fault}")
        return found

    def _tree(self, name: str, bases_max: int) -> dict[str, Any]:
        tree = self._toml(name)
        base = tree.pop("base", None)
        if base is None:
            return tree
        if not isinstance(base, str) or not _is_name(base) or bases_max == 0:
            raise ProfileError(
                f"{name}{SUFFIX}: base: must name a profile that rests on few others"
            )
        below = self._tree(base, bases_max - 1)
        # Another board is not known by the names of the one it resembles.
        below.pop("aliases", None)
        sources = {**below.get("sources", {}), **tree.get("sources", {})}
        return {**below, **tree, "sources": sources}

    def _toml(self, name: str) -> dict[str, Any]:
        place = f"{name}{SUFFIX}"
        try:
            with (self._folder / place).open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise ProfileError(f"{place}: {error.strerror or error}") from None
        if len(data) > FILE_BYTES_MAX:
            raise ProfileError(f"{place}: larger than {FILE_BYTES_MAX:,} bytes")
        try:
            return tomllib.loads(data.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ProfileError(f"{place}: {error}") from None


def _is_name(text: str) -> bool:
    """Tell whether a text names a file beside this one, and is no path."""
    return text.isprintable() and "/" not in text


def _decoded(name: str, tree: dict[str, Any], struct: type[T]) -> T:
    try:
        return msgspec.convert(tree, struct)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{name}{SUFFIX}: {error}") from None
