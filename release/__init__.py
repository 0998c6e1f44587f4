"""Builds and checks a release: `python3 dev.py dist`.

build          the steps: the name, wheel and sdist built twice, checks, SBOM, checksums
index_name     whose the name is on the package index
sbom           the bill of materials, in CycloneDX' form
krew           the plugin for krew: its archive and its manifest
lock_file      what a lock file pins
vendored       files of others in the package, and THIRD_PARTY_NOTICES.md
compiled_hook  modules compiled with mypyc, if MOORAGE_COMPILE=1; hatchling runs it for every wheel
metadata_hook  the README and the URLs that an index shows; hatchling runs it at every build
"""
