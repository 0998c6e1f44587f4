"""MOVED."""

from mooring.client.client_factory import RestConfig as Access
from mooring.client.client_factory import Token as Token
from mooring.client.client_factory import Tokens as Tokens
from mooring.client.client_factory import call_client as call_client
from mooring.client.client_factory import find_access as find_access
from mooring.client.client_factory import http_client as http_client

__all__ = ["Access", "Token", "Tokens", "call_client", "find_access", "http_client"]
