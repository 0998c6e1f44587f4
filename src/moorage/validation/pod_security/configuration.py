"""The configuration of pod security: defaults for namespaces without labels, and exemptions.

Kubernetes' file for admission plugins has it, in place or as the path of another file:

    apiVersion: apiserver.config.k8s.io/v1
    kind: AdmissionConfiguration
    plugins:
      - name: PodSecurity
        configuration:
          apiVersion: pod-security.admission.config.k8s.io/v1
          kind: PodSecurityConfiguration
          defaults: {enforce: baseline, enforce-version: latest}
          exemptions: {namespaces: [kube-system]}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from moorage.api.documents import CORE, read
from moorage.api.errors import ApiError
from moorage.api.field_path import Path, root
from moorage.api.names import dns1123_label, dns1123_subdomain
from moorage.validation.errors import ErrorList, duplicate, invalid
from moorage.validation.pod_security.levels import (
    BAD_LEVEL,
    BAD_VERSION,
    LATEST,
    PRIVILEGED_POLICY,
    Level,
    LevelVersion,
    PodSecurityPolicy,
    parse_level,
    parse_version,
)

PLUGIN: Final = "PodSecurity"
FILE_VERSION, FILE_KIND = "apiserver.config.k8s.io/v1", "AdmissionConfiguration"
GROUP, KIND = "pod-security.admission.config.k8s.io", "PodSecurityConfiguration"
VERSIONS: Final = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))

_EMPTY_NAME = "username must not be empty"


class PodSecurityConfigurationError(Exception):
    """A configuration that cannot be used, with its file and the fact."""


class PodSecurityConfiguration(Struct, frozen=True):
    """What holds for namespaces without labels, and what is not checked."""

    defaults: PodSecurityPolicy = PRIVILEGED_POLICY
    exempt_users: frozenset[str] = frozenset()
    exempt_namespaces: frozenset[str] = frozenset()
    exempt_runtime_classes: frozenset[str] = frozenset()


class _Defaults(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    enforce: str = ""
    enforce_version: str = ""
    audit: str = ""
    audit_version: str = ""
    warn: str = ""
    warn_version: str = ""


class _Exemptions(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    usernames: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    runtime_classes: tuple[str, ...] | None = None


class _Configuration(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    defaults: _Defaults = field(default_factory=_Defaults)
    exemptions: _Exemptions = field(default_factory=_Exemptions)


class _Plugin(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    path: str = ""
    configuration: dict[str, Any] | None = None


class _File(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    plugins: tuple[_Plugin, ...] | None = None


def read_admission_configuration(
    data: bytes, source: str, read_file: Callable[[str], bytes]
) -> PodSecurityConfiguration:
    """Return the configuration of PodSecurity, or raise PodSecurityConfigurationError.

    `read_file` returns the content of a file that a plugin names; it may raise OSError.
    """
    tree = _document(data, source)
    file = _converted(tree, _File, source)
    if (file.api_version, file.kind) != (FILE_VERSION, FILE_KIND):
        raise _refused(source, f"must be a {FILE_VERSION} {FILE_KIND}, is a {_type_of(tree)}")
    found = PodSecurityConfiguration()
    seen: set[str] = set()
    for number, plugin in enumerate(file.plugins or ()):
        where = f"{source}: plugins[{number}]"
        if plugin.name != PLUGIN:
            raise _refused(where, f"{plugin.name!r} takes no configuration; {PLUGIN} does")
        if plugin.name in seen:
            raise _refused(where, f"{PLUGIN} is configured already")
        seen.add(plugin.name)
        found = _plugin(plugin, where, read_file)
    return found


def _plugin(
    plugin: _Plugin, where: str, read_file: Callable[[str], bytes]
) -> PodSecurityConfiguration:
    if plugin.configuration is not None:
        return _read(plugin.configuration, f"{where}.configuration")
    if not plugin.path:
        return PodSecurityConfiguration()
    try:
        data = read_file(plugin.path)
    except OSError as error:
        raise _refused(f"{where}.path", str(error)) from None
    return _read(_document(data, plugin.path), plugin.path)


def _read(tree: Any, source: str) -> PodSecurityConfiguration:
    given = _converted(tree, _Configuration, source)
    if given.kind != KIND or given.api_version not in VERSIONS:
        raise _refused(source, f"must be a {VERSIONS[0]} {KIND}, is a {_type_of(tree)}")
    errors: ErrorList = []
    defaults = given.defaults
    policy = PodSecurityPolicy(
        enforce=_mode("enforce", defaults.enforce, defaults.enforce_version, errors),
        warn=_mode("warn", defaults.warn, defaults.warn_version, errors),
        audit=_mode("audit", defaults.audit, defaults.audit_version, errors),
    )
    exempt, path = given.exemptions, root("exemptions")
    found = PodSecurityConfiguration(
        policy,
        exempt_namespaces=_names(
            exempt.namespaces or (), path.child("namespaces"), dns1123_label, errors
        ),
        exempt_runtime_classes=_names(
            exempt.runtime_classes or (), path.child("runtimeClasses"), dns1123_subdomain, errors
        ),
        exempt_users=_names(
            exempt.usernames or (),
            path.child("usernames"),
            lambda name: [] if name else [_EMPTY_NAME],
            errors,
        ),
    )
    if errors:
        raise _refused(source, "; ".join(map(str, errors)))
    return found


def _mode(mode: str, level: str, version: str, errors: ErrorList) -> LevelVersion:
    """Return the default of a mode; what is not set is privileged, and the latest version."""
    path = root("defaults")
    parsed = parse_level(level or Level.PRIVILEGED)
    if parsed is None:
        errors.append(invalid(path.child(mode), level, BAD_LEVEL))
    parsed_version = parse_version(version or str(LATEST))
    if parsed_version is None:
        errors.append(invalid(path.child(f"{mode}-version"), version, BAD_VERSION))
    return LevelVersion(parsed or Level.RESTRICTED, parsed_version or LATEST)


def _names(
    names: tuple[str, ...], path: Path, faults: Callable[[str], list[str]], errors: ErrorList
) -> frozenset[str]:
    valid: set[str] = set()
    for number, name in enumerate(names):
        if found := faults(name):
            errors.append(invalid(path.index(number), name, ", ".join(found)))
        elif name in valid:
            errors.append(duplicate(path.index(number), name))
        valid.add(name)
    return frozenset(valid)


def _document(data: bytes, source: str) -> Any:
    try:
        documents = list(read(data, source=source, schema=CORE))
    except (ApiError, RecursionError) as error:
        raise PodSecurityConfigurationError(str(error)) from None
    if len(documents) != 1:
        raise _refused(source, f"must hold one document, holds {len(documents)}")
    return documents[0].tree


def _converted(tree: Any, wanted: type[Any], source: str) -> Any:
    try:
        return msgspec.convert(tree, wanted)
    except msgspec.ValidationError as error:
        raise _refused(source, str(error)) from None


def _type_of(tree: Mapping[str, Any]) -> str:
    return f"{tree.get('apiVersion')} {tree.get('kind')}"


def _refused(where: str, why: str) -> PodSecurityConfigurationError:
    return PodSecurityConfigurationError(f"{where}: {why}")
