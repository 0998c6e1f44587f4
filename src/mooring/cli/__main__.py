"""The program `moor`: its commands, or the completion of a command line, which must be quick."""

from __future__ import annotations

import sys

COMPLETE = "__complete"  # how scripts of shells call the program


def main() -> None:
    """Run `moor`."""
    if sys.argv[1:2] == [COMPLETE]:
        from mooring.cli.shell.completer import main as complete

        complete(sys.argv[2:])
        return
    from mooring.cli.main import main as run  # imports click and the list of commands

    run()


if __name__ == "__main__":
    main()
