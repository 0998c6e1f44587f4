"""Which GPUs of a machine are free once everything is planned, and how many more pods fit?"""

import moorage

world = moorage.load("examples/training", profile="dgx-h100")
after = world.plan().after
gpus = after.devices().where('device.driver == "gpu.nvidia.com"')
print(len(gpus.free), "of", len(gpus), "GPUs are free:", ", ".join(d.name for d in gpus.free))
for claim in after.claims():
    print(claim.name, "has", ", ".join(claim.devices) or "nothing")
fit = moorage.load("examples/training", profile="dgx-h100x4").fit("deployment/training")
print(fit.total, "more workers fit on four machines:", fit.by_node)
