"""The rooms put together: which programs there are, and a whole cluster of them.

programs     the scheduler and the controllers, each as something to run with a client
accounts     each controller under its own service account
embedded     a cluster within the process, without a network: for tests, suites and experiments
standing     a program alone against any server, with a lease
statuspages  metrics and health of a program
assembly     which processes a cluster on this machine has
supervision  processes that are kept running; statefolder has what is kept of them
simulation   nodes that are not there, and pods on them
overview     a cluster in a few numbers
roster       the names of controllers, as users choose them
"""
