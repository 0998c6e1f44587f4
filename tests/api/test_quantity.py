from __future__ import annotations

import copy
import gzip
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.quantity import answers, float_text
from conformance.runner import (
    ALL_EQUAL,
    SOME_DIFFER,
    UNREADABLE,
    USAGE,
    Apart,
    Case,
    Mismatch,
    Tally,
    compared,
    main,
    run,
    suite_names,
)
from moorage.api.errors import QuantityError
from moorage.api.quantity import DIGITS_MAX, Format, Quantity
from tests.corpus import corpus

parse = Quantity.parse

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]

digits = st.text("0123456789", max_size=24)
exponents = st.integers(-40, 40).map(lambda exponent: f"e{exponent}")
texts = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=24),
    st.one_of(st.just(""), digits.map(lambda places: f".{places}")),
    st.one_of(st.sampled_from(SUFFIXES), exponents),
)
quantities = texts.map(parse)
small_quantities = quantities.filter(lambda quantity: abs(number(quantity)) < 10**21)


def number(quantity: Quantity) -> Fraction:
    return Fraction(quantity.exact)


# --- recorded answers ---------------------------------------------------------------------------


def test_every_recorded_quantity_has_the_answers_of_kubernetes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("quantity", corpus("quantity", "quantity.jsonl")) == ALL_EQUAL
    assert capsys.readouterr().out.endswith(" equal\n")


# --- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10Gi", "10Gi"),
        ("8Gi", "8Gi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1.5", "1500m"),
        ("0.1m", "100u"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("1E+03", "1E+03"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("100Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
    ],
)
def test_text_is_canonical(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize("text", ["+5", "01", "5.", "1.500", "-0007Ki", "+1e+3"])
def test_text_that_counts_as_canonical_is_kept(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["+", "-", ".", "Ki", "m", "e5", "-.", "000", "0"])
def test_missing_digits_are_zero(text: str) -> None:
    assert parse(text).is_zero
    assert str(parse(text)) == "0"


def test_numbers_above_exa_lose_their_suffix_as_in_kubernetes() -> None:
    assert str(parse("1000E")) == "1"


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", " 1", "1.2.3", "1-1-1", "1G\n", "1_000", "١", "0x1"]
)
def test_text_of_another_form_is_refused_with_kubernetes_text(text: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse(text)
    expression = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
    assert str(refusal.value) == f"quantities must match the regular expression '{expression}'"


@pytest.mark.parametrize(
    "text", ["1i", "--1", "1mk", "1e", "1e-", "1K", "1ki", "1+5", "1e9223372036854775808"]
)
def test_unknown_suffix_is_refused_with_kubernetes_text(text: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse(text)
    assert str(refusal.value) == "unable to parse quantity's suffix"


@pytest.mark.parametrize("text", ["Ei", ".Pi", "+e-10"])
def test_missing_digits_are_refused_where_kubernetes_calculates_wide(text: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse(text)
    assert str(refusal.value) == "unable to parse numeric part of quantity"


def test_json_text_may_have_blanks_around_it() -> None:
    assert str(Quantity.from_json(" 1Gi\n")) == "1Gi"
    assert str(Quantity.from_json("1.5")) == "1500m"
    assert str(Quantity.from_json("\u30001e3")) == "1e3"
    with pytest.raises(QuantityError):
        Quantity.from_json("\x1c1")


# --- numbers ------------------------------------------------------------------------------------


def test_whole_numbers_and_milli_numbers_make_quantities() -> None:
    assert str(Quantity.from_int(2**30, Format.BINARY_SI)) == "1Gi"
    assert str(Quantity.from_int(1500)) == "1500"
    assert str(Quantity.from_milli(1500)) == "1500m"
    assert str(Quantity.from_milli(2_048_000, Format.BINARY_SI)) == "2Ki"
    assert Quantity.from_int(2**63).as_int64() is None
    assert Quantity.from_int(2**63) == parse("9223372036854775808")


def test_zero_is_neutral() -> None:
    assert Quantity.ZERO.is_zero
    assert str(Quantity.ZERO) == "0"
    assert str(Quantity.ZERO + parse("1.5Gi")) == "1536Mi"


def test_as_int64_knows_whole_narrow_numbers_only() -> None:
    assert parse("10Gi").as_int64() == 10 * 2**30
    assert parse("1k").as_int64() == 1000
    assert parse("1000m").as_int64() is None
    assert parse("100E").as_int64() is None
    assert parse("1Ei").as_int64() is None


def test_value_rounds_away_from_zero() -> None:
    assert parse("1500m").value == 2
    assert parse("-1500m").value == -2
    assert parse("1n").milli_value == 1
    assert parse("1n").scaled_value(9) == 1


def test_approximate_float_reaches_infinity_instead_of_failing() -> None:
    assert parse("1.5").approximate_float == 1.5
    assert parse("1e400").approximate_float == math.inf
    assert parse("-12345678901234567890123e400").approximate_float == -math.inf
    assert parse("1e308").approximate_float == 1e308


def test_zero_takes_over_the_notation_of_what_is_added() -> None:
    assert (parse("0") + parse("2Ki")).format is Format.BINARY_SI
    assert (parse("0") - parse("2Ki")).format is Format.BINARY_SI
    assert (parse("1") + parse("2Ki")).format is Format.DECIMAL_SI


def test_sums_are_printed_in_canonical_form() -> None:
    assert str(parse("+5") + parse("0")) == "5"
    assert str(parse("1Gi") - parse("512Mi")) == "512Mi"
    assert str(-parse("1500m")) == "-1500m"
    assert str(parse("1Gi").negated()) == "-1Gi"


def test_products_keep_the_notation_of_what_is_multiplied() -> None:
    assert str(parse("1Gi") * 3) == "3Gi"
    assert str(parse("500m") * parse("4")) == "2"
    assert str(parse("2Ki") * parse("1.5")) == "3Ki"
    assert str(parse("2") * parse("1Ki")) == "2048"
    assert str(parse("1Gi") * 0) == "0"


def test_products_are_exact_down_to_a_billionth_and_rounded_up_beyond() -> None:
    assert parse("9E") * parse("9E") == Quantity.from_int(81 * 10**36)
    assert (parse("1u") * parse("1m")).nano == 1
    assert (parse("1n") * parse("1n")).nano == 1
    assert (parse("3n") * parse("-1n")).nano == 0


# --- laws ---------------------------------------------------------------------------------------


@given(small_quantities)
def test_text_reads_back_as_the_same_number(quantity: Quantity) -> None:
    assert parse(str(quantity)) == quantity


@given(small_quantities, small_quantities)
def test_canonical_text_is_a_fixed_point(left: Quantity, right: Quantity) -> None:
    for quantity in (left, left + right):
        # Parsing caps binary numbers at an int64, adding does not.
        if abs(number(quantity)) < 2**63:
            assert str(parse(str(quantity))) == str(quantity)


@given(quantities, quantities)
def test_comparison_agrees_with_fractions(left: Quantity, right: Quantity) -> None:
    mine, theirs = number(left), number(right)
    assert left.compare(right) == (mine > theirs) - (mine < theirs)
    assert (left == right, left < right, left <= right) == (
        mine == theirs,
        mine < theirs,
        mine <= theirs,
    )
    assert (left != right, left > right, left >= right) == (
        mine != theirs,
        mine > theirs,
        mine >= theirs,
    )


@given(st.lists(quantities, max_size=8))
def test_order_is_total(given: list[Quantity]) -> None:
    assert [number(quantity) for quantity in sorted(given)] == sorted(map(number, given))


@given(st.integers(-(10**20), 10**20), st.integers(0, 9))
def test_equal_numbers_have_equal_hashes(whole: int, places: int) -> None:
    short, long = parse(f"{whole}"), parse(f"{whole}.{'0' * places}")
    wide = Quantity.from_int(whole * 10**30) - Quantity.from_int(whole * (10**30 - 1))
    assert short == long == wide
    assert hash(short) == hash(long) == hash(wide)


@given(quantities, quantities)
def test_sums_are_exact(left: Quantity, right: Quantity) -> None:
    assert number(left + right) == number(left) + number(right)
    assert number(left - right) == number(left) - number(right)
    assert left + right - right == left
    assert left - left == -(left - left) == parse("0")


@given(st.integers(-(10**15), 10**15), st.sampled_from(SUFFIXES[:8]))
def test_value_of_a_narrow_number_is_its_ceiling_away_from_zero(whole: int, suffix: str) -> None:
    quantity = parse(f"{whole}{suffix}")
    size = math.ceil(abs(number(quantity)))
    if size < 2**63:
        assert quantity.value == (size if whole >= 0 else -size)


@given(st.integers(1, 10**25), st.sampled_from(SUFFIXES))
def test_plain_numbers_are_read_like_the_same_with_a_sign(whole: int, suffix: str) -> None:
    plain, signed = parse(f"{whole}{suffix}"), parse(f"+{whole}{suffix}")
    assert plain.exact == signed.exact
    assert plain.format is signed.format
    assert plain.as_int64() == signed.as_int64()
    assert str(plain) == str(signed).removeprefix("+")


@given(st.text("0123456789+-.eEinumkKMGTPx ", max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = parse(text)
    except QuantityError:
        return
    assert number(quantity) == number(parse(f"{quantity.exact}"))


# --- values -------------------------------------------------------------------------------------


def test_quantities_do_not_change() -> None:
    quantity = parse("1Gi")
    for name in ("value", "format", "anything"):
        with pytest.raises(AttributeError):
            setattr(quantity, name, 1)


def test_quantities_can_be_copied_and_pickled() -> None:
    quantity = parse("1.5Gi")
    for twin in (copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert twin == quantity
        assert str(twin) == "1536Mi"


def test_a_quantity_shows_its_text() -> None:
    assert repr(parse("1.5Gi")) == "Quantity('1536Mi')"


def test_a_quantity_equals_no_other_kind_of_value() -> None:
    assert parse("1") != 1
    assert parse("1") != "1"


# --- hostile input ------------------------------------------------------------------------------

MEGABYTE = 10**6


@pytest.mark.parametrize(
    "text", ["1" * MEGABYTE, "1e999999999", "1e2147483647", "1234567890123456789e999999999"]
)
def test_numbers_beyond_all_measure_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1e-999999999", "1n"),
        ("-1e-999999999", "-1n"),
        ("0" * MEGABYTE + "1", "1"),
        ("1e" + "0" * MEGABYTE + "5", "1e5"),
        ("0." + "0" * MEGABYTE + "1", "1n"),
        ("0." + "0" * MEGABYTE + "1Ei", "1n"),
        ("1." + "0" * MEGABYTE + "1Ki", "1024.000000001"),
        ("1." + "0" * MEGABYTE + "Ki", "1Ki"),
        ("." + "0" * 1000 + "1e1001", "1"),
        ("9" * MEGABYTE + "Ki", "9223372036854775807"),
        ("0e999999999", "0"),
        ("0e-999999999", "0"),
        ("1e4294967297", "10"),
    ],
)
def test_long_texts_of_ordinary_numbers_are_read(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize("filler", ["1", ".", "e", "-", "K", " ", "x", "é"])
def test_a_megabyte_of_anything_else_is_refused(filler: str) -> None:
    for text in (filler * MEGABYTE, f"1{filler * MEGABYTE}", f"1.1{filler * MEGABYTE}x"):
        with pytest.raises(QuantityError):
            parse(text)


def test_the_largest_quantities_can_be_printed_added_and_compared() -> None:
    largest = parse("9" * DIGITS_MAX)
    finest = parse(f"0e-{10 * DIGITS_MAX}")
    total = largest + finest + largest
    assert len(total.exact) > 2 * DIGITS_MAX
    assert total > largest
    assert parse(str(total)[: DIGITS_MAX - 1]) < total
    assert hash(total) == hash(largest + largest)
    assert isinstance(total.value, int)


def test_long_texts_are_not_remembered() -> None:
    long_text = "0" * 100 + "1"
    assert parse(long_text) is not parse(long_text)
    assert parse("10Gi") is parse("10Gi")


# --- the runner ---------------------------------------------------------------------------------

GOOD = {"id": "qty-good", "a": "1Gi", "b": "x", "expect": answers("1Gi", "x")}
BAD = {"id": "qty-bad", "a": "1Gi", "b": "1", "expect": {**answers("1Gi", "1"), "cmp": -1}}
OTHER = {"id": "sem-1", "a": "1.2.3", "b": "1.2.3", "expect": {"a": {"api_regex": True}, "b": {}}}


def written(path: Path, *cases: object) -> Path:
    text = "".join(json.dumps(case) + "\n" for case in cases).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_all_equal_is_status_0_and_said_in_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantity", str(written(tmp_path / "cases.jsonl", GOOD, GOOD))]) == ALL_EQUAL
    assert capsys.readouterr().out == "quantity: 2/2 equal\n"


def test_a_mismatch_is_status_1_and_shown_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantity", str(written(tmp_path / "cases.jsonl", GOOD, BAD))]) == SOME_DIFFER
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["qty-bad", "    cmp: Kubernetes -1, Moorage 1", "quantity: 1/2 equal"]


def test_show_limits_the_mismatches_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "cases.jsonl", BAD, BAD, BAD)
    assert main(["quantity", str(path), "--show", "1"]) == SOME_DIFFER
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("qty-bad") == 1
    assert "… and 2 more mismatches (--show N shows more)" in lines
    assert lines[-1] == "quantity: 0/3 equal"


def test_a_case_that_breaks_us_is_a_mismatch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"id": "qty-broken", "a": 5, "b": "1", "expect": {}}
    assert main(["quantity", str(written(tmp_path / "cases.jsonl", broken, GOOD))]) == SOME_DIFFER
    assert "raised TypeError" in capsys.readouterr().out


def test_gzip_files_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantity", str(written(tmp_path / "cases.jsonl.gz", GOOD))]) == ALL_EQUAL
    assert capsys.readouterr().out == "quantity: 1/1 equal\n"


def test_of_a_folder_the_fitting_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "one.jsonl", GOOD)
    written(tmp_path / "two.jsonl.gz", GOOD)
    written(tmp_path / "versions.jsonl", OTHER)
    (tmp_path / "README.md").write_text("not cases")
    assert main(["quantity", str(tmp_path)]) == ALL_EQUAL
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["skipped versions.jsonl: no quantity cases", "quantity: 2/2 equal"]


def test_unknown_suites_are_answered_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nonsense", str(tmp_path)]) == USAGE
    complaint = capsys.readouterr().err
    assert "no suite 'nonsense'" in complaint
    assert ", ".join(suite_names()) in complaint
    assert {"quantity", "semver"} <= set(suite_names())


def test_missing_files_and_arguments_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantity", str(tmp_path / "absent.jsonl")]) == USAGE
    assert main(["quantity", str(tmp_path)]) == USAGE
    assert main(["quantity"]) == USAGE
    assert main(["runner", str(tmp_path)]) == USAGE
    assert "no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"{", b"[]\n", b"\xff\n", b"\x1f\x8bnot gzip", b"", b"\n\n"])
def test_files_that_hold_no_cases_are_status_3(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    assert main(["quantity", str(path)]) == UNREADABLE
    assert "cases.jsonl" in capsys.readouterr().err


def test_help_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == ALL_EQUAL
    assert "SUITE" in capsys.readouterr().out


def test_cases_counted_apart_are_in_no_total() -> None:
    tally = Tally()
    tally.add(Case("one", {}, b"{}"), Apart("needs a cluster"), show=10)
    assert (tally.equal, tally.total, tally.apart["needs a cluster"]) == (0, 0, 1)


def test_comparison_tells_kinds_of_json_values_apart() -> None:
    differing = compared({"a": 1, "b": [1], "c": None}, {"a": True, "b": [1], "d": 2})
    assert isinstance(differing, Mismatch)
    assert differing.differences == (
        "a: Kubernetes 1, Moorage true",
        "c: Kubernetes null, Moorage has none",
        "d: Kubernetes has none, Moorage 2",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (-0.0001, "-0.0001"),
        (1.5e-5, "1.5e-05"),
        (123456.5, "123456.5"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_floats_are_written_as_go_does(value: float, text: str) -> None:
    assert float_text(value) == text
