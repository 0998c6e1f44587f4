"""The two kinds of struct that API objects are made of.

Closed  kinds of resource.k8s.io, which we own: every field is known, an unknown one is reported.
Open    kinds that others own (Pod, Node, …): we declare the fields we use and keep the rest in
        `extra`, so that writing an object back loses nothing.

Both are frozen and outside the garbage collector (they form trees, never cycles). A field left
at its default is not written, which is Go's `omitempty`; a field declared with `always(…)` is
written even when empty.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Raw, Struct, field

T = TypeVar("T")

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

NULL = Raw(b"null")  # raw JSON that is absent

EXTRA = "\x7fextra"  # no field of a real object is called like this


class Closed(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
):
    """A struct all of whose fields are declared."""


class Open(Closed, frozen=True, gc=False, kw_only=True):
    """A struct that keeps the fields it does not declare."""

    extra: dict[str, Any] = field(default_factory=dict, name=EXTRA)


def always(default: T, *, name: str | None = None) -> T:
    """Declare a field that is written even when it holds its default."""
    declared: T = field(default_factory=_Constant(default), name=name)
    return declared


def named(name: str, default: T) -> T:
    """Declare a field whose JSON name is not the camel case of its own."""
    return field(default=default, name=name)


class _Constant:
    """A default factory, which msgspec never compares when it decides what to omit."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value
