"""What can go wrong on a node.

NodeAgentError
├── DevicesRefusedError        a pod cannot have its devices now; the agent tries again
│   └── PodRefusedError        a pod can never have its devices: it fails
├── RuntimeRefusedError        a runtime cannot carry out a request
├── UnresolvableError          CDI ids that no spec has, or too many have
├── SandboxError               a pod has no sandbox to run in
├── ConfigError                a container cannot be created as its spec has it
├── SourceError                an object that a pod needs cannot be read
├── NoContainerError           a request to the kubelet server names no usable container
├── RegistrationRefusedError   a plugin cannot be registered
├── NotRegisteredError         no plugin of this driver is registered
├── CallError                  a gRPC call to a driver failed
├── ResponseError              a driver failed, or its response is invalid
├── PluginError                a device plugin failed, or its response is invalid
├── CheckpointError            a checkpoint cannot be used
└── SaveError                  a checkpoint cannot be written

The shim has its own few, beside the code that raises them: it must import next to nothing.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.wire import grpc

TEXT_CHARACTERS_MAX = 2048  # of an error from a driver


class NodeAgentError(Exception):
    """Something on this node went wrong."""


class DevicesRefusedError(NodeAgentError):
    """A pod cannot have its devices now; the text says why, and the agent tries again."""


class PodRefusedError(DevicesRefusedError):
    """A pod can never have its devices, so it fails; `reason` is one word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class RuntimeRefusedError(NodeAgentError):
    """A runtime cannot run a container; the text says why, for the status of its pod.

    `reason` is one word, as Kubernetes has them: CreateContainerError, ErrImagePull, …
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class UnresolvableError(NodeAgentError):
    """CDI ids that no spec has, or that several have; the text names them and the reason."""


class SandboxError(NodeAgentError):
    """A pod has no sandbox to run in; the text says why."""


class ConfigError(NodeAgentError):
    """A container cannot be created as its spec has it; the text says why."""


class SourceError(NodeAgentError):
    """An object that a pod needs cannot be read; the text says why."""


class NoContainerError(NodeAgentError):
    """A container does not exist, or does not have what is requested; the text says why."""

    def __init__(self, code: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.code = code


class RegistrationRefusedError(NodeAgentError):
    """A plugin cannot be registered; the plugin receives the text."""


class NotRegisteredError(NodeAgentError):
    """No plugin of this driver is registered at the moment."""

    def __init__(self, driver: str) -> None:
        super().__init__(f"DRA driver {driver} is not registered")
        self.driver = driver


class CallError(NodeAgentError):
    """A gRPC call that failed, with the message of gRPC in Go."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        text = details[:TEXT_CHARACTERS_MAX]
        super().__init__(f"rpc error: code = {code_name(code)} desc = {text}")
        self.code = code


class ResponseError(NodeAgentError):
    """A driver failed, or its response is invalid; the text is shown to users of the pod."""


class PluginError(NodeAgentError):
    """A device plugin failed, or its response is invalid; the text is Kubernetes' own."""


class CheckpointError(NodeAgentError):
    """A checkpoint cannot be used; the text says which, why, and what to do."""


class SaveError(NodeAgentError):
    """A checkpoint could not be written; the text names the file and says why."""


def code_name(code: grpc.StatusCode) -> str:
    """Return the name of a status code as Go has it: `DeadlineExceeded`."""
    special = {"OK": "OK", "CANCELLED": "Canceled"}
    return special.get(code.name) or code.name.title().replace("_", "")
