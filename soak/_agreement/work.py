"""Claims, templates, pods and controllers of a random world."""

from __future__ import annotations

from random import Random
from typing import Final

from soak._agreement.fleet import EXTENDED, FABRIC, GPU, MIG, NIC, RESOURCE, Tree, made

SPACES: Final = ("team-a", "team-b")
KINDS: Final = ("Pod", "Pod", "Pod", "Deployment", "StatefulSet", "Job", "DaemonSet")
PRIORITIES: Final = {"low": -10, "high": 1000}
TOLERATED: Final = {"key": "dedicated", "operator": "Exists"}


class Work:
    """Makes workloads with their claims, one after another, each with names of its own."""

    def __init__(self, random: Random, prefix: str, *, mistakes: bool) -> None:
        self.random, self._prefix, self._mistakes = random, prefix, mistakes
        self._number = 0

    def workload(self) -> list[Tree]:
        """Return a pod or controller, and what it uses."""
        random = self.random
        name, space = self._name(), random.choice(SPACES)
        kind = random.choice(KINDS)
        found: list[Tree] = []
        spec = self._pod_spec()
        entries: list[Tree] = []
        for place in range(random.choice((0, 1, 1, 1, 2))):
            part = f"{name}-{place}"
            by_name = random.random() < (0.5 if kind == "Pod" else 0.1)
            found.append(self.claim(part, space) if by_name else self.template(part, space))
            field = "resourceClaimName" if by_name else "resourceClaimTemplateName"
            wanted = part
            if self._mistakes and random.random() < 0.03:
                wanted = f"{part}x"
            entries.append({"name": f"c{place}", field: wanted})
        if not entries and random.random() < 0.5:
            resources = spec["containers"][0]["resources"]
            resources["limits"] = {EXTENDED: "1"}
            resources["requests"][EXTENDED] = "1"
        if entries:
            spec["resourceClaims"] = entries
            claims = [{"name": each["name"]} for each in entries]
            spec["containers"][0]["resources"]["claims"] = claims
        return [*found, self._maker(kind, name, space, spec)]

    def unused(self) -> Tree:
        """Return a claim or template that nothing uses."""
        name, space = self._name(), self.random.choice(SPACES)
        is_claim = self.random.random() < 0.5
        return self.claim(name, space) if is_claim else self.template(name, space)

    def template(self, name: str, space: str) -> Tree:
        """Return a template."""
        kind = "ResourceClaimTemplate"
        return made(RESOURCE, kind, name, space, spec={"spec": self._claim_spec()})

    def claim(self, name: str, space: str) -> Tree:
        """Return a claim."""
        return made(RESOURCE, "ResourceClaim", name, space, spec=self._claim_spec())

    def _name(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number}"

    # --- claims -------------------------------------------------------------------------------

    def _claim_spec(self) -> Tree:
        random = self.random
        requests = [self._request("main")]
        if random.random() < 0.2:
            requests.append(self._request("more"))
        devices: Tree = {"requests": requests}
        if random.random() < 0.2:
            gpus = [each["name"] for each in requests if _is_of_gpus(each)]
            if gpus:
                field = random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
                attribute = f"{GPU}/{random.choice(('model', 'numaNode', 'index'))}"
                devices["constraints"] = [{"requests": gpus, field: attribute}]
        return {"devices": devices}

    def _request(self, name: str) -> Tree:
        if self.random.random() < 0.15:
            first = self._wanted() | {"name": "first"}
            first["count"] = 4
            first.pop("allocationMode", None)
            return {"name": name, "firstAvailable": [first, self._wanted() | {"name": "second"}]}
        return {"name": name, "exactly": self._wanted()}

    def _wanted(self) -> Tree:
        random = self.random
        driver = random.choice((GPU, GPU, GPU, f"large.{GPU}", NIC, MIG, FABRIC))
        wanted: Tree = {"deviceClassName": driver}
        if self._mistakes and random.random() < 0.06:
            wanted["deviceClassName"] = random.choice(("gpu.exmaple.com", "tpu.google.com"))
        match driver:
            case "nic.example.com" if random.random() < 0.7:
                amount = random.choice(("1G", "3G", "6G"))
                wanted["capacity"] = {"requests": {"bandwidth": amount}}
            case "mig.example.com":
                size = random.choice(("whole", "half", "quarter"))
                wanted["selectors"] = [_selector(f'device.attributes["{MIG}"].size == "{size}"')]
            case "gpu.example.com":
                self._want_gpus(wanted)
        if random.random() < 0.1:
            wanted["tolerations"] = [{"key": "example.com/sick", "operator": "Exists"}]
        return wanted

    def _want_gpus(self, wanted: Tree) -> None:
        random = self.random
        chance = random.random()
        if chance < 0.1:
            wanted["allocationMode"] = "All"
        elif chance < 0.5:
            wanted["count"] = random.choice((1, 2, 2, 3, 4))
        if random.random() < 0.3:
            model = random.choice(("a100", "h100"))
            if self._mistakes and random.random() < 0.15:
                model = "H100"
            wanted["selectors"] = [_selector(f'device.attributes["{GPU}"].model == "{model}"')]

    # --- pods and controllers -----------------------------------------------------------------

    def _pod_spec(self) -> Tree:
        random = self.random
        amounts = {"cpu": random.choice(("100m", "1", "3")), "memory": "1Gi"}
        container = {
            "name": "main",
            "image": "registry.example.com/app:1",
            "resources": {"requests": amounts},
        }
        spec: Tree = {"containers": [container]}
        if random.random() < 0.15:
            spec["priorityClassName"] = random.choice(list(PRIORITIES))
        if random.random() < 0.15:
            spec["nodeSelector"] = {"zone": random.choice(("east", "west"))}
        if random.random() < 0.15:
            spec["tolerations"] = [TOLERATED]
        return spec

    def _maker(self, kind: str, name: str, space: str, spec: Tree) -> Tree:
        if kind == "Pod":
            return made("v1", "Pod", name, space, spec=spec)
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": spec}
        replicas = self.random.choice((1, 2, 2, 3))
        if kind == "Job":
            spec["restartPolicy"] = "Never"
            counts = {"parallelism": replicas, "completions": replicas}
            return made("batch/v1", kind, name, space, spec={"template": template, **counts})
        wanted: Tree = {"selector": {"matchLabels": labels}, "template": template}
        if kind != "DaemonSet":
            wanted["replicas"] = replicas
        if kind == "StatefulSet":
            wanted["serviceName"] = name
        return made("apps/v1", kind, name, space, spec=wanted)


def _selector(expression: str) -> Tree:
    return {"cel": {"expression": expression}}


def _is_of_gpus(request: Tree) -> bool:
    wanted = request.get("exactly") or {}
    return str(wanted.get("deviceClassName", "")).endswith(GPU)
