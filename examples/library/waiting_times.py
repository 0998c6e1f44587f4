"""How long do training workers wait, depending on the number of machines?"""

import moorage

trace = [
    *moorage.random_arrivals("deployment/training", per_hour=3, until="24h", duration="2h", seed=1),
    *moorage.random_arrivals("pod/notebook-0", per_hour=4, until="24h", duration="1h", seed=2),
]
for machines in (2, 3, 4):
    world = moorage.load("examples/training", profile=f"dgx-h100x{machines}")
    found = moorage.simulate(world, trace)
    (gpus,) = (each for each in found.drivers if each.driver == "gpu.nvidia.com")
    wait_s = found.mean_wait_s or 0
    print(
        f"{machines} machines: {wait_s / 60:.0f} min on average, {gpus.mean_percent:.0f} % in use"
    )
