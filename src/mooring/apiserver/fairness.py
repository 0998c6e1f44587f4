"""MOVED."""

from mooring.apiserver.http.flow_control import Seats as Seats  # noqa
from mooring.apiserver.http.flow_control import FlowControl as Turnstile  # noqa

__all__ = ["Seats", "Turnstile"]  # noqa
