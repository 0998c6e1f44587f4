"""A missing package that an extra brings is named with its extra; any other is a plain error."""

from __future__ import annotations

import importlib
import re
import sys

import pytest

from moorage.kit.extras import (
    EXTRAS,
    MissingExtraError,
    missing_extra,
    optional_imports,
    remedy,
    require,
)


@pytest.mark.parametrize(
    ("missing", "package", "extra"),
    [
        ("cryptography", "cryptography", "server"),
        ("google", "google.protobuf", "drivers"),  # nothing else is in the namespace
        ("google.protobuf", "google.protobuf", "drivers"),
        ("grpc", "grpc", "drivers"),
        ("uvicorn", "uvicorn", "server"),
    ],
)
def test_the_extra_that_brings_a_package_is_named(missing: str, package: str, extra: str) -> None:
    named = missing_extra(ModuleNotFoundError(f"No module named '{missing}'", name=missing))
    assert named is not None
    assert named.name == package
    assert named.extra == extra
    assert str(named).startswith(f"{package} is not installed: {remedy(extra)}")


@pytest.mark.parametrize("name", ["grpc._cython.cygrpc", "msgspec", "moorage.kit.gone", None])
def test_what_no_extra_brings_is_not_explained_away(name: str | None) -> None:
    assert missing_extra(ModuleNotFoundError("No module", name=name)) is None
    with pytest.raises(ModuleNotFoundError) as caught, optional_imports():
        raise ModuleNotFoundError("No module", name=name)
    assert not isinstance(caught.value, MissingExtraError)


def test_an_import_that_fails_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=re.escape(remedy("server"))), optional_imports():
        importlib.import_module("uvicorn")


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_that_is_installed_is_not_asked_for(extra: str) -> None:
    require(extra)
