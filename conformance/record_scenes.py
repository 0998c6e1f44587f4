"""Record what a Kubernetes API server answers to the requests of our scenes.

    python -m conformance.record_scenes KUBECONFIG [SCENE …]

A scene in `conformance/scenes/NAME.yaml` is a list of requests; the answers are written to
`conformance/scenes/1.37/NAME.json` in the form of the suite `http`, which replays them:

    python3 dev.py conformance http conformance/scenes

The server should be new, and only its API server should run, so that nobody else writes.
`settle: true` waits after a request until the server's own controllers have seen it;
`unordered: true` says that the server lists the causes of an error in any order, and `differs` why
Moorage answers differently on purpose.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import tempfile
import time
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

SCENES = Path(__file__).parent / "scenes"
RECORDINGS = SCENES / "1.37"
SETTLE_S = 2.5


def main(arguments: list[str]) -> None:
    """Record the named scenes, or all."""
    kubeconfig, *names = arguments
    for path in sorted(SCENES.glob("*.yaml")):
        if not names or path.stem in names:
            exchanges = [_exchange(step, kubeconfig) for step in scene_steps(path)]
            RECORDINGS.mkdir(exist_ok=True)
            text = json.dumps(exchanges, indent=1, ensure_ascii=False)
            (RECORDINGS / f"{path.stem}.json").write_text(f"{text}\n")
            print(f"{path.stem}: {len(exchanges)} exchanges")


def scene_steps(path: Path) -> list[dict[str, Any]]:
    """Return the requests of a scene."""
    steps: list[dict[str, Any]] = yaml.safe_load(path.read_text())["steps"]
    return steps


def _exchange(step: dict[str, Any], kubeconfig: str) -> dict[str, Any]:
    method, uri = step["request"].split(" ", 1)
    headers = {"Accept": step.get("accept", "application/json"), "User-Agent": "scenes/1"}
    body = step.get("body")
    if body is not None:
        headers["Content-Type"] = step.get("type", "application/json")
    connection = _connect(kubeconfig)
    connection.request(method, uri, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    if step.get("settle"):
        time.sleep(SETTLE_S)
    warnings = [text for name, text in response.getheaders() if name == "Warning"]
    return {
        "name": step["name"],
        "method": method,
        "uri": uri,
        "requestHeaders": headers,
        "requestBody": body,
        "status": response.status,
        "responseHeaders": {"Content-Type": response.getheader("Content-Type", "")},
        "warnings": warnings,
        "responseBody": json.loads(text) if text.startswith("{") else text,
        **{name: step[name] for name in ("unordered", "differs") if name in step},
    }


def _connect(kubeconfig: str) -> HTTPSConnection:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    with tempfile.NamedTemporaryFile() as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]) + b"\n")
        file.flush()
        context.load_cert_chain(file.name)
    return HTTPSConnection(urlsplit(cluster["server"]).netloc, context=context, timeout=60)


if __name__ == "__main__":
    main(sys.argv[1:])
