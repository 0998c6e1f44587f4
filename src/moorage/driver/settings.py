"""Node, folders and sockets of a driver."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from moorage.api.cdi import DYNAMIC_FOLDER
from moorage.api.device_metadata import API_VERSION, V1ALPHA1
from moorage.driver.errors import StartError
from moorage.hardware.attributes import NumaNodeForm
from moorage.wire.services import SOCKET_PATH_BYTES_MAX

KUBELET_DIR = "/var/lib/kubelet"
METADATA_VERSIONS = {"v1beta1": API_VERSION, "v1alpha1": V1ALPHA1}
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a driver that an operator decides."""

    node_name: str = ""  # empty: publishes for several nodes, and prepares nothing
    kubelet_dir: Path = Path(KUBELET_DIR)
    registrar_dir: Path | None = None  # None: plugins_registry of the kubelet
    data_dir: Path | None = None  # None: plugins/<driver> of the kubelet
    cdi_dir: Path = Path(DYNAMIC_FOLDER)
    pod_uid: str = ""  # for a driver that may run beside its next version
    metadata: tuple[str, ...] = ()  # API versions of device metadata; empty: no metadata
    numa_form: NumaNodeForm = NumaNodeForm.SCALAR
    boot_id: str = ""  # empty: this machine's

    def check(self) -> None:
        """Raise StartError for impossible settings."""
        if len(self.pod_uid) > 128 or "/" in self.pod_uid or self.pod_uid.startswith("."):
            raise StartError(f"{self.pod_uid[:128]!r} cannot be the UID of a pod")
        unknown = [each for each in self.metadata if each not in METADATA_VERSIONS.values()]
        if unknown:
            raise StartError(f'metadata version "{unknown[0]}" is not supported')
        if self.metadata and API_VERSION not in self.metadata:
            raise StartError(
                f"the latest metadata version is {API_VERSION} and must be enabled explicitly"
            )

    def data_folder(self, driver: str) -> Path:
        """Return the folder of a driver's files and its socket."""
        return self.data_dir or self.kubelet_dir / "plugins" / driver

    @property
    def registrar_folder(self) -> Path:
        """The folder in which the kubelet looks for drivers."""
        return self.registrar_dir or self.kubelet_dir / "plugins_registry"

    def socket(self, driver: str) -> Path:
        """Return the socket of the DRA service."""
        name = f"dra-{self.pod_uid}.sock" if self.pod_uid else "dra.sock"
        return _bounded(self.data_folder(driver) / name)

    def registrar_socket(self, driver: str) -> Path:
        """Return the registration socket."""
        folder = self.registrar_folder
        if not self.pod_uid:
            return _bounded(folder / f"{driver}-reg.sock")
        return _bounded(folder / rolling_registrar_name(folder, driver, self.pod_uid))

    def current_boot_id(self) -> str:
        """Return the id of this boot of the machine; empty if unknown."""
        if self.boot_id:
            return self.boot_id
        try:
            return BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def rolling_registrar_name(folder: Path, driver: str, pod_uid: str) -> str:
    """Return the first name that makes a valid socket path: with the UID, or with hashes."""
    for name in (
        f"{driver}-{pod_uid}-reg.sock",
        f"{driver}-{_hashed(pod_uid, 8)}-reg.sock",
    ):
        # Kubernetes allows one byte more than Linux.
        if len(str(folder / name).encode()) <= SOCKET_PATH_BYTES_MAX:
            return name
    hashed = _hashed(f"{driver}\0{pod_uid}", 16)
    return f"dra-{hashed}-reg.sock"


def _hashed(text: str, size: int) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()[:size]).rstrip(b"=").decode()


def _bounded(path: Path) -> Path:
    size = len(str(path).encode())
    if size > SOCKET_PATH_BYTES_MAX:
        raise StartError(
            f"{path}: a socket's path may have {SOCKET_PATH_BYTES_MAX} bytes, this has {size}; "
            "choose a shorter folder"
        )
    return path
