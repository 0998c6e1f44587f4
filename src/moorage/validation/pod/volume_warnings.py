"""Warnings about the volumes of pods that are accepted, with Kubernetes' words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity
from moorage.kit.go_quote import go_quote
from moorage.validation.pod.field_rules import Tree

COMPARED_MAX = 100  # files of a volume, or ports of one number

_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SPELLED = {"storageos": "storageOS"}


def volume_warnings(volumes: Sequence[Tree], place: str) -> Iterator[str]:
    """Yield the warnings about volumes: their sources, and files that hide each other."""
    for position, volume in enumerate(volumes):
        for source in volume:
            if source in _VOLUMES:
                where = f"{place}[{position}].{_SPELLED.get(source, source)}"
                yield f"{where}: {_VOLUMES[source]}"
        template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
        if template is not None:
            where = f"{place}[{position}].ephemeral.volumeClaimTemplate.spec"
            yield from claim_warnings(template.get("spec", {}), where)
    yield from _of_files(volumes)


def claim_warnings(spec: Tree, place: str) -> Iterator[str]:
    """Yield the warnings about the spec of a persistent volume claim."""
    for name in ("requests", "limits"):
        written = spec.get("resources", {}).get(name, {}).get("storage")
        try:
            amount = None if written is None else Quantity.parse(written)
        except QuantityError:
            continue
        if amount is not None and amount.milli_value % 1000:
            yield fraction_warning(f"{place}.resources.{name}[storage]", amount)


def _of_files(volumes: Iterable[Tree]) -> Iterator[str]:
    """Yield the files of volumes that hide each other."""
    for volume in volumes:
        for title, paths in _files(volume):
            told = f"volume {go_quote(volume.get('name', ''))} ({title})"
            yield from (f"{told}: overlapping paths: {pair}" for pair in _overlaps(paths))
        for source in volume.get("projected", {}).get("sources") or ():
            if not source:
                name = go_quote(volume.get("name", ""))
                yield f"volume {name} (Projected) has no sources provided"


Files = Iterable[tuple[str, str]]  # paths, each with what is there


def _files(volume: Tree) -> Iterator[tuple[str, Files]]:
    if "configMap" in volume:
        source = volume["configMap"]
        yield f"ConfigMap {go_quote(source.get('name', ''))}", _items(source, "")
    if "secret" in volume:
        source = volume["secret"]
        yield f"Secret {go_quote(source.get('secretName', ''))}", _items(source, "")
    if "downwardAPI" in volume:
        yield "DownwardAPI", _items(volume["downwardAPI"], "")
    if "projected" in volume:
        sources = volume["projected"].get("sources") or ()
        yield "Projected", (file for source in sources for file in _projected(source))


def _items(source: Tree, what: str) -> Files:
    return ((item.get("path", ""), what) for item in source.get("items") or ())


def _projected(source: Tree) -> Files:
    """Return the files of the first source that is set."""
    for name, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if source.get(name, {}).get("items"):
            found: Tree = source[name]
            return _items(found, f"{title} {go_quote(found.get('name', ''))}")
    if source.get("downwardAPI", {}).get("items"):
        return _items(source["downwardAPI"], "DownwardAPI")
    if "serviceAccountToken" in source:
        return ((source["serviceAccountToken"].get("path", ""), "ServiceAccountToken"),)
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        name = bundle.get("name", bundle.get("signerName", ""))
        return ((bundle.get("path", ""), f"ClusterTrustBundle {go_quote(name)}"),)
    certificate = source.get("podCertificate", {})
    return (
        (certificate[name], f"PodCertificate {title}")
        for name, title in (
            ("certificateChainPath", "chain"),
            ("keyPath", "key"),
            ("credentialBundlePath", "credential bundle"),
        )
        if certificate.get(name)
    )


def _overlaps(files: Files) -> Iterator[str]:
    seen: list[tuple[str, str]] = []
    for written, what in islice(files, COMPARED_MAX):
        path = written.rstrip("/")
        for other, other_what in seen:
            is_below = f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")
            if path and other and is_below:
                yield f"{_file(path, what)} with {_file(other, other_what)}"
        seen.append((path, what))


def _file(path: str, what: str) -> str:
    return f"{go_quote(path)} ({what})" if what else go_quote(path)


def fraction_warning(place: str, amount: Quantity) -> str:
    """Return the warning about a fraction of a byte."""
    return f'{place}: fractional byte value "{amount}" is invalid, must be an integer'
