"""Security contexts: each field acts on a real process, or the container is refused."""

from __future__ import annotations

import os
import pwd
import sys
import sysconfig
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.cdi import ContainerEdits, Mount
from moorage.node.errors import ConfigError
from moorage.node.runtime.contract import ContainerSpec, RuntimeRefusedError
from moorage.node.runtime.podman.security_options import (
    check_image_user,
    image_user,
    security_options,
)
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.process.confinement import Agent, confinement_of
from moorage.node.runtime.security_context import (
    CAPABILITIES,
    SecurityContext,
    security_context_of,
)
from moorage.node.runtime.shim.protocol import Confinement, Launch, LaunchError
from tests.node.runtime.bench import FOREVER, Bench, executed, id_of, output, shell, told_by
from tests.node.runtime.test_process_edits import SOURCE, is_usable_by_nobody, run_as_nobody
from tests.node.world import container, make_pod

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")
ROOT = Agent(0, 0, (0,), frozenset(range(41)))
ORDINARY = Agent(1000, 1000, (1000, 44), frozenset(range(41)))
NET_BIND, NET_RAW = CAPABILITIES.index("NET_BIND_SERVICE"), CAPABILITIES.index("NET_RAW")
STATUS = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"
ABOUT = '(pod: "p_default(uid-p)", container: c)'


def context_of(
    own: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any
) -> SecurityContext:
    fields: dict[str, Any] = {} if own is None else {"securityContext": own}
    whole: dict[str, Any] = {} if pod is None else {"securityContext": pod}
    made = make_pod(container(**fields), **whole, **spec)
    return security_context_of(made, made.spec.containers[0])


def spec_of(own: dict[str, Any] | None = None, pod: dict[str, Any] | None = None) -> ContainerSpec:
    return shell("c", "true", security=context_of(own, pod))


async def status_of(runtime: ProcessRuntime, spec: ContainerSpec) -> dict[str, str]:
    lines = (await told_by(runtime, spec)).splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


# --- reading --------------------------------------------------------------------------------------


def test_a_container_overrides_its_pod() -> None:
    pod = {"runAsUser": 1, "runAsGroup": 2, "supplementalGroups": [3, 4], "fsGroup": 5}
    found = context_of({"runAsUser": 9, "seccompProfile": {"type": "Unconfined"}}, pod)
    assert (found.user, found.group, found.groups) == (9, 2, (3, 4, 5))
    assert (found.fs_group, found.seccomp) == (5, "Unconfined")


@pytest.mark.parametrize(
    ("own", "pod"),
    [
        ({"runAsNonRoot": True, "runAsUser": 0}, {}),
        ({"runAsNonRoot": True}, {"runAsUser": 0}),
        ({}, {"runAsNonRoot": True, "runAsUser": 0}),
    ],
)
def test_root_breaks_the_policy_on_every_runtime(own: dict[str, Any], pod: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        context_of(own, pod)
    assert str(caught.value) == f"container's runAsUser breaks non-root policy {ABOUT}"


@pytest.mark.parametrize(
    ("own", "fact"),
    [
        ({"runAsUser": "x"}, "runAsUser: it must be between 0 and 2147483647"),
        ({"runAsUser": -1}, "runAsUser: it must be between 0"),
        ({"runAsUser": 2**31}, "runAsUser: it must be between 0"),
        ({"runAsUser": True}, "runAsUser: it must be between 0"),
        ({"privileged": "yes"}, "privileged: it must be true or false"),
        ({"capabilities": {"add": "ALL"}}, "add: it must be a list"),
        ({"capabilities": {"drop": [1]}}, "drop: it must be a list of names"),
        ({"capabilities": {"drop": ["NO_SUCH"]}}, '"NO_SUCH" is no capability'),
        ({"capabilities": []}, "capabilities: it must be an object"),
        ({"seccompProfile": {"type": "Magic"}}, "type: it must be one of RuntimeDefault"),
        (
            {"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}},
            'cannot load seccomp profile "../x": this node has no seccomp profiles',
        ),
        ({"procMount": "Other"}, "procMount: it must be one of Default, Unmasked"),
        ({"windowsOptions": {"hostProcess": True}}, "windowsOptions: this node runs Linux"),
        ({"seLinuxOptions": {"level": "a\x1b"}}, "level: it must be a text without control"),
    ],
)
def test_what_has_no_meaning_is_refused(own: dict[str, Any], fact: str) -> None:
    with pytest.raises(ConfigError) as caught:
        context_of(own)
    assert fact in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    [
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "fsGroup",
        "fsGroupChangePolicy",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxOptions",
        "seccompProfile",
        "appArmorProfile",
        "capabilities",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "readOnlyRootFilesystem",
        "sysctls",
        "windowsOptions",
    ]
)


@given(st.dictionaries(FIELDS, JSON), st.dictionaries(FIELDS, JSON))
def test_anything_is_a_context_or_refused(own: dict[str, Any], pod: dict[str, Any]) -> None:
    try:
        found = context_of(own, pod)
    except ConfigError:
        return
    for agent in (ROOT, ORDINARY):
        try:
            confinement_of(shell("c", "true", security=found), agent)
            security_options(found, 1, is_root=agent.is_root)
        except RuntimeRefusedError as error:
            assert error.reason == "CreateContainerConfigError"  # noqa: PT017


# --- what an agent can give -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "pod", "wanted"),
    [
        ({}, {}, Confinement()),
        ({"privileged": True}, {}, Confinement()),
        ({"procMount": "Unmasked"}, {}, Confinement()),
        ({"seccompProfile": {"type": "Unconfined"}}, {}, Confinement()),
        ({"appArmorProfile": {"type": "Unconfined"}}, {}, Confinement()),
        ({"allowPrivilegeEscalation": True}, {}, Confinement()),
        ({"allowPrivilegeEscalation": False}, {}, Confinement(no_new_privileges=True)),
        ({"readOnlyRootFilesystem": True}, {}, Confinement(is_root_read_only=True)),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, {}, Confinement(has_filter=True)),
        ({"runAsGroup": 7}, {}, Confinement(group=7)),
        ({}, {"supplementalGroups": [9, 8]}, Confinement(groups=(0, 8, 9))),
        ({}, {"fsGroup": 9, "fsGroupChangePolicy": "Always"}, Confinement(groups=(0, 9))),
        (
            {},
            {"supplementalGroups": [9], "supplementalGroupsPolicy": "Strict"},
            Confinement(groups=(9,)),
        ),
        (
            {"runAsUser": 1234567},
            {"fsGroup": 5},
            Confinement(user=1234567, group=1234567, groups=(5,)),
        ),
        ({"capabilities": {"drop": ["ALL"]}}, {}, Confinement(capabilities=())),
        (
            {"capabilities": {"drop": ["all"], "add": ["CAP_NET_BIND_SERVICE"]}},
            {},
            Confinement(capabilities=(NET_BIND,)),
        ),
    ],
)
def test_an_agent_of_root_gives_what_is_asked(
    own: dict[str, Any], pod: dict[str, Any], wanted: Confinement
) -> None:
    assert confinement_of(spec_of(own, pod), ROOT) == wanted


REFUSED = [
    ({"runAsUser": 1001}, {}, "runAsUser 1001: it needs an agent that runs as root"),
    ({"runAsUser": 0}, {}, "runAsUser 0: it needs an agent"),
    ({"runAsGroup": 7}, {}, "runAsGroup 7: it needs an agent"),
    ({}, {"fsGroup": 7}, "fsGroup 7: it needs an agent"),
    ({}, {"supplementalGroups": [44, 7]}, "supplementalGroups 7: it needs an agent"),
    ({}, {"supplementalGroupsPolicy": "Strict"}, "supplementalGroupsPolicy Strict: it needs"),
    ({"privileged": True}, {}, "privileged: it needs an agent that runs as root"),
    ({"capabilities": {"add": ["NET_ADMIN"]}}, {}, "capability NET_ADMIN: it needs"),
    ({"capabilities": {"add": ["ALL"]}}, {}, "capability ALL: it needs"),
]


@pytest.mark.parametrize(("own", "pod", "fact"), REFUSED)
def test_an_ordinary_agent_refuses_what_it_cannot_give(
    own: dict[str, Any], pod: dict[str, Any], fact: str
) -> None:
    with pytest.raises(RuntimeRefusedError) as caught:
        confinement_of(spec_of(own, pod), ORDINARY)
    assert caught.value.reason == "CreateContainerConfigError"
    assert str(caught.value).startswith(fact)


@pytest.mark.parametrize(
    ("own", "pod", "wanted"),
    [
        ({"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True}, {}, Confinement()),
        ({"runAsNonRoot": True}, {"supplementalGroups": [44], "fsGroup": 1000}, Confinement()),
        (
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {},
            Confinement(has_filter=True, no_new_privileges=True),
        ),
    ],
)
def test_an_ordinary_agent_gives_what_it_has(
    own: dict[str, Any], pod: dict[str, Any], wanted: Confinement
) -> None:
    assert confinement_of(spec_of(own, pod), ORDINARY) == wanted


def test_without_root_dropped_capabilities_cannot_be_gained_again() -> None:
    found = confinement_of(spec_of({"capabilities": {"drop": ["ALL"]}}), ORDINARY)
    assert (found.capabilities, found.no_new_privileges) == ((), True)


@pytest.mark.parametrize(
    ("own", "pod", "fact"),
    [
        (
            {"runAsNonRoot": True},
            {},
            f"container has runAsNonRoot and image will run as root {ABOUT}",
        ),
        ({"seLinuxOptions": {"type": "t"}}, {}, "seLinuxOptions: the process runtime sets no"),
        ({"appArmorProfile": {"type": "RuntimeDefault"}}, {}, "Cannot enforce AppArmor: "),
        (
            {},
            {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
            'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled',
        ),
    ],
)
def test_no_process_can_have_it(own: dict[str, Any], pod: dict[str, Any], fact: str) -> None:
    with pytest.raises(RuntimeRefusedError) as caught:
        confinement_of(spec_of(own, pod), ROOT)
    assert caught.value.reason == "CreateContainerConfigError"
    assert str(caught.value).startswith(fact)


def test_a_capability_that_the_agent_lacks_is_refused() -> None:
    agent = Agent(0, 0, (0,), frozenset({NET_RAW}))
    with pytest.raises(
        RuntimeRefusedError, match="capability NET_BIND_SERVICE: the agent does not"
    ):
        confinement_of(spec_of({"capabilities": {"add": ["NET_BIND_SERVICE"]}}), agent)


# --- real processes -------------------------------------------------------------------------------


@needs_root
def test_user_and_groups_are_those_of_the_context(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        context = SecurityContext(user=1234567, group=7, groups=(8, 9))
        spec = shell("a", 'id -u; id -g; id -G; echo "$HOME"', security=context)
        assert await told_by(runtime, spec) == "1234567\n7\n7 8 9\n/\n"

    bench.play(story)


@needs_root
def test_a_known_user_has_its_own_groups_and_home(bench: Bench) -> None:
    nobody = pwd.getpwnam("nobody")

    async def story(runtime: ProcessRuntime) -> None:
        spec = shell(
            "a",
            'id -u; id -g; echo "$HOME"; echo again > /dev/stdout',
            security=SecurityContext(user=nobody.pw_uid, is_non_root=True),
        )
        told = f"{nobody.pw_uid}\n{nobody.pw_gid}\n{nobody.pw_dir}\nagain\n"
        assert await told_by(runtime, spec) == told

    bench.play(story)


@needs_root
def test_a_user_reads_nothing_of_root(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        hidden = bench.root / "hidden"
        hidden.write_text("secret")
        hidden.chmod(0o600)
        spec = shell("a", f"cat {hidden} || echo no", security=SecurityContext(user=1234567))
        assert "secret" not in await told_by(runtime, spec)

    bench.play(story)


@needs_root
def test_a_command_beside_a_container_has_no_more_rights(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        context = SecurityContext(
            user=1234567, dropped=("ALL",), no_new_privileges=True, seccomp="RuntimeDefault"
        )
        spec = shell("a", FOREVER, security=context)
        await runtime.start(spec)
        script = f"id -u; {STATUS}"
        code, told, _ = await executed(runtime, spec.id, ["/bin/sh", "-c", script])
        assert code == 0
        user, *lines = told.decode().split("\n")
        assert user == "1234567"
        assert "NoNewPrivs:\t1" in lines
        assert "Seccomp:\t2" in lines
        assert "CapBnd:\t0000000000000000" in lines

    bench.play(story)


@needs_root
def test_dropped_capabilities_are_gone_for_good(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        context = SecurityContext(dropped=("ALL",), added=("NET_BIND_SERVICE",))
        found = await status_of(runtime, shell("a", STATUS, security=context))
        assert {found[name] for name in ("CapPrm", "CapEff", "CapBnd")} == {f"{1 << NET_BIND:016x}"}
        assert (found["CapInh"], found["CapAmb"]) == ("0" * 16, "0" * 16)
        one = SecurityContext(dropped=("NET_RAW",))
        found = await status_of(runtime, shell("b", STATUS, security=one))
        assert int(found["CapBnd"], 16) & 1 << NET_RAW == 0
        assert int(found["CapEff"], 16) & 1 << NET_BIND

    bench.play(story)


def test_no_new_privileges_and_the_filter_act(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        plain = await status_of(runtime, shell("a", STATUS))
        assert plain["NoNewPrivs"] == "0"
        context = SecurityContext(no_new_privileges=True, seccomp="RuntimeDefault")
        found = await status_of(runtime, shell("b", STATUS, security=context))
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")

    bench.play(story)


@pytest.mark.parametrize(
    "command", ["unshare --user true", "unshare --mount true", "dmesg --syslog"]
)
def test_the_filter_denies_calls_that_change_the_machine(bench: Bench, command: str) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        context = SecurityContext(seccomp="RuntimeDefault")
        spec = shell("a", f"{command} 2>&1 | cat; (echo forks) | cat", security=context)
        told = await told_by(runtime, spec)
        assert "not permitted" in told
        assert "forks" in told

    bench.play(story)


@needs_root
def test_a_read_only_root_leaves_volumes_writable(bench: Bench, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()

    async def story(runtime: ProcessRuntime) -> None:
        mount = Mount(host_path=str(volume), container_path="/mnt/volume", options=("rbind", "rw"))
        script = f"""
        echo x > /mnt/volume/file && echo written
        for place in {tmp_path} /tmp /etc /var/tmp / /dev/shm/../../root; do
            (echo x > "$place/moorage-test") 2>/dev/null && echo "wrote to $place"
        done
        echo x > /dev/null && echo done"""
        spec = shell(
            "a",
            script,
            edits=ContainerEdits(mounts=(mount,)),
            security=SecurityContext(is_root_read_only=True),
        )
        assert await told_by(runtime, spec) == "written\ndone\n"

    bench.play(story)
    assert (volume / "file").read_text() == "x\n"
    assert not (tmp_path / "moorage-test").exists()
    (tmp_path / "still-writable-here").touch()


@needs_root
def test_what_is_refused_never_ran(bench: Bench, tmp_path: Path) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", f"touch {tmp_path}/ran", security=SecurityContext(is_non_root=True))
        with pytest.raises(RuntimeRefusedError) as caught:
            await runtime.start(spec)
        assert caught.value.reason == "CreateContainerConfigError"
        assert await runtime.containers() == []
        assert not (tmp_path / "ran").exists()
        assert await told_by(runtime, shell("b", "echo fine")) == "fine\n"

    bench.play(story)


ORDINARY_AGENT = """
    import asyncio, tempfile
    from pathlib import Path
    from moorage.node.runtime.contract import RuntimeRefusedError
    from moorage.node.runtime.security_context import SecurityContext
    from tests.node.runtime.bench import *

    STATUS = "grep -E '^(CapPrm|NoNewPrivs|Seccomp:)' /proc/self/status; id -u"
    CASES = {
        "itself": (SecurityContext(user=65534, is_non_root=True), "id -u"),
        "other": (SecurityContext(user=1), "id -u"),
        "root": (SecurityContext(user=0), "id -u"),
        "group": (SecurityContext(groups=(7,), fs_group=7), "id -u"),
        "rights": (SecurityContext(dropped=("ALL",), seccomp="RuntimeDefault"), STATUS),
        "read-only": (SecurityContext(is_root_read_only=True), "(echo > /tmp/moor-x) 2>&1 | wc -l"),
    }

    async def main(root):
        runtime = ProcessRuntime(root)
        try:
            for name, (context, script) in CASES.items():
                try:
                    told = await told_by(runtime, shell(name, script, security=context))
                except RuntimeRefusedError as error:
                    told = f"{error.reason}: {error}"
                print(name, told.split())
        finally:
            await runtime.shut_down()

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        asyncio.run(main(Path(folder)))
"""


@needs_root
def test_an_agent_of_an_ordinary_user_gives_what_it_can_and_refuses_the_rest() -> None:
    python_ = next(filter(is_usable_by_nobody, [sys.executable, "/usr/bin/python3"]), None)
    if python_ is None:
        pytest.skip("other users may not run this Python")
    packages = f"{SOURCE}:{SOURCE}/src:{sysconfig.get_path('purelib')}"
    environment = {"PYTHONPATH": packages, "HOME": "/", "PATH": os.environ["PATH"]}
    done = run_as_nobody([python_, "-B", "-c", textwrap.dedent(ORDINARY_AGENT)], environment)
    if "Permission denied" in done.stderr:
        pytest.skip("other users may not read this folder")
    assert done.stderr == ""
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert told["itself"] == "['65534']"
    for name in ("other", "root", "group"):
        assert told[name].startswith("['CreateContainerConfigError:'")
    found = ["CapPrm:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2", "65534"]
    assert told["rights"] == str(found)
    assert told["read-only"] == "['1']" or "namespaces" in told["read-only"]


def test_a_shim_that_does_not_know_a_confinement_refuses_it() -> None:
    launch = Launch(
        key=Launch.read(
            {"key": ["p", "c", 0], "digest": "", "command": ["x"], "environment": {}}
        ).key,
        digest="",
        command=("x",),
        environment={},
    )
    assert "confinement" not in launch.message()  # older shims take it
    confined = launch._replace(confinement=Confinement(user=1, groups=(2,), capabilities=()))
    message = confined.message()
    assert Launch.read(message) == confined
    with pytest.raises(LaunchError):
        Launch.read({**message, "something_newer": 1})


# --- podman ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "pod", "more", "wanted"),
    [
        ({"runAsUser": 5}, {}, {}, ["--user=5"]),
        ({"runAsUser": 5, "runAsGroup": 6}, {}, {}, ["--user=5:6"]),
        ({"runAsGroup": 6}, {}, {}, ["--user=1:6"]),
        ({}, {"fsGroup": 7, "supplementalGroups": [8]}, {}, ["--group-add=8", "--group-add=7"]),
        (
            {"capabilities": {"drop": ["ALL"], "add": ["CAP_CHOWN"]}},
            {},
            {},
            ["--cap-drop=ALL", "--cap-add=CHOWN"],
        ),
        ({"privileged": True}, {}, {}, ["--privileged"]),
        ({"allowPrivilegeEscalation": False}, {}, {}, ["--security-opt=no-new-privileges"]),
        ({"readOnlyRootFilesystem": True}, {}, {}, ["--read-only", "--read-only-tmpfs=false"]),
        ({"procMount": "Unmasked"}, {}, {}, ["--security-opt=unmask=ALL"]),
        (
            {"seccompProfile": {"type": "Unconfined"}},
            {},
            {},
            ["--security-opt=seccomp=unconfined"],
        ),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, {}, {}, []),
        ({"seLinuxOptions": {"level": "s0"}}, {}, {}, ["--security-opt=label=level:s0"]),
        (
            {},
            {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
            {},
            ["--sysctl=kernel.shm_rmid_forced=1"],
        ),
        ({}, {}, {"hostPID": True, "hostIPC": True}, ["--pid=host", "--ipc=host"]),
        ({}, {}, {}, []),
    ],
)
def test_podman_is_told_of_each_field(
    own: dict[str, Any], pod: dict[str, Any], more: dict[str, Any], wanted: list[str]
) -> None:
    assert security_options(context_of(own, pod, **more), 1, is_root=True) == wanted


@pytest.mark.parametrize(
    ("pod", "more", "is_root", "fact"),
    [
        ({"supplementalGroupsPolicy": "Strict"}, {}, True, "supplementalGroupsPolicy Strict"),
        ({"fsGroup": 7}, {}, False, "fsGroup 7: it needs an agent that runs as root"),
        ({}, {"shareProcessNamespace": True}, True, "shareProcessNamespace"),
    ],
)
def test_podman_refuses_what_it_cannot_do(
    pod: dict[str, Any], more: dict[str, Any], is_root: bool, fact: str
) -> None:
    with pytest.raises(RuntimeRefusedError, match=fact):
        security_options(context_of({}, pod, **more), is_root=is_root)


@pytest.mark.parametrize(
    ("user", "fact"),
    [
        ("", "container has runAsNonRoot and image will run as root"),
        ("0:5", "container has runAsNonRoot and image will run as root"),
        ("web", "container has runAsNonRoot and image has non-numeric user (web), cannot verify"),
        ("1000:0\n", ""),
    ],
)
def test_the_user_of_an_image_is_verified(user: str, fact: str) -> None:
    spec = spec_of({"runAsNonRoot": True})
    if not fact:
        check_image_user(spec, image_user(user))
        return
    with pytest.raises(RuntimeRefusedError) as caught:
        check_image_user(spec, image_user(user))
    assert caught.value.reason == "CreateContainerConfigError"
    assert str(caught.value).startswith(fact)


def test_logs_of_another_user_are_kept(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        user = 1234567 if os.geteuid() == 0 else os.geteuid()
        spec = shell("a", "echo out; echo err >&2", security=SecurityContext(user=user))
        await told_by(runtime, spec)
        assert sorted((await output(runtime, id_of("a"))).split()) == ["err", "out"]

    bench.play(story)
