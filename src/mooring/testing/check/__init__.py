"""Checks of a driver in any language, through its real sockets.

bench          an API server, a node and the folders of a kubelet, for one driver
plugin_client  the sockets of a driver, as a kubelet uses them, and its responses
claims         claims for the devices that the driver published
trial          one driver under test: started, called, killed
checks         the checks, in order; claim_checks has those of claims
suite          runs the checks
outcomes       results of checks

# check: one promise of a driver; it passes, fails or is skipped, with a reason

Errors:  BenchError          the bench cannot be set up
         PluginCallError     a call to the driver failed
         CheckFailedError    the driver does not keep a promise
           CheckAdvisedError    ... that nobody requires
         CheckSkippedError   the check does not apply
"""
