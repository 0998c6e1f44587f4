"""Clients of an API server, with client-go's names: they read, watch, cache and write objects.

writes             writes as values, which controllers plan without I/O
contract           the Client and Transport protocols, watch events, and paged lists
errors             the tree of errors, from an API server's Status
rest_mapper        where a server serves a kind, and in which version
decoder            responses to objects: one, lists, and the lines of a watch
api_client         the Client on any transport, with retries
indexer            a cache of objects by kind, with indexes
informers          informers, which list and watch to keep the cache current
informer_factory   informers of many kinds that share one cache
event_correlator   which events to write: repeated ones are aggregated
event_recorder     writes events in the background
leader_election    one leader among several programs, by a Lease
namespace_deleter  deletes everything in a namespace
in_process         the transport to a server in this process
http               the transport over HTTP, kubeconfig and credentials
client_factory     entry points: a client for a kubeconfig, for a pod, or in this process
"""
