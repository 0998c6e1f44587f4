"""Compare Moorage with the recorded answers of Kubernetes: `python -m conformance SUITE FILE`.

One module per suite, found by its name. A suite module defines `open_suite()`, which returns a
`conformance.runner.Suite`; nothing else needs to know of it.
"""
