"""A new driver as files: a program, its tests, and its manifests (pure)."""

from __future__ import annotations

import re
from string import Template

from moorage.api.names import dns1123_subdomain
from moorage.kit.extras import remedy

NAME_MAX = 63

_DRIVER = Template('''\
"""The DRA driver $name."""

from moorage.driver import (
    Claim,
    ClaimName,
    ContainerEdits,
    Device,
    DeviceAttribute,
    Driver,
    Prepared,
    run,
)


class $class_name(Driver):
    """Gives containers the devices of $name."""

    name = "$name"

    def devices(self) -> list[Device]:
        """Return what there is; call `self.republish()` when it changes."""
        model = {"model": DeviceAttribute(string_value="first")}
        return [Device(name=f"$short-{number}", attributes=model) for number in range(4)]

    def prepare(self, claim: Claim) -> list[Prepared]:
        """Make the devices of a claim ready: here, containers are told their names."""
        return [
            Prepared(device, ContainerEdits(env=(f"$variable={device.name}",)))
            for device in claim.devices
        ]

    def unprepare(self, claim: ClaimName) -> None:
        """Undo what prepare did, also if it is asked twice."""


if __name__ == "__main__":
    run($class_name())
''')

_TEST = Template('''\
"""$name offers its devices and tells containers which they have."""

from pathlib import Path

from driver import $class_name

EXAMPLE = Path(__file__).with_name("example.yaml")


def test_devices_have_names_of_their_own():
    names = [device.name for device in $class_name().devices()]
    assert len(names) == len(set(names)) == 4


def test_a_claim_survives_a_kubelet_that_lost_its_memory(fake_kubelet):
    with fake_kubelet.run($class_name()):
        claim = fake_kubelet.claim("$name")
        edits = fake_kubelet.prepare(claim)
        assert edits.env == ("$variable=$short-0",)
        fake_kubelet.forget()
        assert fake_kubelet.prepare(claim) == edits
        fake_kubelet.unprepare(claim)


def test_a_pod_is_told_which_device_it_has(dra_cluster):
    with dra_cluster.run($class_name()):
        dra_cluster.apply(EXAMPLE)
        dra_cluster.wait_for("$short-user", "Succeeded")
        assert dra_cluster.logs("$short-user") == "$short-0\\n"
''')

_MANIFEST = Template("""\
# What users write to get a device of $name.
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: $name
spec:
  selectors:
  - cel:
      expression: device.driver == "$name"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: one-$short
  namespace: default
spec:
  spec:
    devices:
      requests:
      - name: one
        exactly:
          deviceClassName: $name
---
apiVersion: v1
kind: Pod
metadata:
  name: $short-user
  namespace: default
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "echo $$$variable"]
    resources:
      claims:
      - name: device
  resourceClaims:
  - name: device
    resourceClaimTemplateName: one-$short
""")

_README = Template("""\
# $name

A driver for Dynamic Resource Allocation, written with the SDK of Moorage.

    $install pytest
    pytest                                     # its tests, with a cluster of their own
    moor driver check -- python driver.py      # whether it does all that a kubelet expects
    moor validate -f example.yaml              # the class, a template for claims, and a pod
    python driver.py --node-name $$(hostname)   # on a node, as root, with a kubeconfig;
                                               # beside `moor up` with the folders of `moor status`

`driver.py` has the three methods that make a driver. All else is done for it: its sockets and
registration, slices, CDI specs, a checkpoint, restarts. `python driver.py --help` tells more.
""")


def scaffold(name: str) -> dict[str, str]:
    """Return the files of a new driver by name; raises ValueError for an invalid driver name."""
    wrong = dns1123_subdomain(name)
    if wrong or len(name) > NAME_MAX:
        fact = wrong[0] if wrong else f"must have at most {NAME_MAX} characters"
        raise ValueError(f"{name[:256]!r} cannot be the name of a driver: {fact}")
    words = {
        "name": name,
        "short": short_name(name),
        "class_name": "".join(part.capitalize() for part in _parts(name)),
        "variable": "_".join(_parts(name)).upper(),
    }
    return {
        "driver.py": _DRIVER.substitute(words),
        "test_driver.py": _TEST.substitute(words),
        "example.yaml": _MANIFEST.substitute(words),
        "README.md": _README.substitute(words, install=remedy("drivers", "server")),
    }


def short_name(name: str) -> str:
    """Return the first part of a driver's name, which devices are named after."""
    return name.partition(".")[0][:40].rstrip("-")


def _parts(name: str) -> list[str]:
    """Return the words of a name; the first can begin an identifier."""
    words = re.findall(r"[a-z0-9]+", short_name(name))
    return words if words[0][0].isalpha() else ["driver", *words]
