"""A program in the server's process gets what it would get over HTTP: results, errors, rights."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import ConfigMap, Node, Pod, Secret, ServiceAccount
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import ClusterRole, PolicyRule
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.auth.users import User
from moorage.apiserver.direct_client import (
    AUTHENTICATED_S,
    SLICE_OBJECTS,
    DirectClient,
    direct_client,
)
from moorage.apiserver.http.app import PEER
from moorage.apiserver.http.flow_control import Seats
from moorage.apiserver.http.router import DIRECT_MAX
from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.resources import Resources
from moorage.apiserver.server import Assembled, assembled, make_application, make_server_context
from moorage.apiserver.settings import Auditing, Limits, Settings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import in_process_client
from moorage.client.contract import Added, Bookmark, list_all
from moorage.client.errors import (
    ClientError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from moorage.client.writes import Apply, Create, Delete, Patch, Target, Update
from moorage.cluster.control_plane import account_client, program_client
from moorage.cluster.programs import ControllerClients
from moorage.kit.bulkhead import Fault
from moorage.kit.clock import ManualClock
from moorage.store.memory import MemoryStore
from moorage.validation.registry import with_resource_version
from tests.apiserver.cast import cluster_binding
from tests.apiserver.client import claim
from tests.client.servers import config_map

NOW = Timestamp(datetime(2026, 10, 1, 12, 0, tzinfo=UTC))
Scenario = Callable[[Assembled], Awaitable[None]]


def memory() -> MemoryStore:
    return MemoryStore(time.time)


def play(
    folder: Path,
    scenario: Scenario,
    *,
    now: Callable[[], Timestamp] | None = None,
    auditing: Auditing | None = None,
) -> None:
    """Play a scenario with a server that has roles."""

    async def run() -> None:
        chosen = Settings(folder, has_rbac=True, auditing=auditing)
        async with asyncio.timeout(30), assembled(chosen, now=now, store=memory()) as made:
            await scenario(made)

    asyncio.run(run())


def over_asgi(made: Assembled, user: str) -> ApiClient:
    assert made.credentials is not None
    scope = {PEER: made.credentials.client_certificate(user)}
    return in_process_client(made.application, manager="kube-scheduler", scope=scope)


def told(error: ClientError) -> tuple[Any, ...]:
    return (
        type(error),
        error.code,
        error.reason,
        error.message,
        error.causes,
        error.retry_after_s,
    )


# --- the same as over HTTP ------------------------------------------------------------------------

NAMES = st.sampled_from(("a", "b", "Not a name", ""))
SPELL = st.tuples(
    st.sampled_from(
        ("create", "update", "stale", "patch", "apply", "delete", "other", "get", "bad-status")
    ),
    NAMES,
    st.sampled_from(("", "1", "2")),
)


async def cast(client: ApiClient, spell: str, name: str, data: str) -> Any:
    """Do something to a ConfigMap."""
    target = Target(ConfigMap, "default", name)
    match spell:
        case "create":
            return await client.write(Create(config_map(name, value=data)))
        case "update" | "stale":
            found = await client.get(ConfigMap, "default", name)
            value = found or config_map(name)
            if spell == "stale":
                metadata = replace(value.metadata, resource_version="1")
                value = replace(value, metadata=metadata)
            return await client.write(Update(replace(value, data={"value": data})))
        case "patch":
            return await client.write(Patch(target, {"data": {"value": data or None}}))
        case "apply":
            body = {"data": {"applied": data}}
            return await client.write(Apply(target, body, manager="me", force=bool(data)))
        case "delete":
            return await client.write(Delete(target, grace_s=0))
        case "other":
            return await client.write(Delete(replace(target, uid="another")))
        case "bad-status":
            return await client.write(Update(config_map(name), "status"))
    return await client.get(ConfigMap, "default", name)


async def outcome(client: ApiClient, *spell: str) -> Any:
    try:
        return await cast(client, *spell)
    except ClientError as error:
        return told(error)


@settings(max_examples=30)
@given(st.lists(SPELL, max_size=12))
def test_results_errors_and_events_are_those_over_asgi(spells: list[tuple[str, str, str]]) -> None:
    async def run(connect: Callable[[Any], ApiClient]) -> Any:
        numbers = count()
        service = make_server_context(memory(), now=lambda: NOW)
        service = replace(service, new_uid=lambda: f"uid-{next(numbers)}")
        await create_system_namespaces(service)
        client = connect(make_application(service, AlwaysAllow()))
        before = (await client.list(ConfigMap)).revision
        found = [await outcome(client, *spell) for spell in spells]
        # One more, so that the watch has an end.
        found.append(await client.write(Create(config_map("the-end"))))
        events = []
        async for event in client.watch(ConfigMap, after=before):
            events.append((type(event), event.value))  # type: ignore[union-attr]
            if events[-1][1].metadata.name == "the-end":
                break
        page = await list_all(client, ConfigMap, limit=1)
        return found, events, page.values, page.revision

    direct = asyncio.run(run(lambda application: direct_client(application, manager="x")))
    assert direct == asyncio.run(run(lambda a: in_process_client(a, manager="x")))


CHANGE = st.tuples(
    st.sampled_from(("none", "finalizer", "label", "spec", "bad finalizer")),
    st.sampled_from(("none", "allocated", "invalid")),
    st.sampled_from(("current", "stale", "another uid", "gone", "without managers")),
)


def changed_claim(stored: ResourceClaim, change: tuple[str, str, str]) -> ResourceClaim:
    """Return a claim to be written with its status."""
    main, status, version = change
    tree = to_tree(stored)
    metadata = tree["metadata"]
    if main == "spec":
        tree["spec"]["devices"]["requests"][0]["name"] = "other"
    elif main == "label":
        metadata["labels"] = {"a": "b"}
    elif main != "none":
        metadata["finalizers"] = ["a.example.com/b" if main == "finalizer" else "not one"]
    if status != "none":
        name = tree["spec"]["devices"]["requests"][0]["name"] if status == "allocated" else "none"
        device = {"request": name, "driver": "d.example.com", "pool": "p", "device": "d-0"}
        tree["status"] = {"allocation": {"devices": {"results": [device]}}}
    if version == "stale":
        metadata["resourceVersion"] = "1"
    elif version == "another uid":
        metadata["uid"] = "another"
    elif version == "gone":
        metadata["name"] = "gone"
    elif version == "without managers":
        metadata.pop("managedFields", None)
    return decode_tree(tree, ResourceClaim).value


@settings(max_examples=60)
@given(st.lists(CHANGE, max_size=4))
def test_an_object_with_its_status_is_as_written_one_after_the_other(
    changes: list[tuple[str, str, str]],
) -> None:
    async def run(connect: Callable[[Any], ApiClient]) -> tuple[list[Any], int]:
        service = make_server_context(memory(), now=lambda: NOW)
        service = replace(service, new_uid=lambda: "uid")
        await create_system_namespaces(service)
        client = connect(make_application(service, AlwaysAllow()))
        found = [
            await client.write(Create(decode_tree(claim(namespace="default"), ResourceClaim).value))
        ]
        stored = found[0]
        for change in changes:
            try:
                update = Update(changed_claim(stored, change), with_status=True)
                stored = await client.write(update)
                found.append(with_resource_version(stored, ""))
            except ClientError as error:
                found.append(told(error)[:3])
                before = stored
                stored = await client.get(ResourceClaim, "default", stored.metadata.name)
                if not client.joins_status:  # the first of both may have been written
                    metadata = replace(before.metadata, resource_version="")
                    stored = await client.write(Update(replace(before, metadata=metadata)))
        after = (await client.list(ResourceClaim)).revision
        return found, int(after) - int(found[0].metadata.resource_version)

    (direct, once), (asgi, twice) = (
        asyncio.run(run(connect))
        for connect in (
            lambda application: direct_client(application, manager="x"),
            lambda application: in_process_client(application, manager="x"),
        )
    )
    assert direct == asgi
    assert once <= twice
    assert once <= len(changes)


def test_an_object_with_its_status_takes_the_rights_to_both(tmp_path: Path) -> None:
    async def scenario(made: Assembled) -> None:
        admin = program_client(made, "admin", "x")
        tree = claim(namespace="default")
        stored = await admin.write(Create(decode_tree(tree, ResourceClaim).value))
        written = changed_claim(stored, ("finalizer", "allocated", "current"))
        client = program_client(made, "controller-manager", "x")
        with pytest.raises(ForbiddenError, match='update resource "resourceclaims" '):
            await client.write(Update(written, with_status=True))
        rule = PolicyRule(("update",), ("resource.k8s.io",), ("resourceclaims",))
        await admin.write(Create(ClusterRole(metadata=ObjectMeta(name="r"), rules=(rule,))))
        manager = User("system:kube-controller-manager")
        await admin.write(Create(cluster_binding("r", manager)))
        while True:  # until the authorizer has heard of it
            try:
                await client.write(Update(stored))
                break
            except ForbiddenError:
                await asyncio.sleep(0)
        with pytest.raises(ForbiddenError, match='update resource "resourceclaims/status" '):
            await client.write(Update(written, with_status=True))
        assert await admin.get(ResourceClaim, "default", stored.metadata.name) == stored
        scheduler = program_client(made, "scheduler", "x")
        changed = await scheduler.write(Update(written, with_status=True))
        assert changed.metadata.finalizers == written.metadata.finalizers
        assert changed.status.allocation == written.status.allocation

    play(tmp_path, scenario)


def test_a_program_has_the_rights_of_its_user(tmp_path: Path) -> None:
    async def scenario(made: Assembled) -> None:
        direct = program_client(made, "scheduler", "kube-scheduler")
        remote = over_asgi(made, "scheduler")
        attempts: tuple[Callable[[ApiClient], Awaitable[Any]], ...] = (
            lambda client: client.write(Create(config_map("one"))),
            lambda client: client.get(Secret, "default", "one"),
            lambda client: client.list(Secret),
            lambda client: client.list(Secret, "default", fields="metadata.name=a"),
            lambda client: client.write(Delete(Target(Node, "", "one"))),
            lambda client: anext(client.watch(Secret, after="1")),
        )
        for attempt in attempts:
            with pytest.raises(ForbiddenError) as refused:
                await attempt(direct)
            with pytest.raises(ForbiddenError) as expected:
                await attempt(remote)
            assert told(refused.value) == told(expected.value)
        assert await direct.get(Pod, "default", "none") is None

    play(tmp_path, scenario)


def test_requests_are_counted_as_over_http(tmp_path: Path) -> None:
    async def scenario(made: Assembled) -> None:
        async def lines(client: ApiClient) -> set[str]:
            before = set(made.application.router.metrics.text(0).splitlines())
            await client.get(Pod, "default", "none")
            await client.list(Node)
            with pytest.raises(ForbiddenError):
                await client.write(Create(config_map("one")))
            with pytest.raises(NotFoundError):
                await client.write(Patch(Target(Pod, "default", "none"), {}, "status"))
            return set(made.application.router.metrics.text(0).splitlines()) - before

        first = await lines(over_asgi(made, "scheduler"))
        second = await lines(program_client(made, "scheduler", "kube-scheduler"))
        counted = {line.rpartition(" ")[0] for line in first if "request_total{" in line}
        again = {line.rpartition(" ")[0] for line in second if "request_total{" in line}
        assert len(counted) == 4
        assert counted == again

    play(tmp_path, scenario)


# --- who it is ------------------------------------------------------------------------------------


def test_a_controller_is_its_service_account_as_long_as_that_exists(tmp_path: Path) -> None:
    async def scenario(made: Assembled) -> None:
        clock = ManualClock(datetime.now(UTC))
        manager = program_client(made, "controller-manager", "kube-controller-manager")
        accounts = ControllerClients(manager, lambda t: account_client(made, clock, t), clock=clock)
        client = accounts.client_of("job-controller")
        with pytest.raises(ForbiddenError, match="system:serviceaccount:kube-system:job-contr"):
            await client.write(Create(config_map("one")))
        admin = over_asgi(made, "admin")
        await admin.write(Delete(Target(ServiceAccount, "kube-system", "job-controller")))
        await clock.advance(AUTHENTICATED_S + 1)
        # Its token is no good any more; it asks for another, and gets one with a new account.
        with pytest.raises(ForbiddenError, match="system:serviceaccount:kube-system:job-contr"):
            await client.write(Create(config_map("one")))
        found = await admin.get(ServiceAccount, "kube-system", "job-controller")
        assert found is not None

    play(tmp_path, scenario)


def test_who_cannot_be_authenticated_is_told_so(tmp_path: Path) -> None:
    async def scenario(made: Assembled) -> None:
        client = program_client(made, "scheduler", "kube-scheduler")
        with pytest.raises(UnauthorizedError):
            await client.get(Pod, "default", "one")
        with pytest.raises(UnauthorizedError):
            await anext(client.watch(Pod, after="1"))

    play(tmp_path, scenario, now=lambda: Timestamp(datetime(2099, 1, 1, tzinfo=UTC)))


# --- bounds ---------------------------------------------------------------------------------------


def small_server(**limits: Any) -> DirectClient:
    service = make_server_context(memory())
    application = make_application(service, AlwaysAllow(), **limits)
    return direct_client(application)


def test_a_body_that_is_too_large_is_refused() -> None:
    async def run() -> None:
        client = small_server(limits=Limits(body_bytes_max=1000))
        with pytest.raises(ClientError) as refused:
            await client.write(Create(config_map("one", value="x" * 1000)))
        assert refused.value.code == 413

    asyncio.run(run())


def test_a_watch_takes_a_seat_and_gives_it_back() -> None:
    async def run() -> None:
        client = small_server(seats=Seats(watching_max=1))
        first = client.watch(ConfigMap, after="0")
        waiting = asyncio.create_task(anext(first))
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        with pytest.raises(TooManyRequestsError):
            await anext(client.watch(ConfigMap, after="0"))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await first.aclose()
        second = client.watch(ConfigMap, after="0")
        waiting = asyncio.create_task(anext(second))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done or isinstance(waiting.result(), Bookmark)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await second.aclose()

    asyncio.run(run())


def test_a_watch_from_a_past_that_is_gone_has_expired() -> None:
    async def run() -> None:
        store = memory()
        service = make_server_context(store)
        await create_system_namespaces(service)
        client = direct_client(make_application(service, AlwaysAllow()))
        for number in range(3):
            await client.write(Create(config_map(f"m{number}")))
        await store.compact(await store.revision())
        with pytest.raises(ExpiredError):
            await anext(client.watch(ConfigMap, after="1"))

    asyncio.run(run())


# --- whose memory it is ---------------------------------------------------------------------------


def test_what_a_program_changes_later_is_not_what_it_wrote() -> None:
    async def run() -> None:
        service = make_server_context(memory())
        await create_system_namespaces(service)
        client = direct_client(make_application(service, AlwaysAllow()))
        data = {"a": "1"}
        value = ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data=data)
        await client.write(Create(value))
        data["a"] = "changed"
        found = await client.get(ConfigMap, "default", "one")
        assert found is not None
        assert found.data == {"a": "1"}

    asyncio.run(run())


def test_readers_share_the_objects_of_the_server() -> None:
    async def run() -> None:
        service = make_server_context(memory())
        await create_system_namespaces(service)
        application = make_application(service, AlwaysAllow())
        one, two = direct_client(application), direct_client(application)
        before = (await one.list(ConfigMap)).revision
        made = await one.write(Create(config_map("one")))
        (listed,) = (await two.list(ConfigMap)).values
        event = await anext(two.watch(ConfigMap, after=before))
        assert isinstance(event, Added)
        assert event.value is made
        assert listed is made

    asyncio.run(run())


# --- the event loop is shared ---------------------------------------------------------------------


class Turns:
    """Counts turns of the event loop, which other tasks get, too."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._tick()

    def _tick(self) -> None:
        self.count += 1
        self._loop.call_soon(self._tick)


def test_others_get_turns_while_many_objects_are_read() -> None:
    async def run() -> None:
        service = make_server_context(memory())
        await create_system_namespaces(service)
        client = direct_client(make_application(service, AlwaysAllow()))
        before = (await client.list(ConfigMap)).revision
        for number in range(4 * SLICE_OBJECTS):
            await client.write(Create(config_map(f"m{number}")))
        watch = client.watch(ConfigMap, after=before)
        await anext(watch)
        turns = Turns()
        await client.list(ConfigMap)
        assert turns.count >= 4
        turns = Turns()
        for _ in range(3 * SLICE_OBJECTS):
            await anext(watch)
        assert turns.count >= 3
        await watch.aclose()

    asyncio.run(run())


def test_some_of_many_requests_begin_in_one_turn() -> None:
    async def run() -> None:
        service = make_server_context(memory())
        await create_system_namespaces(service)
        client = direct_client(make_application(service, AlwaysAllow()))
        await client.write(Create(config_map("one")))
        turns = Turns()
        ends: list[int] = []

        async def get() -> None:
            await client.get(ConfigMap, "default", "one")
            ends.append(turns.count)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(3 * DIRECT_MAX):
                tasks.create_task(get())
        assert max(Counter(ends).values()) <= DIRECT_MAX

    asyncio.run(run())


# --- what is sent over ASGI -----------------------------------------------------------------------


def test_an_object_that_cannot_be_read_is_in_its_list(faults: list[Fault]) -> None:
    async def run() -> None:
        store = memory()
        service = make_server_context(store)
        await create_system_namespaces(service)
        client = direct_client(make_application(service, AlwaysAllow()))
        value = decode_tree(claim("one", namespace="default"), ResourceClaim).value
        await client.write(Create(value))
        resource = service.resources.of("resource.k8s.io", "resourceclaims")
        entry = await store.get(resource.key("default", "one"))
        assert entry is not None
        broken = json.loads(entry.value)
        broken["spec"]["devices"] = 7
        text = json.dumps(broken, separators=(",", ":")).encode()
        await store.update(entry.key, text, expected=entry.revision)
        page = await list_all(client, ResourceClaim, allows_gaps=True)
        assert page.values == ()
        assert [each.name for each in page.unreadable] == ["one"]

    asyncio.run(run())
    assert faults


def test_an_audit_log_has_the_requests_of_programs(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    async def scenario(made: Assembled) -> None:
        client = program_client(made, "scheduler", "kube-scheduler")
        await client.get(Pod, "default", "one")
        await client.list(Node)
        with pytest.raises(ForbiddenError):
            await client.write(Create(config_map("one")))

    play(tmp_path / "data", scenario, auditing=Auditing(str(log)))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    asked = {(each["user"]["username"], each["verb"]) for each in events}
    assert {("system:kube-scheduler", verb) for verb in ("get", "list", "create")} <= asked


def test_a_kind_that_the_server_does_not_have_is_not_found() -> None:
    async def run() -> None:
        service = make_server_context(
            memory(), resources=Resources(serves=lambda kind: not kind.group)
        )
        client = direct_client(make_application(service, AlwaysAllow()))
        with pytest.raises(NotFoundError):
            await client.list(ResourceClaim)
        with pytest.raises(NotFoundError):
            await anext(client.watch(ResourceClaim, after="1"))

    asyncio.run(run())
