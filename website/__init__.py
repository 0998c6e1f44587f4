"""Builds the documents as a static site with search: `python3 dev.py docs --site`.

build        the steps: stage, build with Zensical, check, put in place
staging      the pages and what they link to, in one folder that mirrors the repository
navigation   the place of each page; pages that are not named there follow in their folders
checker      checks the built pages: links, anchors, no third-party resources
zensical.toml, theme/  the settings, and our additions to the theme

The site mirrors the repository: `docs/how-to/plan-pods.md` becomes `docs/how-to/plan-pods.html`,
the README is its first page, and relative links are the same in both.
"""
