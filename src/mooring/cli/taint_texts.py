"""Taints on the command line: what is tainted, `=`, and the taint as kubectl writes it.

node_taint   = node "=" taint
device_taint = driver "/" pool "/" device "=" taint     "*" stands for whatever
taint        = key [ "=" value ] ":" effect
"""

from __future__ import annotations

import re

from mooring.api import names
from mooring.api.catalogue import CATALOGUE
from mooring.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    API_VERSION,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from mooring.validation.admission import admit_create
from mooring.validation.context import Context

ANY = "*"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
LENGTH_MAX = 2000

_TAINT = r"(?P<key>[^=:]+)(?:=(?P<value>[^=:]*))?:(?P<effect>[A-Za-z]+)"
_NODE = re.compile(rf"(?P<node>[^=]+)={_TAINT}")
_DEVICE = re.compile(rf"(?P<driver>[^/=]+)/(?P<pool>[^=]+)/(?P<device>[^/=]+)={_TAINT}")
_KIND = CATALOGUE.find(API_VERSION, "DeviceTaintRule")


class TaintTextError(ValueError):
    """A text that is no taint."""


def node_taint(text: str) -> tuple[str, Taint]:
    """Return the node and its taint, or raise TaintTextError."""
    found = _NODE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise TaintTextError("must be of the form NODE=KEY[=VALUE]:EFFECT")
    key, value, effect = found["key"], found["value"] or "", found["effect"]
    if effect not in EFFECTS:
        raise TaintTextError(f"effect {effect}: must be one of {', '.join(EFFECTS)}")
    for wrong in (*names.label_name(key), *names.label_value(value)):
        raise TaintTextError(wrong)
    return found["node"], Taint(key=key, value=value, effect=effect)


def device_taint(text: str, name: str, context: Context) -> DeviceTaintRule:
    """Return a rule of this name with the taint, or raise TaintTextError."""
    found = _DEVICE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise TaintTextError("must be of the form DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT")
    driver, pool, device = (
        None if found[part] == ANY else found[part] for part in ("driver", "pool", "device")
    )
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=driver, pool=pool, device=device),
            taint=DeviceTaint(key=found["key"], value=found["value"] or "", effect=found["effect"]),
        ),
    )
    admission = admit_create(rule, _KIND, context)
    if admission.stored is None:
        wrong = admission.refused or "; ".join(map(str, admission.errors))
        raise TaintTextError(wrong)
    stored: DeviceTaintRule = admission.stored
    return stored
