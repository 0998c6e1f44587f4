"""MOVED."""

from mooring.node.dra.plugin_registration import PluginInfo as Plugin  # noqa
from mooring.node.errors import RegistrationRefusedError as RegistrationRefusedError  # noqa

__all__ = ["Plugin", "RegistrationRefusedError"]  # noqa
