"""The command line: one module per command, which parses, calls and prints."""

# The same for every command, also when it is called on its own.
CONTEXT = {"help_option_names": ["-h", "--help"]}
