"""Why nodes reject a pod, devices aside.

rejections  the finding for each plugin that rejects a node: taints, claims with devices elsewhere
amounts     resources of which nodes have too little
extended    extended resources that nobody offers
labels      node selectors and node affinities
neighbours  rules about other pods: ports, affinity, spreading
replicas    workloads with more pods than fit
nowhere     nodes that lack different things, in one sentence
"""
