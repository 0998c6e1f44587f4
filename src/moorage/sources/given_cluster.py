"""The cluster and the manifests that commands and the library answer questions about."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from moorage.insight.messages import Concern
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.consistency import check_consistency
from moorage.insight.snapshot.snapshot import Snapshot, overlay
from moorage.insight.snapshot.unread import Obstacle, Unread, UnreadKind
from moorage.insight.snapshot.written_objects import DroppedFields, RefusedObject, WrittenDocument
from moorage.sources.cluster_sources import ClusterSource, give_all, unwatched
from moorage.validation.strategy import Context


class GivenCluster(Struct, frozen=True):
    """A cluster, and manifests to plan or to inspect.

    cluster     objects of dumps, running clusters and profiles
    manifests   objects of manifests, as the cluster would store them
    warnings    about any of them
    refused     what an API server would reject, with places
    unreadable  what could not be read
    context     gates, time and extensions
    """

    cluster: Snapshot
    manifests: Snapshot
    warnings: tuple[Concern, ...]
    refused: tuple[str, ...]
    unreadable: tuple[str, ...]
    context: Context
    namespace: str = "default"
    documents: tuple[WrittenDocument, ...] = ()  # of the manifests
    refused_objects: tuple[RefusedObject, ...] = ()
    dropped_fields: tuple[DroppedFields, ...] = ()

    @property
    def everything(self) -> Snapshot:
        """The cluster together with the manifests."""
        return self.cluster.with_objects(self.manifests.objects())


def read_given(
    *,
    cluster: Iterable[ClusterSource],
    manifests: Iterable[ClusterSource],
    context: Context,
    namespace: str = "default",
    on_object: Callable[[str], None] = unwatched,
) -> GivenCluster:
    """Return the content of the sources, or raise ProfileError for an unknown profile."""
    builder = SnapshotBuilder(context, namespace=namespace, is_cluster=True)
    base = give_all(cluster, builder, on_object)
    of_cluster = base.snapshot()
    builder = SnapshotBuilder(context, namespace=namespace, known=of_cluster.namespaces)
    added = give_all(manifests, builder, on_object)
    of_manifests, overlaid = overlay(of_cluster, added.snapshot())
    everything = of_cluster.with_objects(of_manifests.objects())
    if not everything.nodes and _is_dump_without_nodes(of_cluster):
        unread = Unread((*of_cluster.unread.kinds, UnreadKind("Node", Obstacle.ABSENT)))
        of_cluster, everything = (replace(each, unread=unread) for each in (of_cluster, everything))
    inconsistent = check_consistency(everything)
    warnings = (*base.concerns(), *added.concerns(), *overlaid, *inconsistent)
    return GivenCluster(
        cluster=of_cluster,
        manifests=of_manifests,
        warnings=warnings,
        refused=(*base.refused, *added.refused),
        unreadable=(*base.unreadable, *added.unreadable),
        context=context,
        namespace=namespace,
        documents=tuple(added.written()),
        refused_objects=(*base.refused_objects, *added.refused_objects),
        dropped_fields=(*base.dropped_fields, *added.dropped_fields),
    )


def _is_dump_without_nodes(cluster: Snapshot) -> bool:
    """Return whether nodes were left out of a dump: pods are on some, so there are nodes."""
    return cluster.unread.knows("Node") and any(each.spec.node_name for each in cluster.pods)
