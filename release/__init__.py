"""Builds and checks a release: `python3 dev.py dist`.

build          the steps: wheel and sdist, built twice and compared, checks, SBOM, checksums
sbom           the bill of materials, in CycloneDX' form
krew           the plugin for krew: its archive and its manifest
lock_file      the packages in a lock file
vendored       third-party files in the package, and THIRD_PARTY_NOTICES.md
metadata_hook  the README and the URLs for a package index; hatchling runs it in every build
"""
