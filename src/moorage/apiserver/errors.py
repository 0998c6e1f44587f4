"""Errors of the API server; their texts give the place and the fact.

Exception
├── StatusError          a request that fails, with the Status that the client gets (http.status)
├── PatchRefused         a patch that cannot be applied, inside `patching` only
├── CertificateError     a certificate or key that cannot be made or read
├── CredentialsError     a credentials file that cannot be read or written
├── SigningKeyError      a key that cannot sign or verify tokens
├── TokenFileError       a line of a static token file
├── AuditPolicyError     an audit policy file
├── RuntimeConfigError   a value of `--runtime-config`
├── LabelSelectorError   a label selector of a list or watch
└── DialError            a node that cannot be reached
"""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate or key that cannot be made or read."""


class CredentialsError(Exception):
    """Credentials that cannot be read or written; the text names the file."""


class SigningKeyError(Exception):
    """A key that cannot be used for tokens."""


class TokenFileError(Exception):
    """A static token file that cannot be read; the text names the line."""


class AuditPolicyError(Exception):
    """An audit policy that cannot be read; the text names the place."""


class RuntimeConfigError(Exception):
    """A runtime config that names no known group, version or resource, or no boolean."""


class LabelSelectorError(Exception):
    """A text that is not a label selector; Kubernetes' message."""


class DialError(Exception):
    """A node that cannot be reached; the text says why."""
