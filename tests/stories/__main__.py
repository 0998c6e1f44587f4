"""Play stories live, by hand: `python -m tests.stories [NAME …]`, all of them if none is named.

Each scene gets a cluster of its own within the process. What becomes of its pods is printed; the
exit status is 1 where that is not what `outcome.toml` says.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.stories.page import lines_of, shown
from tests.stories.playing import play_scene
from tests.stories.scenes import Played, Told, all_scenes
from tests.stories.stage import RefusedManifestError


def main(names: list[str]) -> int:
    """Play the stories with these names and return an exit status."""
    scenes = [told for told in all_scenes() if not names or told.name in names]
    if not scenes:
        print(f"no story is named {', '.join(names)}", file=sys.stderr)
        return 2
    return max([_play(told) for told in scenes])


def _play(told: Told) -> int:
    print(f"{told.name}: {told.scene.title}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended = play_scene(told, Path(folder))
        except RefusedManifestError as refused:
            print(f"  refused: {refused}")
            return int(not told.scene.refused or told.scene.refused not in str(refused))
    for line in lines_of(ended.pods, ended.preempted, ended.then or []):
        print(f"  {line}")
    faults = ended.faults(told.scene)
    for fault in faults:
        print(f"  not so: {shown(fault) if isinstance(fault, Played) else fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
