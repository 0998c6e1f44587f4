"""Tests that read recorded answers are found, and do without them where there are none."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests import corpus as corpus_module
from tests.corpus import HIDDEN, corpus, readers


def test_a_test_without_its_recording_is_skipped_and_says_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(HIDDEN, "1")
    with pytest.raises(pytest.skip.Exception, match=r"at \.\./shared/corpus/golden/a\.json$"):
        corpus("golden", "a.json")


def test_modules_that_read_recordings_are_found_through_others() -> None:
    def recorded() -> None: ...

    recorded.__module__ = "tests.helper"
    modules = {
        "tests.corpus": corpus_module,
        "tests.helper": _module("tests.helper", read=corpus),
        "tests.direct": _module("tests.direct", reading=corpus_module),
        "tests.through": _module("tests.through", recorded=recorded),
        "tests.other": _module("tests.other", number=1, text="tests.corpus"),
    }
    assert readers(modules) == {"tests.helper", "tests.direct", "tests.through"}


def _module(name: str, **content: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(content)
    return module
