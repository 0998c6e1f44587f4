"""The methods of etcd v3 that the store calls, with their types."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message

from moorage.wire import etcd_pb2 as pb
from moorage.wire import grpc

_SERVICES = "/etcdserverpb"
_ANY_SIZE = -1

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


def open_channel(
    target: str, credentials: grpc.ChannelCredentials | None = None
) -> grpc.aio.Channel:
    """Return a channel to etcd; it connects on first use."""
    # A page of a list may be larger than gRPC's 4 MB; its number of entries is bounded.
    options = [
        ("grpc.max_receive_message_length", _ANY_SIZE),
        ("grpc.max_send_message_length", _ANY_SIZE),
    ]
    if credentials is None:
        return grpc.aio.insecure_channel(target, options)
    return grpc.aio.secure_channel(target, credentials, options)


class EtcdStub:
    """The methods of one etcd."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        def unary(
            name: str, request: type[Q], response: type[R]
        ) -> grpc.aio.UnaryUnaryMultiCallable[Q, R]:
            return channel.unary_unary(
                f"{_SERVICES}.{name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )

        self.range = unary("KV/Range", pb.RangeRequest, pb.RangeResponse)
        self.transact = unary("KV/Txn", pb.TxnRequest, pb.TxnResponse)
        self.compact = unary("KV/Compact", pb.CompactionRequest, pb.CompactionResponse)
        self.grant_lease = unary("Lease/LeaseGrant", pb.LeaseGrantRequest, pb.LeaseGrantResponse)
        self.revoke_lease = unary(
            "Lease/LeaseRevoke", pb.LeaseRevokeRequest, pb.LeaseRevokeResponse
        )
        self.watch = channel.stream_stream(
            f"{_SERVICES}.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )
