"""What `import moorage` offers: load a cluster, ask it questions, simulate it.

loading      `load`: files, dumps, snapshots, profiles, running clusters and mappings as a World
world        a cluster with manifests, and the questions that it answers
plans        where pods go; why one gets no node, and what would help
answers      how many more replicas fit; what changes to the cluster would do
inventory    devices and claims, as sequences
simulations  `simulate`: waits, use and left-over devices in simulated time
charts       line charts as SVG
checks       what an API server would refuse, mistakes, and the hardware profiles
results      what all results have in common
html         results as HTML for notebooks, with all input escaped

The names that `moorage` re-exports are the interface; the modules behind them may change.
"""

from moorage.insight.simulation import Arrival, DriverUse, Sample, SimulatedPod
from moorage.kit.errors import MoorageError, MoorageWarning
from moorage.library.answers import ChangedPod, Fit, WhatIf
from moorage.library.charts import Chart, chart
from moorage.library.checks import (
    Findings,
    HardwareProfile,
    LintFinding,
    Validation,
    lint,
    profiles,
    validate,
)
from moorage.library.inventory import Claim, Claims, Device, Devices
from moorage.library.loading import load
from moorage.library.plans import Explanation, Fix, PendingPod, PlacedPod, Plan
from moorage.library.results import Readable, Record
from moorage.library.simulations import Simulation, random_arrivals, simulate
from moorage.library.world import World
from moorage.sources.errors import ObjectsRefusedError, UnreadableError

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
    "Findings",
    "Fit",
    "Fix",
    "HardwareProfile",
    "LintFinding",
    "MoorageError",
    "MoorageWarning",
    "ObjectsRefusedError",
    "PendingPod",
    "PlacedPod",
    "Plan",
    "Readable",
    "Record",
    "Sample",
    "SimulatedPod",
    "Simulation",
    "UnreadableError",
    "Validation",
    "WhatIf",
    "World",
    "chart",
    "lint",
    "load",
    "profiles",
    "random_arrivals",
    "simulate",
    "validate",
]
