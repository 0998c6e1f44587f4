"""`python -m reference`: write the pages, or with --check say which are stale."""

import sys

from reference.pages import main

sys.exit(main(sys.argv[1:]))
