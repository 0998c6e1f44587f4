"""Rules of annotations that pods once had fields for, or that mean something to a pod.

mirror pods            the pod is the image of a static pod of its node
seccomp, AppArmor      profiles, which have fields now; both must agree
tolerations            of releases before there was a field
deletion cost          which pods a controller deletes first
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree, parse_json
from moorage.api.core.placement import Toleration
from moorage.api.core.pod import (
    MIRROR_POD_ANNOTATION,
    Container,
    Pod,
    PodSpec,
    PodTemplateSpec,
)
from moorage.api.errors import ApiError
from moorage.api.field_path import Path
from moorage.api.go_integers import parse_int64
from moorage.api.go_type_names import json_type
from moorage.api.meta import ObjectMeta
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import ErrorList, forbidden, invalid
from moorage.validation.metadata import METADATA
from moorage.validation.pod.containers import with_paths
from moorage.validation.pod.field_rules import Tree, descending_path
from moorage.validation.pod.security_context import WINDOWS, validate_app_armor
from moorage.validation.pod.tolerations import validate_tolerations

ANNOTATIONS = METADATA.child("annotations")
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"  # and the name of a container
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"  # and its name
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
LOCALHOST = "localhost/"  # and the name of a profile

OBSOLETE = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{what}"
    for stage in ("alpha", "beta")
    for what in ("s", "-statuses")
)

_INT32 = range(-(2**31), 2**31)

Annotations = Mapping[str, str]


def validate_annotations(
    annotations: Annotations, spec: PodSpec, path: Path, old: Annotations | None = None
) -> ErrorList:
    """Validate the annotations of a pod or pod template; `old` are those before an update."""
    if not annotations:
        return []
    found: ErrorList = []
    mark = annotations.get(MIRROR_POD_ANNOTATION)
    if mark is not None and not spec.node_name:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.append(invalid(path.key(MIRROR_POD_ANNOTATION), mark, detail))
    if annotations.get(TOLERATIONS):
        found += _validate_written_tolerations(annotations[TOLERATIONS], path)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_cost(cost):
        before = (old or {}).get(DELETION_COST)
        if before is None or _is_cost(before):
            found.append(invalid(path.key(DELETION_COST), cost, "must be a 32bit integer"))
    for key, value in annotations.items():
        if key == SECCOMP or key.startswith(CONTAINER_SECCOMP):
            found += _validate_seccomp(value, path.child(key))
        elif key.startswith(APP_ARMOR):
            found += _validate_app_armor(key, value, spec, path.key(key))
    return found


def validate_template_annotations(template: PodTemplateSpec, path: Path) -> ErrorList:
    """Validate the annotations of a pod template, by themselves and with the fields."""
    annotations, spec = template.metadata.annotations, template.spec
    found = validate_annotations(annotations, spec, path.child("annotations"))
    return found + validate_profiles(annotations, spec, path.child("spec"))


def validate_annotations_update(new: Pod, old: Pod) -> ErrorList:
    """Validate that the annotations of mirror pods and of AppArmor are unchanged."""
    after, before = new.metadata.annotations, old.metadata.annotations
    found: ErrorList = []
    for key, value in before.items():
        if (what := _fixed(key)) and after.get(key) != value:
            found.append(forbidden(ANNOTATIONS.key(key), f"may not remove or update {what}"))
    for key in after:
        if key not in before and (what := _fixed(key)):
            found.append(forbidden(ANNOTATIONS.key(key), f"may not add {what}"))
    return found + validate_annotations(after, new.spec, ANNOTATIONS, before)


def _fixed(key: str) -> str:
    """Return what an annotation is that no update may change, or ""."""
    if key == MIRROR_POD_ANNOTATION:
        return "mirror pod annotation"
    return "AppArmor annotations" if key.startswith(APP_ARMOR) else ""


def _is_cost(text: str) -> bool:
    """Return whether a text is a number of 32 bits without a plus or leading zeros."""
    number = parse_int64(text)
    is_plain = text == "0" or not text.startswith(("+", "0"))
    return number is not None and number in _INT32 and is_plain


def _validate_written_tolerations(text: str, path: Path) -> ErrorList:
    try:
        written = parse_json(text.encode())
        if written is None:
            return []
        if not isinstance(written, list):
            what = f"{json_type(written)} into Go value of type []core.Toleration"
            return [invalid(path, TOLERATIONS, f"json: cannot unmarshal {what}")]
        tolerations = tuple(decode_tree(item, Toleration).value for item in written)
    except ApiError as error:
        return [invalid(path, TOLERATIONS, str(error))]
    return validate_tolerations(tolerations, path.child(TOLERATIONS))


def _validate_seccomp(profile: str, path: Path) -> ErrorList:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(LOCALHOST):
        return descending_path(profile.removeprefix(LOCALHOST), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _validate_app_armor(key: str, profile: str, spec: PodSpec, path: Path) -> ErrorList:
    name = key.removeprefix(APP_ARMOR)
    found: ErrorList = []
    if all(container.name != name for container in _all_containers(spec)):
        found.append(invalid(path, name, "container not found"))
    is_known = profile in ("", "runtime/default", "unconfined") or profile.startswith(LOCALHOST)
    if not is_known:
        detail = f"invalid AppArmor profile name: {go_quote(profile)}"
        found.append(invalid(path, profile, detail))
    return found


def _all_containers(spec: PodSpec) -> Iterator[Container]:
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers


# --- annotations and the fields that replace them -----------------------------------------


def validate_profiles(annotations: Annotations, spec: PodSpec, path: Path) -> ErrorList:
    """Validate that the profiles in annotations and in fields are the same."""
    if not annotations:
        return []
    found: ErrorList = []
    whole: Tree = spec.security_context or {}
    place = path.child("securityContext", "seccompProfile")
    if SECCOMP in annotations:
        profile = whole.get("seccompProfile")
        found += _validate_same(annotations[SECCOMP], profile, "seccomp", place)
    is_windows = _is_windows(spec)
    for container, container_path in with_paths(spec, path):
        own: Tree = container.security_context or {}
        place = container_path.child("securityContext")
        seccomp = annotations.get(f"{CONTAINER_SECCOMP}{container.name}")
        if seccomp is not None:
            profile = own.get("seccompProfile")
            found += _validate_same(seccomp, profile, "seccomp", place.child("seccompProfile"))
        app_armor = annotations.get(f"{APP_ARMOR}{container.name}")
        if app_armor is not None and not is_windows:
            profile = own.get("appArmorProfile") or whole.get("appArmorProfile")
            found += _validate_same(app_armor, profile, "apparmor", place.child("appArmorProfile"))
    return found


def without_obsolete(metadata: ObjectMeta) -> ObjectMeta:
    """Return metadata without the annotations that were init containers once."""
    if OBSOLETE.isdisjoint(metadata.annotations):
        return metadata
    kept = {key: value for key, value in metadata.annotations.items() if key not in OBSOLETE}
    return replace(metadata, annotations=kept)


def _is_windows(spec: PodSpec) -> bool:
    return spec.os is not None and spec.os.get("name") == WINDOWS


def _validate_same(annotation: str, field: Tree | None, what: str, path: Path) -> ErrorList:
    same: tuple[str, ...] = ()
    match (field or {}).get("type"):
        case "Unconfined":
            same = ("unconfined",)
        case "RuntimeDefault":
            same = ("runtime/default", *(("docker/default",) if what == "seccomp" else ()))
        case "Localhost" if annotation.startswith(LOCALHOST):
            if annotation.removeprefix(LOCALHOST) == (field or {}).get("localhostProfile"):
                return []
            detail = f"{what} profile in annotation and field must match"
            return [forbidden(path.child("localhostProfile"), detail)]
        case "Localhost":
            pass
        case _:
            return []
    if annotation in same:
        return []
    return [forbidden(path.child("type"), f"{what} type in annotation and field must match")]


def with_app_armor(pod: Pod) -> tuple[Pod, list[str]]:
    """Return a new pod with AppArmor's annotations as fields too, and warnings about them."""
    annotations, spec = pod.metadata.annotations, pod.spec
    if not any(key.startswith(APP_ARMOR) for key in annotations) or _is_windows(spec):
        return pod, []
    warnings: list[str] = []
    whole = (spec.security_context or {}).get("appArmorProfile")

    def changed(container: Any) -> Any:
        key = f"{APP_ARMOR}{container.name}"
        own = container.security_context or {}
        if key not in annotations or "appArmorProfile" in own:
            return container
        profile = app_armor_profile(annotations[key])
        if profile is not None and profile == whole:
            return container
        warnings.append(app_armor_warning(str(ANNOTATIONS.key(key))))
        if profile is None:
            return container
        return replace(container, security_context={**own, "appArmorProfile": profile})

    spec = replace(
        spec,
        init_containers=tuple(map(changed, spec.init_containers)),
        containers=tuple(map(changed, spec.containers)),
        ephemeral_containers=tuple(map(changed, spec.ephemeral_containers)),
    )
    return replace(pod, spec=spec), warnings


def app_armor_profile(annotation: str) -> Tree | None:
    """Return the profile that an annotation names, or None if it names no valid one."""
    profile: Tree
    match annotation:
        case "unconfined":
            profile = {"type": "Unconfined"}
        case "runtime/default":
            profile = {"type": "RuntimeDefault"}
        case _ if annotation.startswith(LOCALHOST) and annotation != LOCALHOST:
            file = annotation.removeprefix(LOCALHOST)
            profile = {"type": "Localhost", "localhostProfile": file}
        case _:
            return None
    return None if validate_app_armor(profile, ANNOTATIONS) else profile


def app_armor_warning(place: str) -> str:
    """Return the warning about an annotation of AppArmor."""
    return f'{place}: deprecated since v1.30; use the "appArmorProfile" field instead'
