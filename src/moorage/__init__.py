"""Moorage: Kubernetes Dynamic Resource Allocation, complete, in Python.

    import moorage

    world = moorage.load("examples/training", profile="dgx-h100")
    print(world.plan().pending[0].explain().cause)

The interface is `moorage`, `moorage.driver`, `moorage.testing` and `moorage.hardware`. All other
packages are internal and may change in every release. Importing this package imports nothing else:
each name is imported when it is first used.
"""

TYPE_CHECKING = False  # for type checkers; importing typing costs more than all of this
if TYPE_CHECKING:
    from moorage import driver, hardware, testing
    from moorage.library import (
        Arrival,
        ChangedPod,
        Chart,
        Claim,
        Claims,
        Device,
        Devices,
        DriverUse,
        Explanation,
        Findings,
        Fit,
        Fix,
        HardwareProfile,
        LintFinding,
        MoorageError,
        MoorageWarning,
        ObjectsRefusedError,
        PendingPod,
        PlacedPod,
        Plan,
        Readable,
        Record,
        Sample,
        SimulatedPod,
        Simulation,
        UnreadableError,
        Validation,
        WhatIf,
        World,
        chart,
        lint,
        load,
        profiles,
        random_arrivals,
        simulate,
        validate,
    )

__version__ = "0.1.0"

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
    "__version__",
    "chart",
    "driver",
    "hardware",
    "lint",
    "load",
    "profiles",
    "random_arrivals",
    "simulate",
    "testing",
    "validate",
]

if not TYPE_CHECKING:  # Type checkers would take every name as known.

    def __getattr__(name: str) -> object:
        """Import a name of the interface when it is first used."""
        from importlib import import_module

        if name in ("driver", "hardware", "testing"):
            return import_module(f"moorage.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'moorage' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module("moorage.library"), name)
        return found

    def __dir__() -> list[str]:
        """Return the names of the interface, and what every module has."""
        return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
