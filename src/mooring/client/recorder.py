"""MOVED."""

from mooring.client.event_recorder import EventRecorder as Recorder
from mooring.client.event_recorder import EventStyle as Style
from mooring.client.event_recorder import reference_to as reference_to

__all__ = ["Recorder", "Style", "reference_to"]
