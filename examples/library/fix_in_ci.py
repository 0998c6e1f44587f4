"""A check for CI: does everything fit, and if not, what would the best fix change?"""

import sys

import moorage

world = moorage.load("examples/training", profile="dgx-h100")
plan = world.plan()
for explanation in plan.explain():
    print(f"{explanation.title}: {explanation.cause}", file=sys.stderr)
    change = next((fix for fix in explanation.fixes if fix.is_change), None)
    if change is not None:
        fixed = moorage.load(*change.manifests(), profile="dgx-h100")
        assert fixed.plan().fits
        print(f"  {change.text}", file=sys.stderr)
sys.exit(0 if plan.fits else 1)
