"""Which CPUs a claim gets when it asks for so many: whole cores, near to each other.

1. Of the NUMA nodes that have room for all, take the one with least room; it stays whole for
   others. If none has, begin with those that have most.
2. In a node, take cores that are all free as long as all their CPUs are needed.
3. Take what is still missing from cores that others use already; then break one up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.drivers.cpus import Cpu


def choose(free: Iterable[Cpu], count: int) -> tuple[int, ...] | None:
    """Return so many CPUs of those that are free; None if there are not so many."""
    nodes: dict[int, list[Cpu]] = {}
    for cpu in free:
        nodes.setdefault(-1 if cpu.node is None else cpu.node, []).append(cpu)
    if sum(map(len, nodes.values())) < count:
        return None
    chosen: list[int] = []
    for node in _best_first(nodes, count):
        chosen += _of_node(node, count - len(chosen))
    return tuple(sorted(chosen))


def _best_first(nodes: dict[int, list[Cpu]], count: int) -> Iterator[list[Cpu]]:
    roomy = [node for node, cpus in nodes.items() if len(cpus) >= count]
    if roomy:
        yield nodes[min(roomy, key=lambda node: (len(nodes[node]), node))]
        return
    for node in sorted(nodes, key=lambda node: (-len(nodes[node]), node)):
        yield nodes[node]


def _of_node(cpus: list[Cpu], count: int) -> list[int]:
    cores: dict[int, list[Cpu]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(min(cpu.siblings), []).append(cpu)
    chosen: list[int] = []
    for members in cores.values():
        is_whole = len(members) == len(members[0].siblings)
        if is_whole and len(members) <= count - len(chosen):
            chosen += [cpu.id for cpu in members]
    # Cores with the least left come first: those are in use, or the smallest to break up.
    rest = sorted(cores.values(), key=lambda members: (len(members), members[0].id))
    for cpu in (cpu for members in rest for cpu in members if cpu.id not in chosen):
        if len(chosen) == count:
            break
        chosen.append(cpu.id)
    return chosen
