"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long it takes to make an example says something about the machine, and nothing about us.
settings.register_profile("mooring", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mooring")
