"""Recorded expressions about devices, and the environments that they were compiled in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from moorage.cel.lang import macros
from moorage.cel.lang.ast import CheckedAST
from moorage.cel.lang.checker import check
from moorage.cel.lang.environment import Environment
from moorage.cel.lang.library import formatting, optionals, standard, strings
from moorage.cel.lang.library.lists import library as lists_library
from moorage.cel.lang.library.lists import sets_library
from moorage.cel.lang.parser import parse
from moorage.cel.lang.types import ANY, BOOL, DURATION, DYN, STRING, TIMESTAMP, Type, map_of, struct
from moorage.cel.library import kubernetes_libraries, with_equality_costs
from moorage.cel.library.quantity import QUANTITY
from tests.corpus import corpus

DEVICE = "kubernetes.DRADevice"


def cases() -> Iterator[dict[str, Any]]:
    """Yield the recorded cases, each as it was written."""
    with corpus("cel", "public.jsonl").open() as lines:
        yield from map(json.loads, lines)


def case_environment(case: dict[str, Any]) -> Environment:
    """Return the environment of a case."""
    features, is_stored = case["features"], case["env"] == "stored"
    return device_environment(
        consumable=is_stored or features["DRAConsumableCapacity"],
        lists=is_stored or features["DRAListTypeAttributes"],
    )


@cache
def checked(expression: str, environment: Environment) -> CheckedAST:
    """Return a checked expression; every case is checked once for all tests."""
    return check(parse(expression, environment.macros), environment)


@cache
def device_environment(*, consumable: bool, lists: bool) -> Environment:
    """Return an environment with all libraries."""
    fields: dict[str, Type] = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN if lists else ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    maps = {f"{DEVICE}.{name}": fields[name] for name in ("attributes", "capacity")}
    if consumable:
        fields["allowMultipleAllocations"] = BOOL
    return Environment(
        [
            with_equality_costs(standard.library()),
            *kubernetes_libraries(with_includes=lists),
            *(optionals.library(), strings.library(), formatting.library(), sets_library()),
            *(macros.two_variable_library(), lists_library(), macros.bindings_library()),
        ],
        variables={"device": struct(DEVICE)},
        structs={DEVICE: fields},
        type_names={"duration": DURATION, "timestamp": TIMESTAMP, **maps},
    )
