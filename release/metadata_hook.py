"""The README and the URLs of the package for an index such as PyPI.

An index shows the README without the files that it links to. If pyproject.toml has the address of
the repository, relative links become absolute links to the version that is built. If not, they
become plain text, and pictures of the repository are omitted. So is everything between `<!--
repository only -->` and `<!-- /repository only -->`, while comments that begin with `index only`
become text. So no link is dead. Lines that install a checkout install the package from the index.

Hatchling loads this file by its path, so it imports nothing from its neighbours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

NAME = "moorage"
ONLY = re.compile(r"<!-- repository only -->\n.*?<!-- /repository only -->\n", re.DOTALL)
INSTEAD = re.compile(r"<!-- index only\n(.*?)-->\n", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_CHECKOUT = re.compile(r"pip install (?:\.|'\.(?P<extras>\[[\w,]+\])')(?![\w/.])")
_EMPTY_LINES = re.compile(r"\n{3,}")


class ReadmeAndUrls(MetadataHookInterface):
    """Adds `readme` and `urls` to the metadata of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme` and `urls`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        version = version_of(Path(self.root))
        repository = str(self.config.get("repository", "")).rstrip("/")
        content = readme_for_index(text, repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": content}
        metadata["urls"] = urls(repository)


def version_of(root: Path) -> str:
    """Return the version of the package, which its `__init__` declares."""
    text = (root / "src" / "moorage" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError("src/moorage/__init__.py declares no __version__")
    return found[1]


def urls(repository: str) -> dict[str, str]:
    """Return the project URLs, or none if the address is unknown."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Source": repository,
    }


def readme_for_index(text: str, repository: str, version: str) -> str:
    """Return a README without links that work in the repository only."""
    if not repository:
        text = INSTEAD.sub(r"\1", ONLY.sub("", text))
    text = _CHECKOUT.sub(_from_index, _COMMENT.sub("", text))
    parts = []
    end = 0
    for found in _FENCED.finditer(text):
        parts += [_with_links(text[end : found.start()], repository, version), found[0]]
        end = found.end()
    parts.append(_with_links(text[end:], repository, version))
    return _EMPTY_LINES.sub("\n\n", "".join(parts))


def _from_index(found: re.Match[str]) -> str:
    return f"pip install '{NAME}{found['extras']}'" if found["extras"] else f"pip install {NAME}"


def _with_links(prose: str, repository: str, version: str) -> str:
    def picture(found: re.Match[str]) -> str:
        if _is_absolute(found["target"]):
            return found[0]
        if not repository:
            return ""
        return f"![{found['text']}]({repository}/raw/v{version}/{found['target']})"

    def link(found: re.Match[str]) -> str:
        if _is_absolute(found["target"]) or found["target"].startswith("#"):
            return found[0]
        if not repository:
            return found["text"]
        return f"[{found['text']}]({repository}/blob/v{version}/{found['target']})"

    return _LINK.sub(link, _PICTURE.sub(picture, prose))


def _is_absolute(target: str) -> bool:
    return target.startswith(("http://", "https://", "mailto:"))
