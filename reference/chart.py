"""Generates the chart's README and the kustomize base.

`python -m reference.chart` writes both, or with --check says which are stale. The base is the chart
with its default values, as plain manifests, rendered by the helm that `dev.py` puts into .tools.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dev import HELM
from reference.markdown import table_of

ROOT: Final = Path(__file__).parent.parent
CHART: Final = ROOT / "deploy" / "chart" / "moorage"
BASE: Final = ROOT / "deploy" / "kustomize"
KUBE_VERSION: Final = "1.37"
NAMESPACE: Final = "moorage"
MADE: Final = "# Made from deploy/chart/moorage by `python3 dev.py docs`. Do not edit.\n"

# Labels that only Helm needs.
_OF_HELM = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: moorage/templates/(\w+)\.yaml\n", re.MULTILINE)

_README = """\
# The chart moorage

<!-- The table is made from values.schema.json and values.yaml by `python3 dev.py docs`. -->

Runs Moorage beside a cluster's own scheduler and controllers. The guide is
[Install beside a cluster](../../../docs/how-to/install-beside-a-cluster.md).

```sh
helm install moorage deploy/chart/moorage --namespace moorage --create-namespace
```

## Values

{table}
"""


class NoHelmError(Exception):
    """Helm is not available."""


def rendered(*options: str) -> str:
    """Return the manifests of the chart, or raise NoHelmError."""
    if not HELM.exists():
        raise NoHelmError
    command = [str(HELM), "template", "moorage", str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBE_VERSION, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout


def kustomize_files() -> dict[str, str]:
    """Return the files of the kustomize base and of the page, by path."""
    base = _by_template(rendered())
    page = _by_template(rendered("--set", "page.enabled=true"))["page"]
    found = {f"base/{name}.yaml": text for name, text in base.items()}
    found["base/kustomization.yaml"] = _kustomization(base)
    found["base/namespace.yaml"] = (
        f"{MADE}apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n"
    )
    found["page/page.yaml"] = page
    found["page/kustomization.yaml"] = (
        f"{MADE}apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "resources:\n- page.yaml\n"
    )
    return found


def _kustomization(base: Mapping[str, str]) -> str:
    names = "".join(f"- {name}.yaml\n" for name in ("namespace", *base))
    return (
        f"{MADE}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        f"namespace: {NAMESPACE}\nresources:\n{names}"
    )


def _by_template(text: str) -> dict[str, str]:
    """Return the manifests of each template, in the order in which helm would apply them."""
    found: dict[str, list[str]] = {}
    for document in text.split("\n---\n"):
        source = _SOURCE.search(document)
        if source is not None:
            plain = _OF_HELM.sub("", document[source.end() :]).strip("\n")
            found.setdefault(source[1], []).append(plain)
    return {
        name: MADE + "\n---\n".join(documents) + "\n" for name, documents in sorted(found.items())
    }


def readme() -> str:
    """Return the README of the chart."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    rows = list(_rows("", schema, values))
    return _README.format(table=table_of(("value", "default", "meaning"), rows))


def _rows(path: str, schema: Mapping[str, Any], values: Any) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each value; a value that the chart does not use has no default."""
    for name, part in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if name not in values:
            continue
        if "properties" in part:
            yield from _rows(below, part, values[name])
        else:
            default = json.dumps(values[name], ensure_ascii=False)
            yield f"`{below}`", f"`{default}`", part["description"]


def main(arguments: list[str]) -> int:
    """Write the files, or with --check return 1 if some are stale."""
    files = {CHART / "README.md": readme()}
    try:
        files |= {BASE / path: text for path, text in kustomize_files().items()}
    except NoHelmError:
        print("no helm: deploy/kustomize is left as it is")
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}")
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
