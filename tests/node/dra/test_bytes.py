"""Messages put together byte by byte, by their field numbers, are understood, and ours are those.

Nothing of the generated code makes these bytes, so a wrong number or type shows.
"""

from __future__ import annotations

from moorage.node.dra.claim_info import ClaimInfo, ClaimKey, PreparedDevice
from moorage.node.dra.claim_requests import check_unprepared, read_prepared, request_for
from moorage.node.dra.health_info import DeviceKey, ReportedHealth, read_report
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import GET_INFO, NOTIFY, PREPARE, UNPREPARE, WATCH_HEALTH

CLAIM = ClaimInfo(ClaimKey("default", "c"), "uid-c")


def text(number: int, value: str | bytes) -> bytes:
    """A string, bytes or message: wire type 2."""
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def integer(number: int, value: int) -> bytes:
    """An integer, enum or bool: wire type 0."""
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def test_a_drivers_word_on_itself() -> None:
    content = (
        text(1, "DRAPlugin")
        + text(2, "gpu.example.com")
        + text(3, "/var/lib/kubelet/plugins/gpu.example.com/dra.sock")
        + text(4, "v1.DRAPlugin")
        + text(4, "v1beta1.DRAPlugin")
        + text(15, "a field of tomorrow")
    )
    info = GET_INFO.response.FromString(content)
    assert (info.type, info.name) == ("DRAPlugin", "gpu.example.com")
    assert info.endpoint.endswith("/dra.sock")
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


def test_our_word_on_a_driver() -> None:
    refused = registration.RegistrationStatus(plugin_registered=False, error="no")
    assert refused.SerializeToString() == text(2, "no")
    taken = NOTIFY.request(plugin_registered=True)
    assert taken.SerializeToString() == integer(1, 1)


def test_what_we_ask_of_drivers() -> None:
    claim = text(1, "default") + text(2, "uid-c") + text(3, "c")
    for method in (PREPARE, UNPREPARE):
        assert request_for([CLAIM], method.request).SerializeToString() == text(1, claim)


def test_what_a_driver_prepared() -> None:
    device = (
        text(1, "a")
        + text(1, "b")
        + text(2, "pool")
        + text(3, "d")
        + text(4, "gpu.example.com/device=d")
        + text(5, "share")
    )
    bare = text(2, "pool") + text(3, "e")
    entry = text(1, "uid-c") + text(2, text(1, device) + text(1, bare))
    response = PREPARE.response.FromString(text(1, entry))
    ((claim, devices),) = read_prepared([CLAIM], response.claims)
    assert claim is CLAIM
    assert devices == (
        PreparedDevice("pool", "d", "share", ("a", "b"), ("gpu.example.com/device=d",)),
        PreparedDevice("pool", "e"),
    )


def test_what_a_driver_could_not_do() -> None:
    entry = text(1, "uid-c") + text(2, text(2, "no"))
    assert PREPARE.response.FromString(text(1, entry)).claims["uid-c"].error == "no"
    entry = text(1, "uid-c") + text(2, text(1, "no"))
    assert UNPREPARE.response.FromString(text(1, entry)).claims["uid-c"].error == "no"


def test_what_a_driver_unprepared() -> None:
    # Go leaves out the value of an entry that is empty.
    for entry in (text(1, "uid-c") + text(2, b""), text(1, "uid-c")):
        check_unprepared([CLAIM], UNPREPARE.response.FromString(text(1, entry)).claims)


def test_what_a_driver_says_of_health() -> None:
    device = (
        text(1, text(1, "pool") + text(2, "d"))
        + integer(2, 2)
        + integer(3, 1_700_000_000)
        + integer(4, 12)
        + text(5, "hot")
    )
    report = WATCH_HEALTH.response.FromString(text(1, device))
    assert dict(read_report(report, 5.0)) == {
        DeviceKey("pool", "d"): ReportedHealth("Unhealthy", "hot", 12.0, 5.0)
    }
