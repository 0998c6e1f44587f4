"""The argument KIND/NAME that names an object, as for kubectl."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from moorage.cli.cluster_options import ClusterInput
from moorage.cli.terminal import printable
from moorage.insight.errors import UnknownObjectError
from moorage.insight.object_names import ObjectName, parse_object_name

F = TypeVar("F", bound=Callable[..., Any])


def subject_argument(function: F) -> F:
    """Add the argument [KIND/NAME]; the command gets `subject` or None."""
    return click.argument(
        "subject", metavar="[KIND/NAME]", nargs=-1, required=False, callback=_joined
    )(function)


def _joined(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> str | None:
    """Return `pod/x` for `pod/x` and for `pod x`, as kubectl takes both."""
    if len(words) > 2:
        raise click.UsageError(f"expected one KIND/NAME, not {len(words)} words")
    return "/".join(words) or None


@contextmanager
def objects_of(given: ClusterInput) -> Iterator[None]:
    """Exit if the input does not have a named object; see `ClusterInput.end_without`."""
    try:
        yield
    except UnknownObjectError as error:
        given.end_without(str(error))


def parse_subject(text: str, *, namespace: str) -> ObjectName:
    """Parse KIND/NAME, KIND/NAMESPACE/NAME or a pod's NAME."""
    try:
        return parse_object_name(text, namespace=namespace)
    except UnknownObjectError as error:
        raise click.UsageError(printable(str(error))) from None
