"""The API server.

    request ─► http (app, router) ─► verbs ─► admission ─► storage (registry) ─► store
                  │      │                                      │
                  │      └─ auth: who is it, may they           └─► verbs.watch, storage.informer
                  └─ http.uvicorn_server: the network

server                assembles and runs a server from its settings
server_files          its credentials and kubeconfig
settings              how a server runs
server_context        what handlers need besides the request
kubernetes_service    the service `kubernetes` and its endpoints
direct_client         the client of programs in the server's process
http                  messages, routing, negotiation, encoding, flow control, the network
verbs                 get, list, watch, create, update, patch, delete, and subresources
admission             everything between a decoded body and the stored object
dynamic_admission     policies and webhooks, which users configure
auth                  authentication, authorization, reviews and credentials
audit                 the audit log
body_limits           bounds on the bodies of requests
worker_threads        long steps of requests, beside the event loop
storage               objects in the store
patching              patches and field managers
tables                objects as tables
resources, runtime_config   what is served
custom_resources      which custom resources are served, and what they need besides
discovery, openapi    documents about what is served
node_proxy            logs and commands of containers, by their nodes
namespace_controller  system namespaces, and the end of deleted ones
system_objects        other objects that the server itself keeps
errors                the tree of errors
"""
