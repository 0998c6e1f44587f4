"""Which form of discovery a client prefers."""

from __future__ import annotations

from enum import Enum

from mooring.apiserver.accept import Clause, read_accept
from mooring.apiserver.documents import JSON

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


class Form(Enum):
    """A form that discovery comes in."""

    LEGACY = ""
    V2 = "v2"
    V2BETA1 = "v2beta1"

    @property
    def content_type(self) -> str:
        """What the answer says it is."""
        return AGGREGATED_TYPE.format(self.value) if self.value else JSON


_AGGREGATED = {form.value: form for form in Form if form.value}


def preferred_form(accept: str) -> Form | None:
    """Return the first form of an Accept header that there is; None if there is none."""
    forms = (_form(clause) for clause in read_accept(accept) if clause.covers(JSON))
    return next((form for form in forms if form is not None), None)


def _form(clause: Clause) -> Form | None:
    wanted = clause.parameters
    if "as" not in wanted:
        return Form.LEGACY
    if (wanted["as"], wanted.get("g")) != ("APIGroupDiscoveryList", "apidiscovery.k8s.io"):
        return None
    return _AGGREGATED.get(wanted.get("v", ""))
