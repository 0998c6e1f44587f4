"""The store on etcd v3: for who has an etcd, or wants more than one machine to hold the data."""

from mooring.store.etcd.store import EtcdStore, open_etcd

__all__ = ["EtcdStore", "open_etcd"]
