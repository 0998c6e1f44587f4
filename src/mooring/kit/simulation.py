"""MOVED."""

from mooring.kit.clock import LoopClock as LoopClock
from mooring.kit.clock import run_simulated as run_simulated

__all__ = ["LoopClock", "run_simulated"]
