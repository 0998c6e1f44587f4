"""The store on etcd v3: for users who have an etcd, or want more than one machine to hold the data.

client      members, TLS, keys below our root, and etcd's errors as the store's
watch_feed  one etcd watch that feeds all of our watches
store       the contract as etcd's transactions
"""

from moorage.store.etcd.client import TlsFiles, read_endpoint
from moorage.store.etcd.store import EtcdStore, open_etcd

__all__ = ["EtcdStore", "TlsFiles", "open_etcd", "read_endpoint"]
