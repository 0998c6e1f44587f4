"""Rules for names. Each check returns the messages of the rules that a text breaks.

Kubernetes has two generations of these checks with the same rules: the older one, used by
hand-written validation, counts length in "characters", the newer, declarative one in "bytes".
Both mean bytes.
"""

from __future__ import annotations

import re

LABEL_MAX = 63
SUBDOMAIN_MAX = 253

CHARACTERS = "characters"
BYTES = "bytes"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_WITH_LETTER = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORE_SUBDOMAIN = rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_label_with_letter = re.compile(_LABEL_WITH_LETTER).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_underscore_subdomain = re.compile(_UNDERSCORE_SUBDOMAIN).fullmatch
_is_subdomain_caseless = re.compile(_SUBDOMAIN, re.IGNORECASE | re.ASCII).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_variable = re.compile("[ -<>-~]*").fullmatch
_is_uuid = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " + _ENDS
)
_LETTER_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', " + _ENDS
)
_UNDERSCORE_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'_', '-' or '.', " + _ENDS
)
_CASELESS_RULE = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', " + _ENDS
)
_QUALIFIED_RULE = "must consist of alphanumeric characters, '-', '_' or '.', " + _ENDS
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, "
    "'-', '_' or '.', " + _ENDS
)
_C_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)
_CONFIG_KEY_RULE = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_VARIABLE_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)


def byte_length(text: str) -> int:
    """Return the length of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def lowered(text: str) -> str:
    """Return the text in lower case as Go lowers it: each character by itself, to one character."""
    return text.lower() if text.isascii() else text.replace("İ", "i").lower()


def dns1123_label(text: str, *, unit: str = CHARACTERS) -> list[str]:
    """Check a DNS label: `my-name`."""
    messages = _length(text, LABEL_MAX, unit)
    if not _is_label(text):
        if _is_subdomain(text):
            messages.append("must not contain dots")
        else:
            messages.append(_rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return messages


def dns1035_label(text: str) -> list[str]:
    """Check a DNS label that begins with a letter: `my-name`."""
    messages = _length(text, LABEL_MAX, CHARACTERS)
    if not _is_label_with_letter(text):
        messages.append(_rule(_LETTER_RULE, _LABEL_WITH_LETTER, "my-name", "abc-123"))
    return messages


def dns1123_subdomain(text: str, *, unit: str = CHARACTERS) -> list[str]:
    """Check a DNS subdomain: `example.com`."""
    if len(text) <= SUBDOMAIN_MAX and _is_subdomain(text):
        return []
    messages = _length(text, SUBDOMAIN_MAX, unit)
    if not _is_subdomain(text):
        messages.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return messages


def dns1123_subdomain_with_underscore(text: str) -> list[str]:
    """Check a DNS subdomain that may have underscores: `_tcp.example.com`."""
    messages = _length(text, SUBDOMAIN_MAX, CHARACTERS)
    if not _is_underscore_subdomain(text):
        messages.append(_rule(_UNDERSCORE_RULE, _UNDERSCORE_SUBDOMAIN, "example.com"))
    return messages


def dns1123_subdomain_caseless(text: str) -> list[str]:
    """Check a DNS subdomain that may have capitals: `Example.com`."""
    messages = _length(text, SUBDOMAIN_MAX, BYTES)
    if not _is_subdomain_caseless(text):
        messages.append(_rule(_CASELESS_RULE, _SUBDOMAIN, "Example.com"))
    return messages


def label_name(text: str) -> list[str]:
    """Check a label key, which Kubernetes also calls a qualified name: `example.com/MyName`."""
    parts = text.split("/")
    if len(parts) > 2:
        rule = _rule(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule}{optional}"]
    messages = []
    if len(parts) == 2:
        broken = dns1123_subdomain(parts[0], unit=BYTES) if parts[0] else ["must be non-empty"]
        messages += [f"prefix part {message}" for message in broken]
    name = parts[-1]
    if not name:
        messages.append("name part must be non-empty")
    messages += [f"name part {message}" for message in _length(name, LABEL_MAX, BYTES)]
    if not _is_qualified(name):
        rule = _rule(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
        messages.append(f"name part {rule}")
    return messages


def label_value(text: str) -> list[str]:
    """Check a label value; the empty one is valid."""
    messages = _length(text, LABEL_MAX, BYTES)
    if not _is_label_value(text):
        messages.append(_rule(_LABEL_VALUE_RULE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return messages


def c_identifier(text: str) -> list[str]:
    """Check an identifier of C: `my_name`."""
    if _is_c_identifier(text):
        return []
    return [_rule(_C_IDENTIFIER_RULE, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def config_key(text: str) -> list[str]:
    """Check a key of a ConfigMap or Secret: `key.name`."""
    messages = _length(text, SUBDOMAIN_MAX, CHARACTERS)
    if not _is_config_key(text):
        messages.append(_rule(_CONFIG_KEY_RULE, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        messages.append(f"must not be '{text}'")
    elif text.startswith(".."):
        messages.append("must not start with '..'")
    return messages


def variable_name(text: str) -> list[str]:
    """Check the name of an environment variable: `MY_NAME`."""
    return [] if _is_variable(text) else [_VARIABLE_RULE]


def path_segment(text: str) -> list[str]:
    """Check a name that only has to be safe in a URL: `system:node`."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return path_segment_prefix(text)


def path_segment_prefix(text: str) -> list[str]:
    """Check the beginning of a name that only has to be safe in a URL."""
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in text]


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID in lower case."""
    return _is_uuid(text) is not None


def is_extended_resource(text: str) -> bool:
    """Return whether pods can request the text as an extended resource."""
    if "/" not in text or "kubernetes.io/" in text or text.startswith("requests."):
        return False
    return not label_name(f"requests.{text}")


def _length(text: str, maximum: int, unit: str) -> list[str]:
    if byte_length(text) <= maximum:
        return []
    return [f"must be no more than {maximum} {unit}"]


def _rule(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
