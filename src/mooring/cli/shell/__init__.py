"""Completion of command lines in shells.

A shell asks `moor __complete` at each press of Tab, so nothing is imported here that takes long: no
click, none of the commands. All that is known beforehand is in `completion.json`, which
`python3 dev.py docs` writes from the commands.

completer     what may stand at the end of a command line, and the answer to a shell
words         the words of a command line, and what each of them means
values        values of options and arguments
names         names of objects, in files that the command line names
live_names    names of objects in the cluster of --live, within a tenth of a second
sources       which values an option or argument takes

`moor.bash`, `moor.zsh` and `moor.fish` are what `moor completion` prints.
"""
