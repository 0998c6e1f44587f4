"""Requests that the node of a pod answers.

connection    which container, where its node listens, and how to connect
streams       pods/log, pods/exec and pods/attach
"""
