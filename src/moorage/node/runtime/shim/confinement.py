"""The user, groups, capabilities and system calls of a container, taken just before its program.

    streams ─► no new privileges ─► filter ─► bounding set ─► groups ─► user ─► capabilities

Each step needs a privilege that a later one gives up. Whatever fails ends the child before its
program runs. An agent that is not root can change neither user nor groups, and needs
`no_new_privileges` for the filter; it refuses the rest before anything is forked.

The filter denies the system calls with which a process changes the machine rather than its own
work: modules, mounts, namespaces, clocks, keys, other processes. They fail with EPERM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from moorage.node.runtime.shim import linux
from moorage.node.runtime.shim.protocol import Confinement

_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 23, 24, 38, 22
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITIES_MAX = 64
_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000  # _FAIL with an errno
_NUMBER, _MACHINE, _ARGUMENT = 0, 4, 16  # places in what a filter sees
_OTHER_CALLS = 0x40000000  # of x32, which would pass by other numbers
# CLONE_NEW…: cgroup, UTS, IPC, user, PID, network, mount
_NAMESPACES = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x20000
# Denied on every machine, by the same number.
_NEW_CALLS = (*range(428, 434), 442, 443, 425, 426, 427)


class _Machine(NamedTuple):
    identity: int  # AUDIT_ARCH of the kernel
    clone: int
    clone3: int
    denied: tuple[int, ...]


# acct add_key bpf clock_adjtime clock_settime delete_module finit_module init_module kcmp
# kexec_file_load kexec_load keyctl lookup_dcookie mount name_to_handle_at nfsservctl
# open_by_handle_at perf_event_open pivot_root process_vm_readv process_vm_writev ptrace quotactl
# reboot request_key setns settimeofday swapoff swapon umount2 unshare userfaultfd vhangup syslog
_GENERIC = (
    *(89, 217, 280, 266, 112, 106, 273, 105, 272, 294, 104, 219, 18, 40, 264, 42, 265, 241, 41),
    *(270, 271, 117, 60, 142, 218, 268, 170, 225, 224, 39, 97, 282, 58, 116),
)
_MACHINES = {
    # … and create_module get_kernel_syms query_module ioperm iopl _sysctl sysfs uselib ustat
    "x86_64": _Machine(0xC000003E, 56, 435, (
        *(163, 248, 321, 305, 227, 176, 313, 175, 312, 320, 246, 250, 212, 165, 303, 180, 304, 298),
        *(155, 310, 311, 101, 179, 169, 249, 308, 164, 168, 167, 166, 272, 323, 153, 103),
        *(174, 177, 178, 173, 172, 156, 139, 134, 136),
    )),
    "aarch64": _Machine(0xC00000B7, 220, 435, _GENERIC),
    "riscv64": _Machine(0xC00000F3, 220, 435, _GENERIC),
}  # fmt: skip


def has_filter() -> bool:
    """Return whether the filter of system calls is known for this machine."""
    return os.uname().machine in _MACHINES


def take(confinement: Confinement, groups: tuple[int, ...] = ()) -> None:
    """Give up what a container does not get; `groups` are those of its devices."""
    if confinement.user is not None:
        _own_streams(confinement.user)
    if confinement.no_new_privileges:
        linux.prctl(_PR_SET_NO_NEW_PRIVS, 1, what="no new privileges")
    if confinement.has_filter:
        _filter_calls()
    if confinement.capabilities is not None and os.geteuid() == 0:
        _limit_capabilities(confinement.capabilities)
    _take_groups(confinement, groups)
    if confinement.user is not None and confinement.user != os.getuid():
        os.setresuid(confinement.user, confinement.user, confinement.user)
    if confinement.capabilities is not None:
        _keep_capabilities(confinement.capabilities)


def _own_streams(user: int) -> None:
    """Let the user open its streams again, as `/dev/stdout`; /dev/null stays as it is."""
    for descriptor in range(3):
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(descriptor):
            with suppress(PermissionError):
                os.fchown(descriptor, user, -1)


def _take_groups(confinement: Confinement, more: tuple[int, ...]) -> None:
    wanted = confinement.groups
    if wanted is not None or more:
        exact = sorted({*(os.getgroups() if wanted is None else wanted), *more})
        if exact != sorted(os.getgroups()) and (wanted is not None or os.geteuid() == 0):
            os.setgroups(exact)
    group = confinement.group
    if group is not None and group != os.getgid():
        os.setresgid(group, group, group)


def _limit_capabilities(kept: tuple[int, ...]) -> None:
    """Drop others from the bounding set, so that no program gains them."""
    for number in range(_CAPABILITIES_MAX):
        if number not in kept:
            try:
                linux.prctl(_PR_CAPBSET_DROP, number, what=f"capability {number}")
            except OSError as error:
                if error.errno != errno.EINVAL:  # the kernel has no more
                    raise
                return


def _keep_capabilities(kept: tuple[int, ...]) -> None:
    with suppress(OSError):  # kernels before 4.3 have none
        linux.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    linux.set_capabilities(_permitted().intersection(kept))


def _permitted() -> set[int]:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        line = next(each for each in file if each.startswith("CapPrm:"))
    bits = int(line.split()[1], 16)
    return {number for number in range(_CAPABILITIES_MAX) if bits >> number & 1}


# --- system calls ---------------------------------------------------------------------------------


def _filter_calls() -> None:
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(errno.ENOSYS, "no filter of system calls for this machine")
    steps = list(_filter_of(machine))
    program = ctypes.create_string_buffer(b"".join(steps), len(steps) * 8)
    header = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    linux.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(header), "seccomp"
    )


def _filter_of(machine: _Machine) -> Iterator[bytes]:
    """Yield the filter's steps: a code, how many steps to skip if true or false, and a value."""

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    denied = step(_RETURN, _FAIL | errno.EPERM)
    yield step(_LOAD, _MACHINE)
    yield from (step(_EQUALS, machine.identity, if_true=1), denied)
    yield step(_LOAD, _NUMBER)
    yield from (step(_AT_LEAST, _OTHER_CALLS, if_false=1), denied)
    # Its flags are in memory, where no filter sees them: programs fall back to clone.
    yield from (
        step(_EQUALS, machine.clone3, if_false=1),
        step(_RETURN, _FAIL | errno.ENOSYS),
    )
    for number in (*machine.denied, *_NEW_CALLS):
        yield from (step(_EQUALS, number, if_false=1), denied)
    yield step(_EQUALS, machine.clone, if_false=3)
    yield step(_LOAD, _ARGUMENT)
    yield from (step(_HAS_BITS, _NAMESPACES, if_false=1), denied)
    yield step(_RETURN, _ALLOW)
