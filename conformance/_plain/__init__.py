"""A plain allocator: Kubernetes' search, written down without any of the fast one's ideas.

It tries devices depth first and remembers only the list of taken devices. Every check is computed
from that list, so there is nothing to undo: backtracking drops the last entry. That makes it slow
and easy to believe; the fast allocator must give the same answers.

1. `pools`: the pools of the node are gathered and put in order.
2. `requests`: every request of every claim is checked; "all devices" becomes a list of devices.
3. `search` goes claim by claim, request by request, device by device. Within a request the
   devices come in rising order; the next request starts from the first device again. The rules
   that a device must pass are in `rules` and `capacity`.
4. `results`: the first full list of takings becomes the answer.

# choice: a request, or one alternative of a request
# candidate: a device that the node sees, in the order of the search
# taking: a candidate that was given to a choice
"""

from conformance._plain.model import DeviceId
from conformance._plain.search import TooManyStepsError, allocate
from conformance._plain.verdict import is_possible

__all__ = ["DeviceId", "TooManyStepsError", "allocate", "is_possible"]
