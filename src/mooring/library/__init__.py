"""What `import mooring` offers: load a cluster, ask it questions, play it in simulated time.

loading      `load`: files, dumps, snapshots, profiles, running clusters and mappings as a World
world        a cluster and manifests over it, and the questions that one can ask about them
plans        where pods go; why one gets no node, and what would help
answers      how many more replicas fit; what changes would do
inventory    devices and claims, as sequences
simulations  `simulate`: waits, use and left-over devices in simulated time
charts       lines over numbers, as SVG
results      what all results have in common
html         results as HTML for notebooks; everything from outside is escaped

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
