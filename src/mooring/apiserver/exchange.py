"""MOVED."""

from mooring.apiserver.http.messages import Response as Answer  # noqa
from mooring.apiserver.http.messages import Request as Request  # noqa
from mooring.apiserver.http.messages import StreamingResponse as Streaming  # noqa

__all__ = ["Answer", "Request", "Streaming"]  # noqa
