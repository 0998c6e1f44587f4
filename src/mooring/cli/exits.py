"""Exit statuses, the same for every command."""

FITS = 0  # all is well: valid, fits, done
DOES_NOT_FIT = 1  # the answer is no: refused, does not fit
USAGE = 2  # the command line is wrong (click's own)
UNREADABLE = 3  # something could not be read or reached, or is not installed
INTERRUPTED = 130  # stopped from the keyboard, as shells have it
