"""Random worlds, what is asked about them, and the laws that the answers must keep together.

worlds   the objects of a random cluster, and manifests for it
fleet    its nodes, devices and classes, and what happens to them
work     claims, templates, pods and controllers
doors    asks commands, the library and the page about a world, each question once
laws     what the answers have in common, law by law
"""
