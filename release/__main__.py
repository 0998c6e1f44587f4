"""`python -m release`: build what is released."""

import sys

from release.build import main

sys.exit(main(sys.argv[1:]))
