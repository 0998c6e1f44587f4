"""Completion of command lines in shells.

A shell runs `moor __complete` at each press of Tab, so this package imports nothing slow: neither
click nor the commands. Commands and options are in `completion.json`, which `python3 dev.py docs`
writes.

completer     finds candidates for the end of a command line, and answers the shell
words         parses the words of a command line
values        values of options and arguments
names         names of objects in the files of the command line
live_names    names of objects in the cluster of --live, within a tenth of a second
sources       which values an option or argument accepts

`moor.bash`, `moor.zsh` and `moor.fish` are what `moor completion` prints.
"""
