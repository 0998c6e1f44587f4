"""Containers of a pod.

Fields that Mooring passes on without looking inside are `Json`; they are declared all the same,
because an object whose fields are all declared is decoded many times faster.
"""

from __future__ import annotations

from mooring.api.core.resources import ResourceRequirements
from mooring.api.meta import Json
from mooring.api.structs import Int32, Open, always, named

RESTART_ALWAYS = "Always"


class ContainerPort(Open, frozen=True, gc=False):
    """A port of a container, and maybe of the host."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = always(0)
    protocol: str = ""
    host_ip: str = named("hostIP", "")


class Container(Open, frozen=True, gc=False):
    """One program of a pod, with what it needs."""

    name: str = always("")
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[Json, ...] = ()
    env: tuple[Json, ...] = ()
    resources: ResourceRequirements = always(ResourceRequirements())
    resize_policy: tuple[Json, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[Json, ...] = ()
    volume_mounts: tuple[Json, ...] = ()
    volume_devices: tuple[Json, ...] = ()
    liveness_probe: Json = None
    readiness_probe: Json = None
    startup_probe: Json = None
    lifecycle: Json = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: Json = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False

    @property
    def is_sidecar(self) -> bool:
        """Whether the container, if it is an init container, runs as long as the pod."""
        return self.restart_policy == RESTART_ALWAYS


class EphemeralContainer(Container, frozen=True, gc=False):
    """A container added to a running pod for debugging."""

    target_container_name: str = ""
