"""Simulated machines: nodes of hardware profiles, and the pods on them.

machines       nodes: they register, publish their devices and renew their leases
pods           what kubelets and drivers do: pods run, end and are removed
pod_statuses   what they report of pods

Both are controllers: they plan writes, which `moorage.controllers` carries out.
"""

from moorage.cluster.simulation.machines import SIMULATED, SimulatedMachines, fleets_of
from moorage.cluster.simulation.pods import SimulatedPods

__all__ = ["SIMULATED", "SimulatedMachines", "SimulatedPods", "fleets_of"]
