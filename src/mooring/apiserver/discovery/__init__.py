"""What a server serves, in the forms in which clients ask for it.

Discovery           /api, /apis and what is below them
version_document    /version
"""

from __future__ import annotations

from mooring.apiserver.discovery.discovery import Discovery
from mooring.apiserver.discovery.version import version_document

__all__ = ["Discovery", "version_document"]
