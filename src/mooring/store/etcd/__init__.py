"""The store on etcd v3: for who has an etcd, or wants more than one machine to hold the data."""

from mooring.store.etcd.endpoints import Trust, read_endpoint
from mooring.store.etcd.store import ROOT, EtcdStore, open_etcd

__all__ = ["ROOT", "EtcdStore", "Trust", "open_etcd", "read_endpoint"]
