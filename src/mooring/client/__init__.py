"""How programs talk to an API server: objects read and kept, writes as values.

contract    what a client can do, whatever carries its requests
writes      what is to be written, as values that a plan returns and `act` carries out
objects     a copy of a cluster's objects with indexes, as informers keep it (pure)
errors      what can go wrong with a request
apiclient   the client itself, on a transport; `endpoints`, `decoding` and `paging` belong to it
transport   what carries requests: `http` over the network, `inprocess` by calling the server
informers   objects kept up to date by lists and watches
acting      carries out writes; `recorder` tells events
election    one leader among many programs, by a lease
"""
