"""HTTP: from bytes to a request, and from a result to bytes.

messages            paths, requests, responses and documents
status              Status errors, with Kubernetes' messages
app                 the ASGI application: bodies, gzip, streams, timeouts
router              authentication, flow control, authorization, then the handler
extensions          paths that other packages answer
non_resource        discovery, OpenAPI, health, version, metrics
negotiation         the representation of a response
response_encoder    objects, lists and events as bytes
direct_access       access of clients in this process: seat, rights and metrics of a request
deadlines           the time that a request may take
flow_control        seats for requests, shared among users
metrics             counts of requests
uvicorn_server      the listener, with TLS
response_writer     a response with one call, and writes of one turn together
"""
