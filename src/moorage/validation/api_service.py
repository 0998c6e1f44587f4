"""The strategy of APIServices: versions that this server serves, and none of other servers."""

from __future__ import annotations

import re
from functools import partial

from moorage.api import names
from moorage.api.api_registration import APIService, APIServiceSpec
from moorage.api.field_path import root
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import ErrorList, forbidden, invalid, required
from moorage.validation.field_rules import each_invalid
from moorage.validation.metadata import validate_metadata
from moorage.validation.strategy import ObjectStrategy

SPEC = root("spec")
GROUP_PRIORITY_MAX, VERSION_PRIORITY_MAX = 20_000, 1_000

_NOT_PASSED_ON = (
    "requests are not passed on to other API servers: serve the group with a "
    "CustomResourceDefinition, or let clients connect to the other server"
)
_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_LABEL}')"
)
_is_label = re.compile(_LABEL).fullmatch


class APIServiceStrategy(ObjectStrategy[APIService]):
    """The strategy of APIServices."""

    namespaced = False
    qualified_finalizers = False

    def validate_metadata(self, new: APIService) -> ErrorList:
        """Validate the metadata; the name is that of the version and the group."""
        return validate_metadata(
            new.metadata,
            namespaced=False,
            validate_name=partial(_name_faults, f"{new.spec.version}.{new.spec.group}"),
            qualified_finalizers=False,
        )

    def validate_fields(self, new: APIService) -> ErrorList:
        """Validate group, version and priorities, and refuse the service of another server."""
        spec, found = new.spec, ErrorList()
        if not spec.group and spec.version != "v1":
            detail = "only v1 may have an empty group and it better be legacy kube"
            found.append(required(SPEC.child("group"), detail))
        if spec.group:
            messages = names.dns1123_subdomain(spec.group)
            found += each_invalid(SPEC.child("group"), spec.group, messages)
        if not _is_label(spec.version):
            found.append(invalid(SPEC.child("version"), spec.version, _LABEL_RULE))
        found += _validate_priorities(spec)
        if spec.service is not None:
            found.append(forbidden(SPEC.child("service"), _NOT_PASSED_ON))
        return found


def _name_faults(wanted: str, name: str) -> list[str]:
    if faults := names.path_segment(name):
        return faults
    return [] if name == wanted else [f'must be `spec.version+"."+spec.group`: {go_quote(wanted)}']


def _validate_priorities(spec: APIServiceSpec) -> ErrorList:
    found: ErrorList = []
    if not 0 < spec.group_priority_minimum <= GROUP_PRIORITY_MAX:
        path = SPEC.child("groupPriorityMinimum")
        detail = "must be positive and less than 20000"
        found.append(invalid(path, spec.group_priority_minimum, detail))
    if not 0 < spec.version_priority <= VERSION_PRIORITY_MAX:
        detail = "must be positive and less than 1000"
        found.append(invalid(SPEC.child("versionPriority"), spec.version_priority, detail))
    return found
