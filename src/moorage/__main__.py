"""`python -m moorage`: the program `moor`."""

from moorage.cli.__main__ import main

if __name__ == "__main__":
    main()
