"""Pods leave devices that must not be used any more, and rules tell how far that has come.

evictions   which pods leave, when, and how
rulestatus  what the status of a DeviceTaintRule says
marked      which devices are tainted, and what is found by them
loop        the controller
"""

from mooring.controllers.devicetaints.evictions import eviction_of, eviction_steps
from mooring.controllers.devicetaints.loop import DeviceTaints, TaintMetrics
from mooring.controllers.devicetaints.rulestatus import plan_rule

__all__ = ["DeviceTaints", "TaintMetrics", "eviction_of", "eviction_steps", "plan_rule"]
