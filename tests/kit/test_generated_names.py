"""New names and ids."""

from __future__ import annotations

import uuid

from moorage.kit.generated_names import (
    SUFFIX_LENGTH,
    SUFFIX_LETTERS,
    Randomness,
    new_suffix,
    new_uid,
)


def test_ids_are_random_uuids_and_never_the_same() -> None:
    ids = {new_uid() for _ in range(2000)}
    assert len(ids) == 2000
    assert {uuid.UUID(text).version for text in ids} == {4}
    assert {uuid.UUID(text).variant for text in ids} == {uuid.RFC_4122}
    assert all(str(uuid.UUID(text)) == text for text in ids)


def test_suffixes_have_the_letters_that_make_no_words() -> None:
    suffixes = [new_suffix() for _ in range(2000)]
    assert {len(suffix) for suffix in suffixes} == {SUFFIX_LENGTH}
    assert set("".join(suffixes)) == set(SUFFIX_LETTERS)


def test_bytes_are_given_out_once() -> None:
    randomness = Randomness()
    taken = [randomness.take(16) for _ in range(1000)]
    assert len(set(taken)) == 1000
    assert len(randomness.take(10_000)) == 10_000
