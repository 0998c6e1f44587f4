"""Every example of the seeds, applied to a live cluster as it is written, twice.

`tests/seeds/expected.yaml` says what becomes of each; a server says the same, in its warnings, and
the second time nothing changes although what is stored has another form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage.api.core import Namespace
from moorage.client.writes import Patch, Target
from tests.stories.stage import Answer, Stage, kind_of, path_of, placed, play, trees_of
from tests.stories.tellers import SEEDS

(EXPECTED,) = trees_of(Path(__file__).parents[1] / "seeds" / "expected.yaml")
ADMIN_ACCESS = {"resource.kubernetes.io/admin-access": "true"}
# Configuration that a scheduler reads: no server has it.
FILES = ("002-24-scheduler-configuration.yaml", "002-28-device-metadata.json")
NAMESPACES = ("some-ns",)
# Only a server warns of versions: files may be for clusters of any age.
_DEPRECATED = "resource.k8s.io/v1beta1 {} is deprecated in v1.35+, unavailable in v1.38+"
DEPRECATED = {
    "004-34-device-class.yaml": [_DEPRECATED.format("DeviceClass")],
    "004-35-gpu-slice.yaml": [_DEPRECATED.format("ResourceSlice")],
}


def is_applied(name: str) -> bool:
    told = EXPECTED[name]
    return told["outcome"] == "accepted" and name not in FILES and "subresource" not in told


APPLIED = sorted(filter(is_applied, EXPECTED))


async def applied(stage: Stage, tree: dict[str, Any]) -> Answer:
    """Return the answer to `kubectl apply --server-side`."""
    kind, metadata = kind_of(tree), tree["metadata"]
    path = path_of(kind, metadata.get("namespace", ""), metadata["name"])
    return await stage.ask(
        "PATCH", path, tree, "fieldManager=kubectl", "application/apply-patch+yaml"
    )


def _told(answer: Answer) -> Any:
    """Return what an author writes of an object, and how often that was changed."""
    return answer.tree["spec"], answer.tree["metadata"].get("generation")


def texts(warnings: list[str]) -> list[str]:
    """Return warnings as they were before they became headers; each is said once."""
    found = (
        each.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for each in warnings
    )
    return list(dict.fromkeys(found))


def test_every_example_of_the_seeds_is_taken_with_its_warnings_and_again_changes_nothing(
    tmp_path: Path,
) -> None:
    async def one(stage: Stage, name: str) -> tuple[list[str], bool]:
        trees = [placed(tree, "default") for tree in trees_of(SEEDS / name)]
        answers = [await applied(stage, tree) for tree in trees]
        assert {each.status for each in answers} <= {200, 201}, [e.message for e in answers]
        again = [await applied(stage, tree) for tree in trees]
        same = [_told(each) for each in answers] == [_told(each) for each in again]
        for tree in reversed(trees):
            space = tree["metadata"].get("namespace", "")
            await stage.ask("DELETE", path_of(kind_of(tree), space, tree["metadata"]["name"]))
        return texts([each for answer in answers for each in answer.warnings]), same

    async def act(stage: Stage) -> dict[str, tuple[list[str], bool]]:
        labels = {"metadata": {"labels": ADMIN_ACCESS}}
        await stage.cluster.admin.write(Patch(Target(Namespace, "", "default"), labels))
        for name in NAMESPACES:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await stage.furnish([namespace])
        return {name: await one(stage, name) for name in APPLIED}

    told = {
        name: ([*DEPRECATED.get(name, ()), *EXPECTED[name].get("warnings", [])], True)
        for name in APPLIED
    }
    assert play(tmp_path, act) == told
    assert len(APPLIED) > 35
