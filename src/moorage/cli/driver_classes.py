"""`moor driver classes`: the DeviceClasses of drivers, for an administrator to apply."""

from __future__ import annotations

import click

from moorage.api.resource.v1 import GROUP, DeviceClass
from moorage.cli import CONTEXT
from moorage.cli.driver_options import chosen_drivers, several_drivers
from moorage.cli.output import output_option, print_answer, print_table
from moorage.drivers.catalogue import DriverOptions
from moorage.insight.object_names import kubectl_name


@click.command(
    name="classes", context_settings=CONTEXT, epilog="Exit status: 0 success, 2 usage error."
)
@several_drivers
@output_option(default="yaml", names="the classes")
def command(names: tuple[str, ...], options: DriverOptions, output: str) -> None:
    """Print the DeviceClasses of drivers.

    NAME… is one or more of cpu, memory, net, nvme, nvidia and sim. `moor driver run` creates the
    classes of its drivers if it is allowed to. A driver that runs with the credentials of its
    node is not; an administrator then applies them.

    \b
    moor driver classes nvidia net | kubectl apply -f -
    """
    from moorage.api.codec import to_tree
    from moorage.hardware.machine import CLASSES, device_classes

    drivers = [driver.name for driver in chosen_drivers(names, options)]
    found = tuple(device_classes(dict.fromkeys(name for name in drivers if name in CLASSES)))
    items = [to_tree(each) for each in found]
    rows = [_row(each) for each in found]
    print_answer(
        output,
        table=lambda _: print_table(
            ("NAME", "EXTENDED RESOURCE", "SELECTORS"),
            ([each or "" for each in row.values()] for row in rows),
            is_wide=True,
        ),
        document=lambda: {"apiVersion": "v1", "kind": "List", "items": items},
        rows=lambda: rows,
        names=lambda: (kubectl_name(each.kind, each.metadata.name, GROUP) for each in found),
        columns=("name", "extended_resource", "selectors"),
    )


def _row(found: DeviceClass) -> dict[str, str | None]:
    expressions = (each.cel.expression for each in found.spec.selectors or () if each.cel)
    return {
        "name": found.metadata.name,
        "extended_resource": found.spec.extended_resource_name or None,
        "selectors": " && ".join(expressions) or None,
    }
