"""Hostile users of a whole cluster, and the laws that they must not be able to break.

values    hostile strings, numbers, times and quantities
objects   a good object of each kind, to be mutated
grammar   mutations of objects that know the type of every field
bodies    objects as JSON, YAML and protobuf, with the tricks of each; patches of every form
requests  whole requests: verbs, paths, options, headers, streams, and what is hardly HTTP
users     who they are, what they may do, and the canaries that they must not see or change
site      the programs of a cluster, in a folder whose surroundings are watched
answers   the laws that hold for each answer
attack    connections that send requests and check the answers
cleaning  an administrator, who looks at everything now and then
quiet     a good user, who measures, and from whom nothing may be lost
"""
