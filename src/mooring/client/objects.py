"""MOVED."""

from mooring.client.indexer import ObjectKey as Key  # noqa
from mooring.client.indexer import Indexer as Objects
from mooring.client.indexer import is_older as is_older
from mooring.client.indexer import object_key as key_of

__all__ = ["Key", "Objects", "is_older", "key_of"]
