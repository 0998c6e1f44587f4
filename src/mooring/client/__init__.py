"""How programs talk to an API server: objects read and kept, writes as values.

contract    what a client can do, whatever carries its requests
writes      what is to be written, as values that a plan returns and `act` carries out
objects     a copy of a cluster's objects with indexes, as informers keep it (pure)
"""
