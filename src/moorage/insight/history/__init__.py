"""A cluster over time: its changes, its state at any of them, and what happened.

history    the changes in order, with checkpoints; the snapshot at a revision
marks      pods that became pending, were scheduled or evicted, claims and taints that changed
recording  the file format of `moor record`, verified when it is read
"""

from moorage.insight.history.history import Change, History, Moment
from moorage.insight.history.marks import Mark, Occurrence

__all__ = ["Change", "History", "Mark", "Moment", "Occurrence"]
