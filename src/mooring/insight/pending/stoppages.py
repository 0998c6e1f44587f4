"""MOVED."""

from mooring.insight.explain.pods import kubernetes_writes as written_of  # noqa

__all__ = ["written_of"]  # noqa
