from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.runner import ALL_EQUAL, run
from moorage.api.errors import VersionError
from moorage.api.semver import (
    UINT64_MAX,
    Version,
    matches_api_rule,
    parse_normalized,
    parse_version,
)
from tests.corpus import corpus

numbers = st.integers(0, UINT64_MAX)
builds = st.text("019azAZ-", min_size=1, max_size=5)
words = builds.map(lambda word: f"{word}x")
versions = st.builds(
    Version,
    numbers,
    numbers,
    numbers,
    st.lists(st.one_of(numbers, words), max_size=3).map(tuple),
    st.lists(builds, max_size=3).map(tuple),
)


def refusal_of(text: str) -> str:
    with pytest.raises(VersionError) as refusal:
        parse_version(text)
    return str(refusal.value)


# --- recorded answers ---------------------------------------------------------------------------


def test_every_recorded_version_has_the_answers_of_kubernetes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("semver", corpus("quantity", "semver.jsonl")) == ALL_EQUAL
    assert capsys.readouterr().out.endswith(" equal\n")


# --- parsing ------------------------------------------------------------------------------------


def test_parts_of_a_version_are_told_apart() -> None:
    version = parse_version("1.20.300-rc.1.x-y+build.007")
    assert (version.major, version.minor, version.patch) == (1, 20, 300)
    assert version.pre == ("rc", 1, "x-y")
    assert version.build == ("build", "007")
    assert str(version) == "1.20.300-rc.1.x-y+build.007"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.x.3", 'Invalid character(s) found in minor number "x"'),
        ("1.2.3.4", 'Invalid character(s) found in patch number "3.4"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.03", 'Patch number must not contain leading zeroes "03"'),
        (".2.3", 'strconv.ParseUint: parsing "": invalid syntax'),
        (
            "18446744073709551616.0.0",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
        ("1.2.3-ä", 'Invalid character(s) found in prerelease "ä"'),
        ("1.2.3\n", r'Invalid character(s) found in patch number "3\n"'),
        ('1.2.3"\\', r'Invalid character(s) found in patch number "3\"\\"'),
        ("1.2.\x00\x7f", r'Invalid character(s) found in patch number "\x00\x7f"'),
        ("1.2.\u200b", r'Invalid character(s) found in patch number "\u200b"'),
        ("1.2.\U000e0001", r'Invalid character(s) found in patch number "\U000e0001"'),
        ("1.2.٣", 'Invalid character(s) found in patch number "٣"'),
    ],
)
def test_refusals_have_the_text_of_kubernetes(text: str, message: str) -> None:
    assert refusal_of(text) == message


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("v1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("01.002.0003", "1.2.3"),
        ("v00.00.00", "0.0.0"),
        ("1.2.03-rc.1+b", "1.2.3-rc.1+b"),
        ("1.2.0-rc", "1.2.0-rc"),
    ],
)
def test_normalizing_reads_sloppy_versions(text: str, normalized: str) -> None:
    assert str(parse_normalized(text)) == normalized


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.2-rc", "short version cannot contain PreRelease/Build meta data"),
        ("1+b", "short version cannot contain PreRelease/Build meta data"),
        ("vv1.2.3", 'Invalid character(s) found in major number "0v1"'),
        ("é.1.1", 'Invalid character(s) found in major number "0é"'),
        ("e.1.1", 'Invalid character(s) found in major number "e"'),
        ("", 'strconv.ParseUint: parsing "": invalid syntax'),
    ],
)
def test_normalizing_refuses_with_the_text_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(VersionError) as refusal:
        parse_normalized(text)
    assert str(refusal.value) == message


def test_the_api_accepts_numbers_that_cannot_be_parsed() -> None:
    text = f"{UINT64_MAX + 1}.0.0"
    assert matches_api_rule(text)
    assert "value out of range" in refusal_of(text)


@pytest.mark.parametrize(
    "text", ["1.2.3\n", "1.2", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.٣", "1.2.3-a..b"]
)
def test_the_api_refuses_what_is_no_version(text: str) -> None:
    assert not matches_api_rule(text)


# --- order --------------------------------------------------------------------------------------


def test_versions_are_ordered_by_precedence() -> None:
    ordered = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0--",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0",
        "1.0.1",
        "1.2.0",
        "1.10.0",
        "2.0.0-rc",
        "2.0.0",
    ]
    parsed = [parse_version(text) for text in ordered]
    assert sorted(parsed, reverse=True) == parsed[::-1]
    for left, right in pairwise(parsed):
        assert left < right
        assert left <= right
        assert right > left
        assert right >= left
        assert (left.compare(right), right.compare(left)) == (-1, 1)


def test_build_metadata_takes_no_part_in_equality() -> None:
    left, right = parse_version("1.2.3+a"), parse_version("1.2.3+b")
    assert left == right
    assert hash(left) == hash(right)
    assert left.compare(right) == 0
    assert str(left) != str(right)


def test_a_version_equals_no_other_kind_of_value() -> None:
    assert parse_version("1.2.3") != "1.2.3"


# --- laws ---------------------------------------------------------------------------------------


@given(versions)
def test_versions_read_back_from_their_text(version: Version) -> None:
    again = parse_version(str(version))
    assert (again.pre, again.build) == (version.pre, version.build)
    assert again == version
    assert str(again) == str(version)
    assert matches_api_rule(str(version))
    assert parse_normalized(f"v{version}") == version


@given(st.text("019.-+av_", max_size=12))
def test_the_parser_and_the_api_accept_the_same_short_texts(text: str) -> None:
    try:
        parse_version(text)
    except VersionError:
        assert not matches_api_rule(text)
    else:
        assert matches_api_rule(text)


@given(versions, versions, versions)
def test_order_is_total(one: Version, two: Version, three: Version) -> None:
    assert one.compare(two) == -two.compare(one)
    low, middle, high = sorted([one, two, three])
    assert low <= middle <= high
    assert low <= high


# --- hostile input ------------------------------------------------------------------------------

MANY = 10**5


@pytest.mark.parametrize("filler", ["1", "0", ".", "-", "+", "a", "1.", "-1", "\n", "é"])
def test_a_long_text_of_anything_is_refused(filler: str) -> None:
    for text in (f"{filler * MANY}!", f"1.2.3-{filler * MANY}!", f"1.2.3+{filler * MANY}!"):
        assert not matches_api_rule(text)
        for reader in (parse_version, parse_normalized):
            with pytest.raises(VersionError):
                reader(text)
