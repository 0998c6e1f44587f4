"""Parse the argument of `moor run --claim` into the requests of a claim.

    gpu=2,nic=1        two GPUs and a network interface
    cpu=4,memory=8Gi   an amount of a shared device
    gpu.nvidia.com=1   a DeviceClass by its name

A short name refers to a DeviceClass of the cluster. An amount is a number of devices, or a capacity
if the devices are shareable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceClass, ResourceSlice
from moorage.kit.similar_names import nearest

DEVICES_MAX = 32  # of one claim
REQUESTS_MAX = 32
STANDARD_DOMAIN = "resource.kubernetes.io"
NAME_MAX = 60  # characters, so that a number can follow
_STRANGE = re.compile(r"[^a-z0-9]+")


class ClaimRequestError(Exception):
    """Something that cannot be requested, with the reason and what can be."""


class NoClassError(ClaimRequestError):
    """The DeviceClasses of a short name do not exist: the driver is not running, or unknown."""

    def __init__(self, word: str, classes: tuple[str, ...], known: Sequence[str]) -> None:
        missing = " or ".join(classes)
        super().__init__(f"{word}: the cluster has no DeviceClass {missing}")
        self.classes = classes
        self.known = tuple(known)  # what can be requested instead


class DeviceWord(NamedTuple):
    """The DeviceClasses and the selector of a short name."""

    classes: tuple[str, ...]  # the first that is here
    selector: str = ""


_PAGES = 'device.attributes["dra.memory"].hugeTLB'
_WORDS: Mapping[str, DeviceWord] = {
    "cpu": DeviceWord(("dra.cpu",)),
    "memory": DeviceWord(("dra.memory",), f"!{_PAGES}"),
    "hugepages": DeviceWord(("dra.memory",), _PAGES),
    "nic": DeviceWord(("dra.net",), '!device.attributes["dra.net"].?virtual.orValue(false)'),
    "net": DeviceWord(("dra.net",)),
    "vf": DeviceWord(("sriovnetwork.k8snetworkplumbingwg.io",)),
    "disk": DeviceWord(("dra.nvme",)),
    "nvme": DeviceWord(("dra.nvme",)),
    "gpu": DeviceWord(("gpu.nvidia.com", "gpu.amd.com")),
    "mig": DeviceWord(("mig.nvidia.com",)),
    "tpu": DeviceWord(("tpu.google.com",)),
}
# The capacity that an amount requests, for drivers with shareable devices.
_CAPACITY = {"dra.cpu": "dra.cpu/cpu", "dra.memory": "size"}


class RequestedAmount(NamedTuple):
    """An amount of a device, as requested."""

    name: str
    amount: str


class NodeOffer(NamedTuple):
    """The DeviceClasses of a cluster and the devices of a node."""

    classes: frozenset[str]
    devices: tuple[tuple[str, Device], ...]  # with their drivers

    @classmethod
    def of(
        cls, classes: Iterable[DeviceClass], slices: Iterable[ResourceSlice], *, node: str
    ) -> NodeOffer:
        """Return what can be requested on a node."""
        names = frozenset(each.metadata.name for each in classes)
        here = (each.spec for each in slices if each.spec.node_name in (node, None))
        return cls(names, tuple((spec.driver, d) for spec in here for d in spec.devices or ()))

    @property
    def attributes(self) -> frozenset[str]:
        """The names of all attributes of devices, each with its domain."""
        return frozenset(
            name if "/" in name else f"{driver}/{name}"
            for driver, device in self.devices
            for name in device.attributes
        )

    def is_shared(self, driver: str) -> bool:
        """Return whether a driver's devices are shareable; true if it publishes none."""
        own = [device for name, device in self.devices if name == driver]
        return not own or any(device.allow_multiple_allocations for device in own)


def parse_requests(texts: Iterable[str]) -> tuple[RequestedAmount, ...]:
    """requests: request {"," request}; request: NAME ["=" AMOUNT]. The default amount is 1."""
    words = [word.strip() for text in texts for word in text.split(",")]
    asks = tuple(
        RequestedAmount(name, amount if sign else "1")
        for name, sign, amount in (word.partition("=") for word in words)
    )
    if not asks:
        raise ClaimRequestError("nothing is asked for: --claim cpu=1, for example")
    if len(asks) > REQUESTS_MAX:
        raise ClaimRequestError(f"{len(asks)} requests, a claim has at most {REQUESTS_MAX}")
    for ask in asks:
        if not ask.name or not ask.amount:
            raise ClaimRequestError(f"{'='.join(ask)!r} is not NAME=AMOUNT, such as gpu=1")
    return asks


def claim_devices(
    asks: Sequence[RequestedAmount],
    offer: NodeOffer,
    *,
    matches: Iterable[str] = (),
    selectors: Iterable[str] = (),
) -> dict[str, Any]:
    """Return `spec.devices` of the claim, or raise ClaimRequestError."""
    conditions = _conditions(asks, selectors)
    requests: list[dict[str, Any]] = [
        {"name": name, "exactly": _request(ask, offer, conditions.get(ask.name, ()))}
        for name, ask in zip(_names(asks), asks, strict=True)
    ]
    count = sum(each["exactly"].get("count", 1) for each in requests)
    if count > DEVICES_MAX:
        raise ClaimRequestError(f"{count} devices, a claim has at most {DEVICES_MAX}")
    constraints = [{"matchAttribute": _attribute(each, offer)} for each in matches]
    return {"requests": requests, **({"constraints": constraints} if constraints else {})}


def _request(ask: RequestedAmount, offer: NodeOffer, conditions: Sequence[str]) -> dict[str, Any]:
    word = _WORDS.get(ask.name, DeviceWord(()))
    class_name = _class(ask.name, word, offer)
    expressions = [*([word.selector] if word.selector else ()), *conditions]
    selectors = [{"cel": {"expression": each}} for each in expressions]
    key = _CAPACITY.get(class_name, "")
    if key and offer.is_shared(class_name):
        amount: dict[str, Any] = {"capacity": {"requests": {key: _capacity(ask)}}}
    else:
        amount = {"count": _count(ask)}
    return {
        "deviceClassName": class_name,
        **({"selectors": selectors} if selectors else {}),
        **amount,
    }


def _class(name: str, word: DeviceWord, offer: NodeOffer) -> str:
    """Return the DeviceClass that a name refers to."""
    if name in offer.classes:
        return name
    for each in word.classes:
        if each in offer.classes:
            return each
    known = sorted({*offer.classes, *_words_here(offer)})
    if word.classes:
        raise NoClassError(name, word.classes, known)
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known) or 'none'}"
    raise ClaimRequestError(f"no class of devices {name!r}; {hint}")


def _words_here(offer: NodeOffer) -> Iterator[str]:
    for name, word in _WORDS.items():
        if not offer.classes.isdisjoint(word.classes):
            yield name


def _count(ask: RequestedAmount) -> int:
    text = ask.amount[:9]
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ClaimRequestError(f"{ask.name}={ask.amount}: the number of devices is 1, 2, 3, …")
    return int(text)


def _capacity(ask: RequestedAmount) -> str:
    try:
        amount = Quantity.parse(ask.amount)
    except QuantityError:
        amount = Quantity.ZERO
    if amount <= Quantity.ZERO:
        raise ClaimRequestError(
            f"{ask.name}={ask.amount}: the amount is a quantity, such as 2 or 4Gi"
        )
    return ask.amount


def _conditions(asks: Sequence[RequestedAmount], selectors: Iterable[str]) -> dict[str, list[str]]:
    """Return the CEL expressions by the name of their request."""
    found: dict[str, list[str]] = {}
    names = {ask.name for ask in asks}
    for text in selectors:
        name, sign, expression = text.partition("=")
        if name not in names or not sign or not expression.strip():
            listed = ", ".join(sorted(names))
            raise ClaimRequestError(
                f"--selector {text!r} is not NAME=EXPRESSION with NAME of {listed}"
            )
        found.setdefault(name, []).append(expression.strip())
    return found


def _attribute(text: str, offer: NodeOffer) -> str:
    """Return an attribute with its domain, by default resource.kubernetes.io."""
    name = text if "/" in text else f"{STANDARD_DOMAIN}/{text}"
    known = offer.attributes
    if known and name not in known:
        ends = {each.rpartition("/")[2]: each for each in sorted(known)}
        near = nearest(text.rpartition("/")[2], ends)
        hint = f"; did you mean {ends[near]}?" if near else ""
        raise ClaimRequestError(f"--match: no device here has the attribute {name!r}{hint}")
    return name


def _names(asks: Sequence[RequestedAmount]) -> Iterator[str]:
    """Yield a unique name for each request, with a number where names repeat."""
    names = [_STRANGE.sub("-", ask.name.lower()).strip("-")[:NAME_MAX] or "device" for ask in asks]
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}-{seen[name]}"
