"""Entry point of `python -m conformance`."""

import io
import sys

from conformance.runner import main

if __name__ == "__main__":
    # Cases may hold half characters; a report must not fail to print them.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
