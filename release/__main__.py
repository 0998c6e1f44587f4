"""`python -m release`: builds a release."""

import sys

from release.build import main

sys.exit(main(sys.argv[1:]))
