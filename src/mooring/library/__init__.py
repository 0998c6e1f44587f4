"""What `import mooring` offers: load a cluster, ask it questions, simulate it.

loading      `load`: files, dumps, snapshots, profiles, running clusters and mappings as a World
world        a cluster with manifests, and the questions that it answers
plans        where pods go; why one gets no node, and what would help
answers      how many more replicas fit; what changes to the cluster would do
inventory    devices and claims, as sequences
simulations  `simulate`: waits, use and left-over devices in simulated time
charts       line charts as SVG
results      what all results have in common
html         results as HTML for notebooks, with all input escaped

The names that `mooring` re-exports are the interface; the modules behind them may change.
"""

from mooring.insight.simulation import Arrival, DriverUse, Sample, SimulatedPod
from mooring.kit.errors import MooringError, MooringWarning
from mooring.library.answers import ChangedPod, Fit, WhatIf
from mooring.library.charts import Chart, chart
from mooring.library.inventory import Claim, Claims, Device, Devices
from mooring.library.loading import load
from mooring.library.plans import Explanation, Fix, PendingPod, PlacedPod, Plan
from mooring.library.results import Readable
from mooring.library.simulations import Simulation, random_arrivals, simulate
from mooring.library.world import World
from mooring.sources.errors import ObjectsRefusedError, UnreadableError

__all__ = [
    "Arrival",
    "ChangedPod",
    "Chart",
    "Claim",
    "Claims",
    "Device",
    "Devices",
    "DriverUse",
    "Explanation",
    "Fit",
    "Fix",
    "MooringError",
    "MooringWarning",
    "ObjectsRefusedError",
    "PendingPod",
    "PlacedPod",
    "Plan",
    "Readable",
    "Sample",
    "SimulatedPod",
    "Simulation",
    "UnreadableError",
    "WhatIf",
    "World",
    "chart",
    "load",
    "random_arrivals",
    "simulate",
]
