"""Taints as kubectl writes them: TARGET=KEY[=VALUE]:EFFECT, of nodes and of devices."""

from __future__ import annotations

import re

from moorage.api import names
from moorage.api.catalogue import CATALOGUE
from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    API_VERSION,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from moorage.insight.errors import ChangeTextError, UnreadError
from moorage.insight.messages import similar_hint
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

ANY = "*"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
LENGTH_MAX = 2000

_TAINT = r"(?P<key>[^=:]+)(?:=(?P<value>[^=:]*))?:(?P<effect>[A-Za-z]+)"
_NODE = re.compile(rf"(?P<node>[^=]+)={_TAINT}")
_DEVICE = re.compile(rf"(?P<driver>[^/=]+)/(?P<pool>[^=]+)/(?P<device>[^/=]+)={_TAINT}")
_KIND = CATALOGUE.find(API_VERSION, "DeviceTaintRule")


def node_taint(text: str) -> tuple[str, Taint]:
    """Return the node and its taint, or raise ChangeTextError."""
    found = _NODE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise ChangeTextError("must be of the form NODE=KEY[=VALUE]:EFFECT")
    key, value, effect = found["key"], found["value"] or "", found["effect"]
    if effect not in EFFECTS:
        raise ChangeTextError(f"effect {effect}: must be one of {', '.join(EFFECTS)}")
    for wrong in (*names.label_name(key), *names.label_value(value)):
        raise ChangeTextError(wrong)
    return found["node"], Taint(key=key, value=value, effect=effect)


def device_taint(text: str, name: str, context: Context) -> DeviceTaintRule:
    """Return a rule of this name with the taint, or raise ChangeTextError.

    The device may be written as `moor devices -o name` prints it: `device/DRIVER/POOL/DEVICE`.
    """
    text = text.removeprefix("device/")
    found = _DEVICE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise ChangeTextError("must be of the form DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT")
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
    admission = before_create(rule, _KIND, context)
    if admission.stored is None:
        wrong = admission.refused or "; ".join(map(str, admission.errors))
        raise ChangeTextError(wrong)
    stored: DeviceTaintRule = admission.stored
    return stored


def check_meant(rule: DeviceTaintRule, known: Snapshot) -> None:
    """Raise ChangeTextError for a rule that means no device that is there."""
    selector = rule.spec.device_selector
    assert selector is not None
    wanted = (selector.driver, selector.pool, selector.device)
    others: list[str] = []
    for each in known.slices:
        for device in each.spec.devices or ():
            parts = (each.spec.driver, each.spec.pool.name, device.name)
            if all(want in (None, part) for want, part in zip(wanted, parts, strict=True)):
                return
            others.append("/".join(parts))
    name = "/".join(ANY if part is None else part for part in wanted)
    if hidden := known.unread.hidden(("ResourceSlice",)):
        raise UnreadError(hidden, f"whether there is a device {name}")
    raise ChangeTextError(f"there is no device {name}{similar_hint(name, others)}")
