"""Random definitions of custom resources, and objects that nearly obey them.

Definitions are mostly right: structural schemas with every keyword and format, and rules in CEL
that fit the type of what they judge. Objects are made from a schema, so that most of them pass it.

    # rule: a CEL expression of x-kubernetes-validations; `self` is the value
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from moorage.validation.custom_resources.formats import STRING_FORMATS
from soak._damage import ODD_VALUES

Tree = dict[str, Any]
Maker = Callable[[Random, int], Tree]

GROUP: Final = "fuzz.example.com"
VERSIONS: Final = ("v1", "v1beta1")
DEPTH_MAX: Final = 3
ODD: Final = 0.003  # a definition has many places, and one odd value is enough to refuse it
FIELDS: Final = ("a", "b", "namespace", "x-y", "replicas", "__in__")
WORDS: Final = (
    "", "a", "abc", "a.b", "-", "10Gi", "1h", "2026-01-01T00:00:00Z", "2026-01-01", "10.0.0.1",
    "10.0.0.0/8", "fe80::1", "https://example.com/x?y=1", "example.com", "host-1.example.com",
    "a@example.com", "aGVsbG8=", "#ffffff", "01:23:45:67:89:ab", "1.2.3", "é", "x" * 300,
    "978-0321751041", "4111 1111 1111 1111", "rgb(1,2,3)", "A987FBC9-4BED-3078-CF07-9141BA07C9F3",
)  # fmt: skip
IN_CEL: Final = {"x-y": "x__dash__y", "namespace": "__namespace__", "__in__": "__in__"}
PATTERNS: Final = ("^[a-z]*$", "a|b", "(a*)*$", r"^\p{L}+$", ".{0,10}", "^(?i)x", "")
COMMON_RULES: Final = (
    "self == oldSelf", "self == self", "type(self) == string", "dyn(self) != 1", "true",
    "1 / 0 > 0", "[self, self].all(x, x == self)", "string(self) != ''",
    "oldSelf == null || self == oldSelf",
)  # fmt: skip
RULES: Final[dict[str, tuple[str, ...]]] = {
    "string": (
        "self.size() < 300", "self.matches('^[a-z]*')", "self.startsWith('a') || self != 'a'",
        "!format.dns1123Label().validate(self).hasValue()", "isURL(self) || self != ''",
        "!isQuantity(self) || quantity(self).isGreaterThan(quantity('1'))",
        "self.find('a+') != 'b'", "!isIP(self) || ip(self).family() == 4",
        "!isCIDR(self) || cidr(self).prefixLength() > 1",
        "self.split('.').size() < 9", "self.lowerAscii() != 'q'", "self.replace('a', 'b') != 'z'",
        "url(self).getHost() == 'example.com'", "duration(self) > duration('1s')", "int(self) > 0",
        "'%s %d'.format([self, self.size()]) != ''", "self.charAt(400) == 'a'",
        "self in ['a', self]",
        "!isSemver(self) || semver(self).major() == 1", "base64.encode(bytes(self)) != 'x'",
    ),
    "integer": (
        "self > -2", "self / 0 == 1", "self % 2 == 0 || true", "self + 9223372036854775807 > 0",
        "[self].sum() == self", "self >= oldSelf", "uint(self) < 5u", "sets.contains([1], [self])",
        "self.replicas == 1",
    ),
    "number": ("self > 0.0", "self / 0.0 > 1.0", "int(self) < 5", "self == 1.0 || self != 1.0"),
    "boolean": ("self || !self", "self ? true : oldSelf"),
    "array": (
        "self.all(x, x == x)", "self.exists_one(x, x == self[0])", "self.map(x, x).size() >= 0",
        "self.isSorted() || true", "self[100] == 1", "self.indexOf('a') < 10", "size(self) < 9",
        "self.all(x, self.exists(y, x == y))", "self.distinct().size() == self.size()",
        "!oldSelf.exists(x, !(x in self))", "self.transformList(i, x, i).sum() >= 0",
    ),
    "map": (
        "self.all(k, k != 'q')", "size(self) < 9", "self.exists(k, v, dyn(v) == k) || true",
        "oldSelf == self", "self.map(k, k).size() > -1", "'a' in self || true",
        "self['a'] == self['a']",
    ),
    "object": (
        "has(self.{0})", "!has(self.{0}) || self.{0} == self.{0}",
        "has(oldSelf.{0}) == has(self.{0})",
        "self.?{0}.hasValue()", "self.{0} == oldSelf.{0}", "type(self.{0}) != string || true",
        "[self.{0}].all(x, x == x)",
    ),
}  # fmt: skip
MESSAGES: Final = ("'no'", "string(self)", "'%s'.format([self])", "self", "''")
REASONS: Final = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueDuplicate")


class CustomKind(NamedTuple):
    """A kind whose definition changes while its objects are written."""

    name: str
    plural: str
    namespaced: bool


KINDS: Final = (
    CustomKind("Widget", "widgets", namespaced=True),
    CustomKind("Gadget", "gadgets", namespaced=True),
    CustomKind("Rack", "racks", namespaced=False),
)


def definition(random: Random, kind: CustomKind) -> Tree:
    """Return the definition of a kind, which is mostly right."""
    stored = random.choice(VERSIONS)
    versions = [_version(random, name, is_stored=name == stored) for name in VERSIONS]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "listKind": f"{kind.name}List",
                "shortNames": [kind.plural[:3]],
                "categories": ["all", "fuzz"],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "preserveUnknownFields": False,
            "versions": versions,
        },
    }


def _version(random: Random, name: str, *, is_stored: bool) -> Tree:
    properties = {"spec": schema(random), "status": schema(random)}
    whole: Tree = {"type": "object", "properties": properties}
    if random.random() < 0.3:
        whole["x-kubernetes-validations"] = [_rule(random, whole)]
    version: Tree = {
        "name": name,
        "served": is_stored or random.random() < 0.9,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": whole},
    }
    if random.random() < 0.6:
        version["subresources"] = _subresources(random)
    if random.random() < 0.5:
        version["additionalPrinterColumns"] = [_column(random) for _ in range(random.randint(1, 3))]
    if random.random() < 0.3:
        fields = properties["spec"].get("properties", {})
        plain = [name for name, each in fields.items() if each.get("type") in ("string", "boolean")]
        paths = [f".spec.{name}" for name in plain if name.isalpha()]
        if paths:
            version["selectableFields"] = [{"jsonPath": _usual(random, paths, ".x")}]
    return version


def _subresources(random: Random) -> Tree:
    found: Tree = {"status": {}}
    if random.random() < 0.6:
        found["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        }
        if random.random() < 0.5:
            found["scale"]["labelSelectorPath"] = ".status.a"
    return found


def _column(random: Random) -> Tree:
    column: Tree = {
        "name": _usual(random, ("A", "B", "Age"), ""),
        "type": _usual(random, ("string", "integer", "number", "boolean", "date"), "odd"),
        "jsonPath": _usual(
            random,
            (".spec.a", ".spec['a']", ".spec.a[0]", ".spec.*", ".metadata.creationTimestamp"),
            *("{", ""),
        ),
    }
    if random.random() < 0.3:
        column |= {"format": _usual(random, ("date-time", "int32"), "name"), "priority": 1}
    return column


def _usual(random: Random, choices: Sequence[Any], *odd: Any) -> Any:
    """Return one of the choices; now and then an odd value, which Kubernetes refuses."""
    return random.choice(odd if random.random() < ODD else choices)


# --- schemas --------------------------------------------------------------------------------------


def schema(random: Random, depth: int = 0) -> Tree:
    """Return a structural schema; now and then one that Kubernetes refuses."""
    leaves = ("string", "string", "integer", "number", "boolean", "any")
    kinds = (
        leaves if depth >= DEPTH_MAX else (*leaves, "object", "object", "object", "array", "map")
    )
    made = random.choice(kinds if depth else ("object", "object", "object", "map"))
    tree = _MAKERS[made](random, depth)
    if random.random() < 0.15:
        tree["nullable"] = True
    if random.random() < 0.05:
        tree["default"] = value(random, tree)
    if random.random() < 0.1 and made != "any":
        word = random.choice(("allOf", "anyOf", "oneOf", "not"))
        inner = _constraints(random, made)
        tree[word] = inner if word == "not" else [inner, _constraints(random, made)]
    if random.random() < 0.1 and "type" in tree:
        tree["x-kubernetes-validations"] = [_rule(random, tree)]
    if random.random() < ODD:
        tree[random.choice(("$ref", "deprecated", "patternProperties", "uniqueItems"))] = True
    return tree


def _constraints(random: Random, made: str) -> Tree:
    return dict(random.choice(_CONSTRAINTS.get(made, ({},))))


_CONSTRAINTS: Final[dict[str, tuple[Tree, ...]]] = {
    "string": ({"minLength": 1}, {"maxLength": 5}, {"pattern": "a"}, {"enum": ["a"]}),
    "integer": ({"minimum": 0}, {"maximum": 9, "exclusiveMaximum": True}),
    "number": ({"minimum": 0.5}, {"multipleOf": 2}),
    "object": ({"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}),
}


def _string(random: Random, _: int) -> Tree:
    tree: Tree = {"type": "string"}
    if random.random() < 0.6:
        tree["format"] = random.choice(STRING_FORMATS)
    if random.random() < 0.2:
        tree["pattern"] = random.choice(PATTERNS)
    if random.random() < 0.9:
        tree["maxLength"] = random.choice((5, 64, 253))
    if random.random() < 0.1:
        tree["enum"] = random.sample(WORDS, 3)
    return tree


def _number(kind: str, formats: tuple[str, ...]) -> Maker:
    def make(random: Random, _: int) -> Tree:
        tree: Tree = {"type": kind}
        if random.random() < 0.3:
            tree["format"] = random.choice(formats)
        if random.random() < 0.3:
            tree["minimum"] = random.choice((0, -1, 1.5, 2**53))
        if random.random() < 0.2:
            tree["multipleOf"] = _usual(random, (1, 2, 0.1), 0)
        return tree

    return make


def _boolean(_: Random, __: int) -> Tree:
    return {"type": "boolean"}


def _any(random: Random, _: int) -> Tree:
    trees: tuple[Tree, ...] = (
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    return dict(random.choice(trees))


def _object(random: Random, depth: int) -> Tree:
    names = random.sample(FIELDS, random.randint(1, 4))
    tree: Tree = {
        "type": "object",
        "properties": {name: schema(random, depth + 1) for name in names},
    }
    if "replicas" in names and random.random() < 0.7:
        tree["properties"]["replicas"] = {"type": "integer"}
    if random.random() < 0.2:
        tree["required"] = random.sample(names, 1)
    if random.random() < 0.1:
        tree["x-kubernetes-map-type"] = _usual(random, ("atomic", "granular"), "odd")
    return tree


def _map(random: Random, depth: int) -> Tree:
    tree: Tree = {"type": "object", "additionalProperties": schema(random, depth + 1)}
    if random.random() < 0.9:
        tree["maxProperties"] = random.choice((3, 9))
    return tree


def _array(random: Random, depth: int) -> Tree:
    tree: Tree = {"type": "array", "items": schema(random, depth + 1)}
    if random.random() < 0.9:
        tree["maxItems"] = random.choice((3, 10))
    inner = tree["items"]
    list_types = ["", "atomic"]
    if inner.get("type") in ("string", "integer", "boolean") and not inner.get("nullable"):
        list_types.append("set")
    keys = [name for name, each in inner.get("properties", {}).items() if _is_key(each)]
    if keys and not inner.get("nullable"):
        list_types += ["map"] * 3
    list_type = _usual(random, list_types, "set", "map")
    if list_type:
        tree["x-kubernetes-list-type"] = list_type
    if list_type == "map" and keys:
        tree["x-kubernetes-list-map-keys"] = random.sample(keys, 1)
        inner["required"] = tree["x-kubernetes-list-map-keys"]
    return tree


def _is_key(of: Tree) -> bool:
    return of.get("type") in ("string", "integer", "boolean") and not of.get("nullable")


_MAKERS: Final[dict[str, Maker]] = {
    "string": _string,
    "integer": _number("integer", ("int32", "int64", "odd")),
    "number": _number("number", ("float", "double")),
    "boolean": _boolean,
    "any": _any,
    "object": _object,
    "map": _map,
    "array": _array,
}


def _rule(random: Random, of: Tree) -> Tree:
    """Return a rule on values of a schema; most of those in the tables fit its type."""
    type_ = "map" if "additionalProperties" in of else of.get("type", "")
    rules = RULES.get(type_, COMMON_RULES) if random.random() < 0.9 else COMMON_RULES
    rule = random.choice(rules)
    if fields := list(of.get("properties", {})):
        name = random.choice(fields)
        rule = rule.format(IN_CEL.get(name, name))
    tree: Tree = {"rule": rule}
    if random.random() < 0.2 and type_ == "string":
        tree["messageExpression"] = _usual(random, MESSAGES, "1", "'a' + ")
    if random.random() < 0.3:
        tree["message"] = _usual(random, ("must fit",), "two\nlines", "")
    if random.random() < 0.2:
        tree["reason"] = _usual(random, REASONS, "Odd")
    if "oldSelf" in rule and random.random() < 0.2:
        tree["optionalOldSelf"] = random.choice((True, False))
    if (names := list(of.get("properties", {}))) and random.random() < 0.2:
        tree["fieldPath"] = _usual(random, [f"['{name}']" for name in names], ".none", "a")
    return tree


# --- objects --------------------------------------------------------------------------------------


def custom_object(random: Random, kind: CustomKind, of: Tree, name: str, namespace: str) -> Tree:
    """Return an object of a kind that nearly obeys a definition of it."""
    version = random.choice(of["spec"]["versions"])
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    metadata: Tree = {"name": name, "labels": {"a": random.choice(("b", "c"))}}
    if kind.namespaced:
        metadata["namespace"] = namespace
    return {
        "apiVersion": f"{GROUP}/{version['name']}",
        "kind": kind.name,
        "metadata": metadata,
        "spec": value(random, properties["spec"]),
        "status": value(random, properties["status"]),
    }


def value(random: Random, of: Tree) -> Any:
    """Return a value that mostly obeys a schema."""
    if random.random() < 0.04:
        return random.choice(ODD_VALUES)
    if "enum" in of and random.random() < 0.8:
        return random.choice(of["enum"])
    match of.get("type"):
        case "string":
            return random.choice(WORDS)
        case "integer":
            return random.choice((0, 1, 2, -1, 2**31, 2**63 - 1))
        case "number":
            return random.choice((0, 1.5, -0.0, 1e300, 3))
        case "boolean":
            return random.random() < 0.5
        case "array":
            return [value(random, of["items"]) for _ in range(random.randint(0, 4))]
        case "object":
            return _object_value(random, of)
    return random.choice((1, "1", "10%", {"a": 1}, [1]))


def _object_value(random: Random, of: Tree) -> Tree:
    if isinstance(inner := of.get("additionalProperties"), dict):
        return {key: value(random, inner) for key in random.sample(WORDS[:8], random.randint(0, 3))}
    properties = of.get("properties", {})
    found = {
        name: value(random, each) for name, each in properties.items() if random.random() < 0.8
    }
    if of.get("x-kubernetes-embedded-resource"):
        found |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    if random.random() < 0.05:
        found["unknown"] = random.choice(ODD_VALUES)
    return found
