"""The methods of etcd v3 that are called, with their types."""

from __future__ import annotations

from mooring.wire import etcd_pb2 as pb
from mooring.wire import grpc

_SERVICES = "/etcdserverpb"
_ANY_SIZE = -1


def open_channel(
    target: str, credentials: grpc.ChannelCredentials | None = None
) -> grpc.aio.Channel:
    """Return a channel to etcd, which connects when it is used."""
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
        self.range = channel.unary_unary(
            f"{_SERVICES}.KV/Range",
            request_serializer=pb.RangeRequest.SerializeToString,
            response_deserializer=pb.RangeResponse.FromString,
        )
        self.transact = channel.unary_unary(
            f"{_SERVICES}.KV/Txn",
            request_serializer=pb.TxnRequest.SerializeToString,
            response_deserializer=pb.TxnResponse.FromString,
        )
        self.compact = channel.unary_unary(
            f"{_SERVICES}.KV/Compact",
            request_serializer=pb.CompactionRequest.SerializeToString,
            response_deserializer=pb.CompactionResponse.FromString,
        )
        self.grant_lease = channel.unary_unary(
            f"{_SERVICES}.Lease/LeaseGrant",
            request_serializer=pb.LeaseGrantRequest.SerializeToString,
            response_deserializer=pb.LeaseGrantResponse.FromString,
        )
        self.revoke_lease = channel.unary_unary(
            f"{_SERVICES}.Lease/LeaseRevoke",
            request_serializer=pb.LeaseRevokeRequest.SerializeToString,
            response_deserializer=pb.LeaseRevokeResponse.FromString,
        )
        self.watch = channel.stream_stream(
            f"{_SERVICES}.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )
