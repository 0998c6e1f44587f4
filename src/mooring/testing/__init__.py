"""A test kit for authors of drivers: a pytest plugin, and checks for drivers in any language."""
