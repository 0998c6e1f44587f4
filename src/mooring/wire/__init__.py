"""Protocol buffers and gRPC: our own .proto files, and what protoc makes of them.

`python3 dev.py wire` makes the `*_pb2` modules anew. They need the extra `mooring[server]`, so
nothing that starts with `moor` imports this room at once.
"""
