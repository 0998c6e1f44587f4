"""The program `moor`: runs a command, or completes a command line, which must be fast."""

from __future__ import annotations

import sys

COMPLETE = "__complete"  # how the shell scripts call the program


def main() -> None:
    """Run `moor`."""
    if sys.argv[1:2] == [COMPLETE]:
        from moorage.cli.shell.completer import main as complete

        complete(sys.argv[2:])
        return
    from moorage.cli.main import main as run  # imports click and the list of commands

    run()


if __name__ == "__main__":
    main()
