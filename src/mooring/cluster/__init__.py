"""The rooms put together: which programs there are, and a whole cluster of them.

programs    the scheduler and the controllers, each as something to run with a client
embedded    a cluster within the process, without a network: for tests, suites and experiments
"""
