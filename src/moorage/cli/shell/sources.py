"""Decides which values an option or argument accepts, by its name or the name of its value.

`reference.completion_table` calls it for every option of every command.
"""

from __future__ import annotations

from typing import Final

FILES: Final = "files"
FOLDERS: Final = "folders"
FREE: Final = ""  # anything

# Sources of values, besides files and folders.
CLASSES: Final = "classes"
CONTEXTS: Final = "contexts"
GATES: Final = "gates"
KINDS: Final = "kinds"
NAMESPACES: Final = "namespaces"
NODES: Final = "nodes"
OBJECTS: Final = "objects"  # KIND/NAME
PODS: Final = "pods"
CLAIMS: Final = "claims"
PROFILES: Final = "profiles"
RULES: Final = "rules"

_BY_OPTION: Final = {
    "--add-profile": PROFILES,
    "--class": CLASSES,
    "--context": CONTEXTS,
    "--cordon": NODES,
    "--delete-claim": CLAIMS,
    "--delete-pod": PODS,
    "--drain": NODES,
    "--feature-gates": GATES,
    "--namespace": NAMESPACES,
    "--node": NODES,
    "--pod": PODS,
    "--profile": PROFILES,
    "--remove-node": NODES,
    "--remove-rule": RULES,
}
_BY_ARGUMENT: Final = {
    "explain": OBJECTS,
    "fit": OBJECTS,
    "profiles": PROFILES,
    "run": FILES,
    "driver check": FILES,
    "schema": KINDS,
}
_FILE_WORDS: Final = ("FILE", "ARCHIVE", "SOCKET")
_FOLDER_WORDS: Final = ("DIR", "FOLDER")


def option_source(name: str, value_name: str, type_name: str) -> str:
    """Return the source of an option's values, by its long name, value name and type."""
    if name in _BY_OPTION:
        return _BY_OPTION[name]
    return _path_source(value_name, type_name)


def argument_source(command: str, value_name: str, type_name: str) -> str:
    """Return the source of a command's arguments."""
    return _BY_ARGUMENT.get(command) or _path_source(value_name, type_name)


def _path_source(value_name: str, type_name: str) -> str:
    if any(word in value_name for word in _FILE_WORDS) or type_name in ("file", "path"):
        return FILES
    if any(word in value_name for word in _FOLDER_WORDS) or type_name == "directory":
        return FOLDERS
    return FREE
