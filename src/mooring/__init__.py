"""Mooring: Kubernetes Dynamic Resource Allocation, complete, in Python.

    import mooring

    world = mooring.load("examples/training", profile="dgx-h100")
    print(world.plan().pending[0].explain().cause)

The interface is `mooring`, `mooring.driver`, `mooring.testing` and `mooring.hardware`. All other
packages are internal and may change in every release. Importing this package imports nothing else:
each name is imported when it is first used.
"""

TYPE_CHECKING = False  # for type checkers; importing typing costs more than all of this
if TYPE_CHECKING:
    from mooring import driver as driver
    from mooring import hardware as hardware
    from mooring import testing as testing
    from mooring.library import (
        Arrival as Arrival,
    )
    from mooring.library import (
        ChangedPod as ChangedPod,
    )
    from mooring.library import (
        Chart as Chart,
    )
    from mooring.library import (
        Claim as Claim,
    )
    from mooring.library import (
        Claims as Claims,
    )
    from mooring.library import (
        Device as Device,
    )
    from mooring.library import (
        Devices as Devices,
    )
    from mooring.library import (
        DriverUse as DriverUse,
    )
    from mooring.library import (
        Explanation as Explanation,
    )
    from mooring.library import (
        Fit as Fit,
    )
    from mooring.library import (
        Fix as Fix,
    )
    from mooring.library import (
        MooringError as MooringError,
    )
    from mooring.library import (
        MooringWarning as MooringWarning,
    )
    from mooring.library import (
        ObjectsRefusedError as ObjectsRefusedError,
    )
    from mooring.library import (
        PendingPod as PendingPod,
    )
    from mooring.library import (
        PlacedPod as PlacedPod,
    )
    from mooring.library import (
        Plan as Plan,
    )
    from mooring.library import (
        Readable as Readable,
    )
    from mooring.library import (
        Sample as Sample,
    )
    from mooring.library import (
        SimulatedPod as SimulatedPod,
    )
    from mooring.library import (
        Simulation as Simulation,
    )
    from mooring.library import (
        UnreadableError as UnreadableError,
    )
    from mooring.library import (
        WhatIf as WhatIf,
    )
    from mooring.library import (
        World as World,
    )
    from mooring.library import (
        chart as chart,
    )
    from mooring.library import (
        load as load,
    )
    from mooring.library import (
        random_arrivals as random_arrivals,
    )
    from mooring.library import (
        simulate as simulate,
    )

__version__ = "0.1.0.dev0"

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
    "__version__",
    "chart",
    "driver",
    "hardware",
    "load",
    "random_arrivals",
    "simulate",
    "testing",
]

if not TYPE_CHECKING:  # Type checkers would take every name as known.

    def __getattr__(name: str) -> object:
        """Import a name of the interface when it is first used."""
        from importlib import import_module

        if name in ("driver", "hardware", "testing"):
            return import_module(f"mooring.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'mooring' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module("mooring.library"), name)
        return found

    def __dir__() -> list[str]:
        """Return the names of the interface, and what every module has."""
        return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
