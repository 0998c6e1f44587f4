"""The documents as a static site with search: `python3 dev.py docs --site`.

build        the steps: stage, build with Zensical, check, put in place
staging      the pages and what they link to, in one folder that mirrors the repository
navigation   which page stands where; a page that is not named there has its folder's place
checker      what must be true of the built pages: links, anchors, no third party
zensical.toml, theme/  the settings, and what our pages add to the theme

The site mirrors the repository: `docs/how-to/plan-pods.md` becomes `docs/how-to/plan-pods.html`,
the README is its first page, and relative links are the same in both.
"""
