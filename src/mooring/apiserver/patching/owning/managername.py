"""Who writes, if the request does not say."""

from __future__ import annotations

NAME_BYTES_MAX = 128


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the manager that a request names, else what its user agent calls itself."""
    if field_manager:
        return field_manager
    name, size = "", 0
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        size += len(character.encode(errors="replace"))
        if size > NAME_BYTES_MAX:
            break
        name += character
    return name
