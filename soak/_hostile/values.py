"""Hostile values: what has ever ended a program, left a folder or fooled a reader.

Paths outside never leave the folder of the case: `..` climbs at most as many levels as the folder
has, and absolute paths name a place in it. So a broken law is seen, and nothing is lost.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
LEVELS = 5  # how far `..` climbs

_PATHS = (
    "..", "../", ".", "./.", "../x", "../../x", "../" * LEVELS + "canary", "a/../../b", "a/..",
    "..\\..\\x", "%2e%2e%2fx", "..%2f..%2fx", "....//x", "a/b", "a//b", "~", "~root", "a\x00/../b",
    "..\x00", "-rf", "--help", "-", "con", "a:b", "*", "?", "[a", "a/", "/", "//",
)  # fmt: skip
_CONTROLS = (
    "a\nb", "a\r\nX-Evil: 1", "\x1b[2J\x1b]0;x\x07", "\x1b[31mred", "\u202eevil", "\u2066x",
    "\ufeffx",
    "\ud800", "x\udfffy", "\u0000", "x\x00y", "\u2028", "\x7f", "\x85", "\u0301", "\U0001d54f", "ﬁ",
    "İ", "é", "e\u0301", "\u200b", "\ufffe", "\t", "\b" * 30, "\r",
)  # fmt: skip
_PATTERNS = (
    "%s%n%d", "%(x)s", "{0.__init__}", "{}", "{x!r}", "${HOME}", "$(HOME)", "$(X", "$$(X)", "`id`",
    "; id", "| id", "&& id", "'\"", "<script>", "{{.}}", "__init__", "__proto__", "constructor",
    "=cmd|' /C x'!A0", "' OR 1=1 --", "\\", "\\u0000", "%00", "&amp;", "$ref", "(a+)+$", "\\1",
)  # fmt: skip
_EXPRESSIONS = (
    "true", "device.driver == 'x'", "1/0 == 1", "(" * 200, "device." * 60 + "x", "dyn(1) + 'x'",
    "device.attributes['x'].y.matches('(a+)+$')", "[1,2,3].all(x, [1,2,3].all(y, x == y))",
    "quantity('1e999999999') > quantity('1')", "semver('1.2.3').isLessThan(semver('x'))",
    "'" + "a" * 5000 + "' == ''", "[" * 60 + "]" * 60 + " == []", "cel.bind(x, x, x)",
    "device.attributes.map(k, k).size() == 0", "9223372036854775807 + 1 == 0", "'\\ud800' == ''",
    "device.capacity['x'].y == 1", "has(device.driver.x)", "x", "import os", "__import__('os')",
    "[0,1,2,3,4,5,6,7,8,9].all(a,[0,1,2,3,4,5,6,7,8,9].all(b,[0,1,2,3,4].all(c,a+b+c>=0)))",
)  # fmt: skip
_NAMES = (
    "", " ", "a", "b", "a b", "A_b", "a.", "-a", ".a", "a..b", "xn--a", "0", "null", "true", "1e3",
    "0x10", "x" * 63, "x" * 64, "x" * 253, "x" * 254, "a.b/c", "a/b/c", "kubernetes.io/x",
    "default", "system:masters", "system:node:evil", "kube-system", "a=b", "a,b", "a!b", "@", "#",
    "x.example.com",
)  # fmt: skip
_LONG = ("x" * 11_000, "é" * 5_000, "a," * 6_000, "../" * LEVELS + "x" * 4_000, "\n" * 3_000)

QUANTITIES = (
    "1", "0", "-1", "1e18", "9223372036854775807", "9223372036854775808", "1e999999999", "1Ki",
    "0.000000000000000001", "1E", "1Ei", "8Ei", "16Ei", "1k", "1.", ".1", "+1", "1m", "1n", "0.1n",
    "1e-400", "١", "1_000", "Inf", "NaN", "1e3e3", "0x1", "--1", "1" * 400, "0." + "0" * 300 + "1",
    "1e2147483648", "1 Gi", "1gi", "", "100m", "5e-1",
)  # fmt: skip
TIMES = (
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z", "2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00.999999999999Z",
    "2026-01-01", "now", "2026-01-01t00:00:00z", "1677-09-21T00:12:43Z", "2262-04-12T00:00:00Z",
    "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00.000001Z", "",
)  # fmt: skip
DURATIONS = (
    "1s", "-1s", "2562047h47m16.854775807s", "2562048h", "1ns", "1e3s", "1h1h", "", "999999999999h",
)  # fmt: skip
INTEGERS: tuple[Any, ...] = (
    0, 1, -1, 2, 65535, 65536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**53 - 1, 2**53,
    2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**18, 10**30, -(10**18), 1.0, 1.5,
    1e300, -0.0, 4294967295, 9_223_372_036, 253_402_300_800,
)  # fmt: skip
WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 1.5, "", "x", "0", {}, [], {"": None}, {"a": 1}, [[]], [None],
    ["x"], ["x", "x"], {"value": "1"}, [{}], {"a": {"a": {"a": None}}}, float("nan"), float("inf"),
)  # fmt: skip
# What a container of these campaigns runs: nothing that does harm.
COMMANDS: tuple[list[str], ...] = (
    ["true"], ["false"], ["sleep", "0.05"], ["sh", "-c", "exit 3"], ["echo", "x"], ["nowhere"],
    ["sh", "-c", "printf '\\033[2J%s' \"$X\""], ["sleep", "30"], ["sh", "-c",
    "trap '' TERM; sleep 5"],
)  # fmt: skip


def pick(random: Random, values: tuple[T, ...] | list[T]) -> T:
    """Return one of the values: as `choice` does, and cheaper."""
    return values[int(random.random() * len(values))]


def copied(value: Any) -> Any:
    """Return a copy of a tree, which can be changed."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


class Lexicon:
    """The hostile strings of a case, whose folder has a place for what must not be touched."""

    def __init__(self, outside: str, free: str) -> None:
        self.paths = (*_PATHS, outside, f"{outside}/x", f"{outside}/../x", f"file://{outside}")
        self.free = (free, f"{free}/x", f"{free}/../{free.rpartition('/')[2]}/y", "relative", "")
        self._groups = (
            (*self.paths, *_CONTROLS),
            (*_PATTERNS, *_CONTROLS),
            (*_NAMES, *self.paths),
            _EXPRESSIONS,
            (*QUANTITIES, *TIMES, *DURATIONS),
        )

    def string(self, random: Random) -> str:
        """Return a hostile string; now and then a long one."""
        chance = random.random()
        if chance < 0.03:
            return pick(random, _LONG)
        if chance < 0.04:
            return "x" * pick(random, (70_000, 270_000))
        return pick(random, pick(random, self._groups))

    def of_type(self, random: Random, scalar: str) -> Any:
        """Return a hostile value of a scalar type."""
        match scalar:
            case "int32" | "int64":
                return pick(random, INTEGERS)
            case "bool":
                return random.random() < 0.5
            case "quantity":
                return pick(random, QUANTITIES)
            case "time" | "microtime":
                return pick(random, TIMES)
            case "int-or-string":
                is_number = random.random() < 0.5
                return (
                    pick(random, INTEGERS) if is_number else pick(random, ("50%", "-1%", "x", "%"))
                )
            case "bytes":
                return pick(random, ("", "eA==", "x", "eA", "=" * 9, "\n", "e" * 4000))
            case "json":
                return copied(pick(random, WRONG))
            case "strings":
                return [self.string(random)]
        return self.string(random)
