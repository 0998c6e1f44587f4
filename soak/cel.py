"""Random and hostile expressions on devices: values, errors and costs, never an exception.

A case is one text, compiled in some way and, if it compiles, evaluated on a few devices. The laws:

1. compiling gives a Compiled and evaluating an Evaluated, and neither raises;
2. an Evaluated has a value or an error, and a cost;
3. generated code, for one device and for many, and the plan give the same value, cost and error;
4. no case takes more than SECONDS_MAX of the processor's time.

# seed: a valid expression, before it is damaged
"""

from __future__ import annotations

import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device import COST_LIMIT, CelFeatures, DeviceCompiler, ExpressionKind, Scope
from moorage.cel.device_values import device_variables
from moorage.cel.lang.attributes import ABSENT, Path
from moorage.cel.lang.equality import equal
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.program import Evaluated, Program
from soak import Outcome, Plan, Tally

LENGTH_MAX = 10 * 1024  # Validation compiles nothing longer.
SECONDS_MAX = 10.0
DAMAGES_MAX = 4

SEEDS: tuple[str, ...] = (
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "H200" && device.allowMultipleAllocations',
    'device.attributes["gpu.example.com"].?color.orValue("none") != "red"',
    'has(device.attributes["gpu.example.com"].cores) ? device.attributes["a"].b : 1 / 0 == 1',
    'device.attributes["gpu.example.com"].numaNodes.exists(n, n > 0 || n / 0 == 1)',
    'device.attributes["gpu.example.com"].nics.map(n, n.upperAscii()).join(",")',
    'device.attributes["gpu.example.com"].nics.filter(n, n.matches("^eth[0-9]+$")).sort()',
    'device.attributes["gpu.example.com"].numaNodes.includes(1)',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0',
    'device.capacity["gpu.example.com"].memory.add(quantity("1.5Gi")).asApproximateFloat()',
    'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("550.0.0"))',
    'semver("v1.2", true).compareTo(semver("1.2.3-rc.1+b")) + int("42")',
    'cel.bind(d, device.attributes["gpu.example.com"], d.ecc && d.cores > 100)',
    "[1, 2, 3].map(x, x > 1, x * x).sum() == 13",
    "lists.range(20).transformMap(i, v, i * v).exists(k, v, v == 4 || k == v)",
    "[3, 1, 2].sortBy(x, -x).slice(0, 2) + [[1], [2, 3]].flatten()",
    '[1, 2].transformMapEntry(i, v, {v: i})[2] in {1: 1, ?2: optional.none()}',
    'dyn([1, 2, 1].distinct()) == [1u, 2u] || sets.contains([1, 2], [dyn(2.0)])',
    '[dyn(1), dyn("a"), dyn(null), dyn(b"x"), dyn(1u), dyn({1: true})].exists_one(x, x == "a")',
    '"%s %d %.2f %x %b %e".format(["a", 1, 2.5, 255, true, 1e10])',
    'timestamp("2026-01-01T12:00:00Z") + duration("36h") > timestamp(0)',
    'timestamp("2026-03-29T01:30:00Z").getHours("Europe/Berlin") + duration("90m").getMinutes()',
    'url("https://[::1]:8443/a%20b?b=1&b=2").getQuery()["b"].size()',
    'cidr("10.0.0.0/8").containsIP(ip("10.1.2.3")) && ip("fe80::1").isLinkLocalUnicast()',
    'format.dns1123Label().validate("GPU").orValue([]).size() > 0',
    '"a,b,,c".split(",", 3).lastIndexOf("c") + "äöü".indexOf("ü")',
    'string(1.0e300 * 1e10) + string(bytes("\\xff")) + strings.quote("\\u0000")',
    "int(9e18) - -9223372036854775808 % 7",
    'optional.of(1).optMap(x, x + 1).or(optional.none()).value() == [1, 2][?5].orValue(2)',
    'type(device.attributes) == map && type(1) == int',
    'device.attributes.all(d, device.attributes[d].all(k, k != "x"))',
    'device.name.find("[0-9]+") + device.name.findAll("[a-z]", 2).join()',
)  # fmt: skip
TOKENS: tuple[str, ...] = (
    "device", ".", ".?", "[", "[?", "]", "(", ")", "{", "}", ",", ":", "?", "&&", "||", "!", "-",
    "+", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "true", "false", "null", "0", "1",
    "-1", "9223372036854775807", "18446744073709551615u", "1u", "0.0", "1e308", "-0.0", '""',
    '"a"', "'gpu.example.com'", 'r"\\d"', 'b"\\xff"', '"""x"""', "x", "i", "v", "dyn", "type",
    "int", "string", "size", "has", "all", "exists", "exists_one", "map", "filter", "attributes",
    "capacity", "driver", "cores", "model", "quantity", "semver", "optional", "none", "of", "cel",
    "bind", "lists", "range", "sets", "contains", "matches", "format", "sort", "sortBy", "join",
    "split", "replace", "duration", "timestamp", "includes", "\n", "\t", " ", "//", "\\", "`", "'",
    '"', "\u0000", "é", "😀", "\ud800", "if", "for", "google.protobuf.Any", "@in", "__result__",
)  # fmt: skip
# Expressions that are hard for a careless evaluator. Lengths are drawn when a case is made.
REGEXES: tuple[str, ...] = (
    "(a+)+$", "(a|aa)*b", "(.*)*x", "(a{1,30}){1,30}", "((a{0,100}){0,100}){0,10}", ".{1000}",
    "(?i)(?:a|b|ab)*c", "\\\\p{L}+\\\\pN*", "(x+x+)+y", "[^\\\\x00-\\\\x{10FFFF}]", "(((((a)))))",
    "(", "a**", "(?P<n>a)", "\\\\1", "a{1001}", "(?=a)", "[[:alpha:]]+",
)  # fmt: skip


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("cel", make_case, seconds_max=SECONDS_MAX)
    tally.run(plan)
    figures = {
        "cases": f"{tally.cases:,}",
        "do not compile": f"{tally.counts['refused']:,}",
        "evaluations with a value": f"{tally.counts['value']:,}",
        "evaluations with an error": f"{tally.counts['error']:,}",
        "of all, by generated code": f"{tally.counts['fast']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "memory at most": f"{_memory_mib():.0f} MiB",
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


def _memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- one case -----------------------------------------------------------------------------


class Case(NamedTuple):
    """A text, and how it is compiled."""

    expression: str
    kind: ExpressionKind
    scope: Scope
    features: CelFeatures
    cost_limit: int

    def outcomes(self) -> Counter[str]:
        """Return what became of the expression, or raise what must not be raised."""
        compiler = DeviceCompiler(self.features)
        compiled = compiler.compile(self.expression, kind=self.kind, scope=self.scope)
        counts: Counter[str] = Counter()
        if compiled.error is not None:
            assert compiled.error, "refused without a reason"
            counts["refused"] += 1
            return counts
        assert compiled.program is not None, "neither compiled nor refused"
        assert compiled.cost_max >= 0, compiled.cost_max
        devices = _devices()
        for variables in devices:
            outcome = compiled.evaluate_variables(variables, cost_limit=self.cost_limit)
            _check_outcome(outcome)
            counts["error" if outcome.error is not None else "value"] += 1
            counts["fast"] += _check_agreement(compiled.program, variables, self.cost_limit)
        _check_many(compiled.program, devices, self.cost_limit)
        return counts

    def __str__(self) -> str:
        text = self.expression
        shown = repr(text) if len(text) < 2000 else f"{text[:1000]!r}… ({len(text):,} characters)"
        return f"{self.kind}, {self.scope}, {self.features}, limit {self.cost_limit}: {shown}"


def _check_outcome(outcome: Evaluated) -> None:
    assert isinstance(outcome, Evaluated), outcome
    assert outcome.cost is not None, outcome
    assert outcome.cost >= 0, outcome
    if outcome.error is not None:
        assert outcome.value is None, outcome


def _check_agreement(program: Program, variables: dict[str, Any], cost_limit: int) -> bool:
    """Check generated code against the plan; return whether the code had the answer."""
    if program.fast is None:
        return False
    try:
        value, cost = program.fast(variables, cost_limit)
    except Exception:  # The plan would be run.
        return False
    planned = program.run_plan(variables, cost_limit=cost_limit)
    assert planned.error is None, f"code gives {value!r}, plan fails: {planned.error}"
    assert cost == planned.cost, f"costs: {cost}, plan {planned.cost}"
    assert _same(value, planned.value), f"code gives {value!r}, plan {planned.value!r}"
    return True


def _check_many(program: Program, devices: list[dict[str, Any]], cost_limit: int) -> None:
    """Check code for many devices, which reads columns, against code for one."""
    if program.many is None:
        return
    batch = [tuple(_cell(each, path) for path in program.many.paths) for each in devices]
    found = program.many.evaluate(batch, cost_limit)
    for variables, many_value, many_cost in zip(devices, *found, strict=True):
        try:
            assert program.fast is not None
            value, cost = program.fast(variables, cost_limit)
        except Exception:
            assert many_cost is None, f"code for one gives up, for many gives {many_value!r}"
            continue
        assert cost == many_cost, f"costs: {cost}, for many {many_cost}"
        assert _same(value, many_value), f"code gives {value!r}, for many {many_value!r}"


def _cell(value: Any, path: Path) -> Any:
    """Return the value at the end of a path, ABSENT if a key is missing."""
    for key in path:
        if key not in value:
            return ABSENT
        value = value[key]
    return value


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b) and not isinstance(a, list | tuple):
        return False
    try:
        return equal(a, b) or repr(a) == repr(b)  # NaN is not equal to itself.
    except EvalError:
        return repr(a) == repr(b)


def _devices() -> list[dict[str, Any]]:
    """Return the variables of a device with everything, one with nothing, and an odd one."""
    rich = {
        "model": DeviceAttribute(string_value="H200"),
        "cores": DeviceAttribute(int_value=132),
        "ecc": DeviceAttribute(bool_value=True),
        "driverVersion": DeviceAttribute(version_value="570.86.15"),
        "numaNodes": DeviceAttribute(int_values=(0, 1)),
        "nics": DeviceAttribute(string_values=("eth2", "eth0", "eth1")),
        "a/b": DeviceAttribute(bool_value=False),
    }
    odd = {
        "model": DeviceAttribute(string_value="é\U0001f600" * 30),
        "cores": DeviceAttribute(int_value=-(2**63)),
        "numaNodes": DeviceAttribute(version_values=("1.0.0", "2.0.0-a")),
        "nics": DeviceAttribute(string_values=()),
        "ecc": DeviceAttribute(string_value="true"),
    }
    memory = {"memory": DeviceCapacity(value=Quantity.parse("141Gi"))}
    return [
        device_variables("gpu.example.com", rich, memory, name="gpu-0"),
        device_variables("gpu.example.com", {}, {}, allow_multiple_allocations=True, name="b"),
        device_variables("gpu.example.com", odd, {}, name=""),
    ]


def is_refused(expression: str) -> bool:
    """Return whether an expression does not compile where everything is allowed."""
    compiler = DeviceCompiler(CelFeatures(list_attributes=True))
    return compiler.compile(expression, kind="raw").error is not None


# --- making cases -------------------------------------------------------------------------


def make_case(seed: int, number: int) -> Case:
    """Return a case of a seed."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
    expression = random.choice(_MAKERS)(random)[:LENGTH_MAX]
    kinds: tuple[ExpressionKind, ...] = ("selector", "derived", "raw", "raw")
    features = CelFeatures(random.random() < 0.8, random.random() < 0.7)
    limit = COST_LIMIT if random.random() < 0.8 else random.choice((0, 1, 5, 20, 100))
    return Case(expression, random.choice(kinds), random.choice(list(Scope)), features, limit)


def _random_tokens(random: Random) -> str:
    glue = random.choice(("", " "))
    return glue.join(random.choices(TOKENS, k=random.randint(1, random.choice((5, 20, 80)))))


def _intact_seed(random: Random) -> str:
    return random.choice(SEEDS)


def _combined_seeds(random: Random) -> str:
    first, second, third = (f"({random.choice(SEEDS)})" for _ in range(3))
    form = random.choice(
        ("{} && {} || {}", "{} ? {} : {}", "[{}, dyn({}), {}]", "dyn({}) == dyn({}) || {}",
         "[dyn({})].exists(x, x == dyn({}) || {})", "{{{}: dyn({}), 'k': dyn({})}}",
         "cel.bind(y, {}, dyn([y, y]) == dyn({})) && {}", "[1, 2].map(x, dyn({}))[0] == {} || {}")
    )  # fmt: skip
    return form.format(first, second, third)


_WORD = re.compile(r"\w+|\s+|\"[^\"]*\"|[^\w\s]")


def _mutated_seed(random: Random) -> str:
    words = _WORD.findall(random.choice(SEEDS))
    others = _WORD.findall(random.choice(SEEDS))
    for _ in range(random.randint(1, DAMAGES_MAX)):
        at = random.randrange(len(words))
        match random.randrange(6):
            case 0:
                words[at : at + 1] = []
            case 1:
                words[at] = random.choice(TOKENS)
            case 2:
                words.insert(at, random.choice(TOKENS))
            case 3:
                words[at] = random.choice(others)
            case 4:
                other = random.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case _:
                words[at : at + 3] = words[at : at + 3] * 2
        words = words or ["1"]
    return "".join(words)


def _deep(random: Random) -> str:
    depth = random.choice((10, 60, 120, 249, 250, 251, 1000, 3000))
    before, core, after = random.choice(
        (("(", "1", ")"), ("[", "1", "]"), ("{1: ", "1", "}"), ("!", "true", ""), ("-", "1", ""),
         ("size([", "1", "])"), ("true ? ", "1", " : 2"), ("1 + ", "1", ""), ("true && ", "x", ""),
         ("[1].map(x, ", "x", ")"), ("optional.of(", "1", ")"), ("dyn(", "1", ")"),
         ("'a' + ", "'b'", ""), ("", "device", ".attributes"), ("", "[1]", "[0]"),
         ("cel.bind(x, ", "1", ", [x, x])"), ("(", "1", ""), ("", "1", "]"), ("device[", "1", ""))
    )  # fmt: skip
    return f"{before * depth}{core}{after * depth}"


def _huge(random: Random) -> str:
    many = random.choice((10, 100, 100, 1000, 2000))
    return random.choice(
        (
            lambda: f"'{'é' * many}'.size() + '{'a' * many}'.lastIndexOf('b')",
            lambda: f"{'9' * many} + 1",
            lambda: f"1.{'0' * many}1e{many}",
            lambda: f"[{', '.join(map(str, range(many)))}].sort().distinct().sum()",
            lambda: f"{{{', '.join(f'{n}: {n}' for n in range(many))}}}.all(k, k >= 0)",
            lambda: f"quantity('{'1' * many}').add(quantity('1e{many}'))",
            lambda: f"semver('1.2.{'3' * many}-{'a.' * many}b')",
            lambda: f"lists.range({many * 10}).map(x, x * x).filter(x, x % 2 == 0).size()",
            lambda: f"lists.range({many}).map(x, lists.range({many})).flatten().sort().size()",
            lambda: f"lists.range({many}).map(x, string(x)).join('{'-' * 1000}').split('-').size()",
            lambda: (
                f"'{'a' * 1000}'.replace('', '{'b' * many}').replace('b', '{'c' * 1000}').size()"
            ),
            lambda: f"'%.{many}f %{many}d'.format([1.5, 2])",
            lambda: f"sets.equivalent(lists.range({many}), lists.range({many}).reverse())",
            lambda: f"lists.range({many}).map(x, [x, 1.5]).distinct().size()",
            lambda: f"duration('{'1h' * many}') + duration('{'9' * many}s')",
            lambda: f"url('http://a/?{'a=1&' * many}').getQuery().size()",
            lambda: f"ip('{'1:' * many}:') == cidr('{'0' * many}/8')",
            lambda: f"lists.range({many}).sortBy(x, -x % 7).sum()",
            lambda: _doubled("[1]", random.randint(5, 60), "+"),
            lambda: _doubled("'ab'", random.randint(5, 60), "+"),
        )
    )()


def _doubled(start: str, times: int, sign: str) -> str:
    """Return an expression whose value doubles with every line."""
    text = f"size(x{times})"
    for number in range(times, 0, -1):
        text = f"cel.bind(x{number}, x{number - 1} {sign} x{number - 1}, {text})"
    return f"cel.bind(x0, {start}, {text})"


def _hostile_regex(random: Random) -> str:
    pattern = random.choice(REGEXES) * random.choice((1, 1, 2, 20))
    text = random.choice(("a", "ab", "x", "é")) * random.choice((1, 30, 2000))
    form = random.choice(
        ("'{1}'.matches('{0}')", "'{1}'.find('{0}')", "'{1}'.findAll('{0}').size()",
         "['{1}', '{1}b'].all(t, t.matches('{0}'))", "dyn('{1}').matches(device.driver + '{0}')")
    )  # fmt: skip
    return form.format(pattern, text)


_MAKERS: tuple[Callable[[Random], str], ...] = (
    _random_tokens, _random_tokens, _intact_seed, _combined_seeds, _combined_seeds, _mutated_seed,
    _mutated_seed, _mutated_seed, _mutated_seed, _deep, _huge, _hostile_regex,
)  # fmt: skip
