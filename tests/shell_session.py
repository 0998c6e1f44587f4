"""One shell in which the commands of a page are run, as its readers type them.

The folder, variables, functions and background jobs of one command are there for the next.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

STOPPED_S_MAX = 10
# Reads names of files from descriptor 3, runs each in this shell with the status that the command
# before had, and says on descriptor 4 how it ended, where it left the shell, and what it exported.
_LOOP = """
while IFS= read -r -u 3 next; do
    . "$next" 3>&- 4>&- </dev/null
    { printf '%s\\0%s\\0' "$?" "$PWD"; env -0; printf '\\0'; } >&4
done
"""


class ShellSession:
    """A bash that stays; what it prints is that of the command that was run last."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, timeout_s: float) -> None:
        self.folder = folder
        self.exported = dict(environment)
        self.status = 0
        self._timeout_s = timeout_s
        self._script = folder.parent / f"{folder.name}.command"
        names, self._names = os.pipe()
        self._ends, ends = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", f"exec 3<&{names} 4>&{ends}; {_LOOP}"],
            cwd=folder,
            env=self.exported,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(names, ends),
            start_new_session=True,
        )
        os.close(names)
        os.close(ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._names)
        os.killpg(self._shell.pid, signal.SIGKILL)  # background jobs included
        self._shell.wait(STOPPED_S_MAX)
        os.close(self._ends)
        assert self._shell.stdout is not None
        self._shell.stdout.close()

    def write(self, name: str, lines: tuple[str, ...]) -> None:
        """Save a file as a reader does: below the folder where the shell is."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def run(self, command: str) -> str:
        """Run a command, and return what it printed."""
        self._script.write_text(f"(exit {self.status})\n{command}\n", encoding="utf-8")
        os.write(self._names, f"{self._script}\n".encode())
        printed, end = self._until_it_ends(command)
        status, folder, *exported = end.decode().split("\0")
        self.status, self.folder = int(status), Path(folder)
        self.exported = dict(each.split("=", 1) for each in exported if "=" in each)
        return printed.decode()

    def _until_it_ends(self, command: str) -> tuple[bytes, bytes]:
        """Return what a command prints, and what the shell says at its end."""
        assert self._shell.stdout is not None
        output, printed, end = self._shell.stdout.fileno(), b"", b""
        deadline = time.monotonic() + self._timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self._ends, selectors.EVENT_READ)
            # All that the command itself printed is in the pipe when the shell says that it ended.
            while not end.endswith(b"\0\0"):
                ready = {key.fd for key, _ in selector.select(deadline - time.monotonic())}
                assert ready, f"$ {command}\n{printed.decode()}\nhas not ended"
                if output in ready:
                    part = os.read(output, 1 << 16)
                    assert part, f"$ {command}\n{printed.decode()}\nended the shell"
                    printed += part
                elif self._ends in ready:
                    end += os.read(self._ends, 1 << 16)
        return printed, end.removesuffix(b"\0\0")
