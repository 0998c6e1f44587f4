"""HTTP/1.1 to API servers, and the credentials that it needs.

connection   one connection: one request at a time, the response as a whole or as a stream
pool         the transport, with a pool of connections
credentials  headers and TLS contexts, renewed in time
exec_plugin  credentials from an exec plugin
rest_config  how to reach a server, as a value; from the environment of a pod
kubeconfig   the same from kubeconfig files
"""
