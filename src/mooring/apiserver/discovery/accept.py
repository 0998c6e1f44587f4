"""Which form of discovery a client prefers."""

from __future__ import annotations

from enum import Enum

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


class Form(Enum):
    """A form that discovery comes in."""

    LEGACY = ""
    V2 = "v2"
    V2BETA1 = "v2beta1"

    @property
    def content_type(self) -> str:
        """What the answer says it is."""
        return AGGREGATED_TYPE.format(self.value) if self.value else "application/json"


_TYPES = ("application/json", "application/*", "*/*")


def preferred_form(accept: str) -> Form | None:
    """Return the first form of an Accept header that there is; None if there is none."""
    if not accept.strip():
        return Form.LEGACY
    clauses = sorted(accept.split(","), key=_quality, reverse=True)  # equals stay in order
    return next((form for form in map(_form, clauses) if form is not None), None)


def _form(clause: str) -> Form | None:
    media_type, *rest = (part.strip() for part in clause.split(";"))
    if media_type.lower() not in _TYPES or _quality(clause) <= 0:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    if "as" not in parameters:
        return Form.LEGACY
    wanted = (parameters["as"], parameters.get("g"))
    if wanted != ("APIGroupDiscoveryList", "apidiscovery.k8s.io"):
        return None
    forms = (form for form in Form if form is not Form.LEGACY)
    return next((form for form in forms if form.value == parameters.get("v")), None)


def _quality(clause: str) -> float:
    for part in clause.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
