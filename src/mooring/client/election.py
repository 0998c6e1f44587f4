"""MOVED."""

from mooring.client.leader_election import LeaderElector as Election
from mooring.client.leader_election import LeaseTimings as Terms

__all__ = ["Election", "Terms"]
