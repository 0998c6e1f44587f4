"""The facade in ten lines: plan the pods of a folder, and explain the one that gets no node."""

import moorage

world = moorage.load("examples/training", profile="dgx-h100")
plan = world.plan()
for pod in plan.placed:
    print(pod.full_name, "runs on", pod.node, "with", ", ".join(pod.devices))
explanation = plan.pending[0].explain()
print("cause:", explanation.cause)
for fix in explanation.fixes:
    print("fix:", fix)
