"""Drivers for what machines have, each a small program on the SDK."""
