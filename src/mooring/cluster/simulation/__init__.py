"""Machines that are not there: nodes of hardware profiles, and what becomes of pods on them.

machines   a node's own part: it registers, publishes its devices and says that it is alive
pods       the part of its kubelet and its drivers: pods run, end and leave

Both are controllers: a plan from what is there, carried out by `mooring.controllers.running`.
"""

from mooring.cluster.simulation.machines import SIMULATED, SimulatedMachines, fleets_of
from mooring.cluster.simulation.pods import SimulatedPods

__all__ = ["SIMULATED", "SimulatedMachines", "SimulatedPods", "fleets_of"]
