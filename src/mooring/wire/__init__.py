"""Protocol buffers and gRPC: our own .proto files, and what protoc makes of them.

`python3 dev.py wire` makes the `*_pb2` modules anew. Both packages come with the extras
`mooring[drivers]` and `mooring[server]`, so nothing that starts with `moor` imports this room at
once, and other rooms have gRPC from here.
"""

from mooring.kit.extras import optional_imports

with optional_imports():
    import google.protobuf  # noqa: F401  # what protoc makes imports it
    import grpc
    import grpc.aio

__all__ = ["grpc"]
