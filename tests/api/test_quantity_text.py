"""The fast quantity parser returns the same as the full parser, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.errors import QuantityError
from moorage.api.quantity import MEMO_SIZE, Quantity
from moorage.api.quantity_text import SUFFIXES, Parts, read_plain, read_quantity

laws = settings(max_examples=500)

exponents = st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]),
                      st.integers(0, 40))  # fmt: skip
texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "-", "+", "0", "00"]),
    st.text("0123456789", max_size=20),
    st.just("") | st.text("0123456789", max_size=12).map(".{}".format),
    st.sampled_from(sorted(SUFFIXES)) | exponents,
)
noise = st.text("0123456789.+-eEinumkKMGTP_ ١²１", max_size=8)


def careful(text: str) -> Parts | None:
    try:
        return read_quantity(text)
    except QuantityError:
        return None


@laws
@given(texts | noise)
def test_it_reads_what_the_careful_reader_reads(text: str) -> None:
    quick = read_plain(text)
    assert quick is None or quick == careful(text)


@pytest.mark.parametrize("suffix", [*SUFFIXES, "e0", "e3", "E-9", "e+1"])
@pytest.mark.parametrize("digits", ["1", "8", "12", "1000", "1024", "9" * 14, "9" * 18, "9" * 19])
def test_every_suffix_means_what_it_means_to_the_careful_reader(digits: str, suffix: str) -> None:
    text = f"{digits}{suffix}"
    assert read_plain(text) in (None, careful(text))


@pytest.mark.parametrize(
    "text", ["4", "500m", "10k", "512Mi", "80Gi", "2Ti", "10Ei", "0.5", "10.5", "1.25k", "1e3"]
)
def test_common_forms_are_plain(text: str) -> None:
    assert read_plain(text) is not None


def test_a_full_memo_changes_no_answer() -> None:
    numbers = range(2 * MEMO_SIZE)
    first = [Quantity.parse(str(number)) for number in numbers]
    assert [Quantity.parse(str(number)).value for number in numbers] == list(numbers)
    assert first[3] == Quantity.parse("3")
