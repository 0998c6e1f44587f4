"""The structs that API objects are made of.

Closed   of resource.k8s.io and meta/v1, which we own: an unknown field is reported
Open     of kinds that others own (Pod, Node, …): we declare the fields we use and keep the rest in
         `extra`, so that writing an object back loses nothing
Checked  the metaclass of structs whose fields are checked when Python code makes them

Structs are frozen and outside the garbage collector (they form trees, never cycles). A field left
at its default is not written, which is Go's `omitempty`; a field declared with `always(…)` is
written even when empty.

    class Mount(Open, frozen=True, gc=False, metaclass=Checked): ...

    Mount(host_path=7)     TypeError: Mount.host_path: expected a str, not the int 7

Type annotations alone stop nobody: without a check a wrong value is found when it is sent, or
never. Decoded values are not checked again (`unchecked`), because decoding has its own errors.

1. Every value must have its field's type. A list or an iterator given for a tuple
   becomes one, and another mapping given for a dict becomes a dict.
2. A struct may have rules of its own: `faults()` yields a sentence for each one that is broken.
3. A class may say what to write instead: `instead_of(value)` returns Python code, or "".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from functools import partial
from itertools import repeat
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta, Raw, Struct, StructMeta, field

T = TypeVar("T")

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
# Bytes, as Go writes them: what does not fit may be another spelling of bytes, or none.
Base64 = Annotated[
    str,
    Meta(
        pattern=r"\A(?:[A-Za-z0-9+/]{4})*"
        r"(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?\Z"
    ),
]

NULL = Raw(b"null")  # raw JSON that is absent

# In between, `extra` is a member of its own in JSON. From outside it is never read: no text fits a
# struct that has it, so a name like this is an unknown field, or a key of a map, as any other.
EXTRA = "\x7fextra"
Extra = Annotated[dict[str, Any], Meta(max_length=0)]


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

    extra: Extra = field(default_factory=dict, name=EXTRA)


def always(default: T, *, name: str | None = None) -> T:
    """Declare a field that is written even when it holds its default."""
    # msgspec never compares what a factory makes when it decides what to omit. This one is called
    # for every such field of every object, so it is one that runs no Python code.
    declared: T = field(default_factory=repeat(default).__next__, name=name)
    return declared


def named(name: str, default: T) -> T:
    """Declare a field whose JSON name is not the camel case of its own."""
    return field(default=default, name=name)


# --- checked structs ---------------------------------------------------------------------------


__tracebackhide__ = True  # pytest shows who makes a struct, not us

SHOWN_MAX = 64  # characters of a value in a message

Check = Callable[[Any], Any]  # returns what to keep of a value, or raises _WrongError


class _WrongError(Exception):
    """A value of a wrong type; the caller knows the field."""

    def __init__(self, fact: str, kind: type[Exception] = TypeError) -> None:
        super().__init__(fact)
        self.kind, self.field, self.place = kind, "", ""


class _FieldType:
    """A type: its name in messages, and its check."""

    def __init__(self, noun: str, check: Check, member: type | None = None) -> None:
        self.noun, self.check, self.member = noun, check, member


class Checked(StructMeta):
    """The metaclass of structs that check their fields."""

    if not TYPE_CHECKING:  # type checkers know the fields

        def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: N805  # of a metaclass
            """Return a new struct, or raise TypeError or ValueError that names the field."""
            checks, faults = _PLANS.get(cls) or _plan(cls)
            name = ""
            try:
                if args:
                    args = [_of_place(checks, *each) for each in enumerate(args)]
                for name, value in given.items():
                    given[name] = checks[name](value)
            except _WrongError as wrong:
                at = wrong.field or name
                raise wrong.kind(f"{cls.__name__}.{at}{wrong.place}: {wrong}") from None
            except KeyError:
                if name in checks:
                    raise
                raise TypeError(_unknown(cls, name)) from None
            made = super().__call__(*args, **given)
            if faults is not None and (found := "; ".join(faults(made))):
                raise ValueError(f"{cls.__name__}: {found}")
            return made


def unchecked(struct: type[Struct]) -> Callable[..., Any]:
    """Return a constructor that does not check its values."""
    return partial(StructMeta.__call__, struct) if isinstance(struct, Checked) else struct


def shown(value: Any) -> str:
    """Return a value for a message: its type, and the value itself if that is short."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, str | bytes | int | float):
        return f"the {kind} {shortened(repr(value))}"
    return f"{_article(kind)} {kind}"


# --- checks -----------------------------------------------------------------------------------


Plan = tuple[dict[str, Check], Callable[[Any], Iterable[str]] | None]  # by field, and as a whole

_PLANS: dict[type, Plan] = {}


def _plan(struct: type[Struct]) -> Plan:
    """Return how a struct is checked; annotations are looked at once."""
    hints = get_type_hints(struct, include_extras=True)
    checks = {name: _field_type(hints[name]).check for name in struct.__struct_fields__}
    found = _PLANS[struct] = (checks, getattr(struct, "faults", None))
    return found


def _of_place(checks: dict[str, Check], index: int, value: Any) -> Any:
    """Return the checked value of a positional argument."""
    names = tuple(checks)
    if index >= len(names):
        return value  # One too many: msgspec reports it.
    try:
        return checks[names[index]](value)
    except _WrongError as wrong:
        wrong.field = names[index]
        raise


def _field_type(hint: Any) -> _FieldType:
    """Return the type of an annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint == Extra:
        return _field_type(inner[0])
    if origin is Annotated:
        bounds = next(each for each in inner[1:] if isinstance(each, Meta))
        return _FieldType("int", partial(_int, bounds.ge, bounds.le), int)
    if origin in (Union, UnionType):
        (member,) = (each for each in inner if each is not NoneType)
        return _FieldType("", partial(_optional, _field_type(member).check))
    if origin is tuple:
        one = _field_type(inner[0])
        return _FieldType(f"tuple of {one.noun}", partial(_tuple, one))
    if origin is dict:
        one = _field_type(inner[1])
        return _FieldType(f"dict of {one.noun}", partial(_dict, one))
    return _class_type(hint)


def _class_type(hint: Any) -> _FieldType:
    if hint in (Any, Raw):
        return _FieldType("anything", _anything)
    if hint is str:
        return _FieldType("str", _str, str)
    if hint is int:
        return _FieldType("int", partial(_int, None, None), int)
    noun = hint.__name__
    return _FieldType(noun, partial(_instance, hint), hint)


def _anything(value: Any) -> Any:
    return value


def _optional(check: Check, value: Any) -> Any:
    return None if value is None else check(value)


def _instance(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    words = f"{_article(kind.__name__)} {kind.__name__}"
    raise _mismatch(words, value, _instead_of(kind, value))


def _str(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a member of an enum
    can_be = hasattr(value, "__fspath__") or isinstance(value, int | float)
    raise _mismatch("a str", value, "str(…)" if can_be else "")


def _int(least: Any, most: Any, value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mismatch("an int", value, "")
    if (least is not None and value < least) or (most is not None and value > most):
        raise _WrongError(f"{shown(value)} is not from {least} to {most}", ValueError)
    return int(value)


def _tuple(one: _FieldType, value: Any) -> Any:
    if not isinstance(value, tuple | list | Iterator):
        raise _mismatch(f"a tuple of {one.noun}", value, _tuple_instead_of(one, value))
    given = tuple(value)  # of a tuple, it is the tuple itself
    kept = [None] * len(given)
    for index, each in enumerate(given):
        try:
            kept[index] = one.check(each)
        except _WrongError as wrong:
            wrong.place = f"[{index}]{wrong.place}"
            raise
    return given if all(map(_is, kept, given)) else tuple(kept)


def _dict(one: _FieldType, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _mismatch(f"a dict from str to {one.noun}", value, "")
    kept: dict[str, Any] = {}
    for key, each in value.items():
        try:
            kept[_str(key)] = one.check(each)
        except _WrongError as wrong:
            wrong.place = f"[{shortened(repr(key))}]{wrong.place}"
            raise
    is_kept = type(value) is dict and all(map(_is, kept.values(), value.values()))
    return value if is_kept else kept


def _is(a: Any, b: Any) -> bool:
    return a is b


# --- messages -----------------------------------------------------------------------------------


def _unknown(struct: type[Struct], name: str) -> str:
    names = struct.__struct_fields__
    meant = get_close_matches(name, names, 1)
    hint = f"did you mean {meant[0]}?" if meant else f"it has {', '.join(names)}"
    return f"{struct.__name__} has no field {name[:SHOWN_MAX]!r}; {hint}"


def _mismatch(words: str, value: Any, instead: str) -> _WrongError:
    remedy = f"; write {instead}" if instead else ""
    return _WrongError(f"expected {words}, not {shown(value)}{remedy}")


def _instead_of(kind: type | None, value: Any) -> str:
    """Return code that gives a value the right type; "" if there is none."""
    if kind is not None and issubclass(kind, Enum):
        text = str(value).rpartition(".")[2].upper()
        likely = [each for each in kind if text == each.name or value == each.value]
        return " or ".join(f"{kind.__name__}.{each.name}" for each in likely or kind)
    known: Callable[[Any], str] | None = getattr(kind, "instead_of", None)
    return known(value) if known is not None else ""


def _tuple_instead_of(one: _FieldType, value: Any) -> str:
    if one.member is str and isinstance(value, Mapping):
        return 'tuple(f"{name}={value}" for name, value in ….items())'
    if one.member is None or not isinstance(value, one.member):
        instead = _instead_of(one.member, value)
        return f"({instead},)" if instead else ""
    code = shortened(repr(value)) if isinstance(value, str | int) else f"{type(value).__name__}(…)"
    return f"({code},) with its comma, which makes the tuple"


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOUaeiou" else "a"


def shortened(text: str) -> str:
    """Return a text for a message, cut where it is long."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
