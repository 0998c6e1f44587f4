"""MOVED."""

from mooring.cel.device_values import KEY_HINT as KEY_HINT  # noqa
from mooring.cel.device_values import NO_SUCH_KEY as NO_SUCH_KEY  # noqa
from mooring.cel.device_values import with_hint as with_hint  # noqa

__all__ = ["KEY_HINT", "NO_SUCH_KEY", "with_hint"]  # noqa
