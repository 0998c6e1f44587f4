"""The way in without TLS: a token in a file, and a kubeconfig that has it."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

TOKEN_FILE = "admin-token"  # noqa: S105  # its name, not the token


def kubeconfig(url: str, token: str) -> str:
    """Return the text of a kubeconfig for the server."""
    user = f"    token: {token}\n" if token else ""
    return (
        "apiVersion: v1\n"
        "kind: Config\n"
        "clusters:\n"
        "- name: mooring\n"
        "  cluster:\n"
        f"    server: {url}\n"
        "users:\n"
        "- name: admin\n"
        f"  user:{chr(10) + user if user else ' {}' + chr(10)}"
        "contexts:\n"
        "- name: admin@mooring\n"
        "  context: {cluster: mooring, user: admin, namespace: default}\n"
        "current-context: admin@mooring\n"
    )


def admin_token(data_dir: Path) -> str:
    """Return the token of a folder, made if there is none."""
    path = data_dir / TOKEN_FILE
    if not path.exists():
        write_private(path, f"{secrets.token_urlsafe(32)}\n")
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at once or not at all."""
    mode = stat.S_IRUSR | stat.S_IWUSR
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
