"""Claims are prepared for pods and unprepared after them, with real drivers on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.client.errors import UnavailableError
from moorage.kit.clock import ManualClock
from moorage.node.contract import DevicesRefusedError
from moorage.node.dra import manager
from moorage.wire import dra_v1_pb2 as dra_wire
from moorage.wire.services import DRA_V1, DRA_V1BETA1
from tests.node.dra.worlds import World, connected, make_claim, play, until
from tests.node.fakedriver import FakeDriver, device

GPU, NIC = "gpu.example.com", "nic.example.com"


async def refusal(asked: asyncio.Future[None] | object) -> str:
    with pytest.raises(DevicesRefusedError) as caught:
        await asked  # type: ignore[misc]
    return str(caught.value)


def test_a_pod_gets_its_devices_and_gives_them_back() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            assert dra.manager.run_options(pod, "main").cdi_ids == (f"{GPU}/device={uid}",)
            assert dra.manager.run_options(pod, "other").cdi_ids == ()
            await dra.manager.prepare(pod)
            await dra.manager.unprepare(pod)
            await dra.manager.unprepare(pod)
            assert driver.calls == [("prepare", (uid,)), ("unprepare", (uid,))]
            assert len(dra.manager.cache) == 0

    play(scenario)


def test_each_driver_is_asked_once_for_all_claims_of_a_pod() -> None:
    async def scenario(world: World) -> None:
        one, two = world.claim("c1", GPU, NIC), world.claim("c2", GPU)
        pod = world.pod("p", "c1", "c2")
        async with (
            world.agent() as dra,
            FakeDriver(world.root, GPU) as gpu,
            FakeDriver(world.root, NIC) as nic,
        ):
            await connected(dra, GPU, NIC)
            await dra.manager.prepare(pod)
            await dra.manager.unprepare(pod)
            assert gpu.calls == [("prepare", (one, two)), ("unprepare", (one, two))]
            assert nic.calls == [("prepare", (one,)), ("unprepare", (one,))]

    play(scenario)


@pytest.mark.parametrize("versions", [(DRA_V1,), (DRA_V1BETA1, DRA_V1), ("v9.DRAPlugin", DRA_V1)])
def test_the_first_version_of_the_driver_that_we_know_is_used(versions: tuple[str, ...]) -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        driver = FakeDriver(world.root, GPU, versions=versions)
        async with world.agent() as dra, driver:
            await connected(dra, GPU)
            await dra.manager.prepare(world.pod("p", "c"))
            wanted = next(each for each in versions if each != "v9.DRAPlugin")
            assert driver.versions_called == {wanted}

    play(scenario)


def test_pods_that_share_a_claim_at_the_same_time_have_it_prepared_once() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU, pods=("a", "b", "d"))
        pods = [world.pod(name, "c") for name in ("a", "b", "d")]
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.gate.clear()
            tasks = [asyncio.create_task(dra.manager.prepare(pod)) for pod in pods]
            await driver.until(lambda: driver.waiting == 1)
            driver.gate.set()
            await asyncio.gather(*tasks)
            ids = {dra.manager.run_options(pod, "main").cdi_ids for pod in pods}
            assert ids == {(f"{GPU}/device={uid}",)}
            for pod in pods[:2]:
                await dra.manager.unprepare(pod)
            assert driver.calls == [("prepare", (uid,))]
            await dra.manager.unprepare(pods[2])
            assert driver.calls == [("prepare", (uid,)), ("unprepare", (uid,))]

    play(scenario)


def test_other_pods_do_not_wait_for_a_driver_that_hangs() -> None:
    async def scenario(world: World) -> None:
        world.claim("c1", GPU)
        world.claim("c2", NIC, pods=("q",))
        async with (
            world.agent() as dra,
            FakeDriver(world.root, GPU) as gpu,
            FakeDriver(world.root, NIC),
        ):
            await connected(dra, GPU, NIC)
            gpu.gate.clear()
            slow = asyncio.create_task(dra.manager.prepare(world.pod("p", "c1")))
            await gpu.until(lambda: gpu.waiting == 1)
            await dra.manager.prepare(world.pod("q", "c2"))
            assert not slow.done()
            gpu.gate.set()
            await slow

    play(scenario)


def test_a_driver_that_hangs_for_too_long_has_failed() -> None:
    async def scenario(world: World) -> None:
        world.settings["call_timeout_s"] = 0.05
        world.claim("c", GPU)
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.gate.clear()
            text = await refusal(dra.manager.prepare(world.pod("p", "c")))
            assert text.startswith(
                "prepare dynamic resources: NodePrepareResources: rpc error: "
                "code = DeadlineExceeded desc = "
            )

    play(scenario)


Lie = Callable[[FakeDriver, str], None]


def _invent(driver: FakeDriver, _: str) -> None:
    driver.invented = {"other"}


def _skip(driver: FakeDriver, uid: str) -> None:
    driver.skipped = {uid}


def _fail(driver: FakeDriver, uid: str) -> None:
    driver.prepare_errors = {uid: "broken"}
    driver.unprepare_errors = {uid: "broken"}


def _fall(driver: FakeDriver, _: str) -> None:
    driver.failure = grpc.StatusCode.FAILED_PRECONDITION


def _bad_id(driver: FakeDriver, uid: str) -> None:
    driver.devices[uid] = [dra_wire.Device(cdi_device_ids=["/dev/null"])]


def _flood(driver: FakeDriver, uid: str) -> None:
    driver.devices[uid] = [dra_wire.Device()] * 5000


def _huge(driver: FakeDriver, _: str) -> None:
    driver.is_huge = True


def _garble(driver: FakeDriver, _: str) -> None:
    driver.is_garbled = True


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        (_garble, "NodePrepareResources: rpc error: code = Internal desc = the answer is no"),
        (_invent, "NodePrepareResources returned result for unknown claim UID other"),
        (_skip, "NodePrepareResources skipped 1 ResourceClaims"),
        (_fail, "NodePrepareResources failed for ResourceClaim c: broken"),
        (
            _fall,
            "NodePrepareResources: rpc error: code = FailedPrecondition desc = told to fail",
        ),
        (
            _bad_id,
            "NodePrepareResources failed for ResourceClaim c: bad device: '/dev/null' is not of",
        ),
        (
            _flood,
            "NodePrepareResources failed for ResourceClaim c: 5000 devices are more than 1024",
        ),
        (_huge, "NodePrepareResources: rpc error: code = ResourceExhausted desc = "),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_a_driver_does_wrong_is_said_of_the_pod_and_can_be_tried_again(
    lie: Lie, text: str
) -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            honest = {key: value for key, value in vars(driver).items() if key in _TOLD}
            lie(driver, uid)
            said = await refusal(dra.manager.prepare(pod))
            assert said.startswith(f"prepare dynamic resources: {text}")
            vars(driver).update(honest)
            driver.devices, driver.prepare_errors, driver.unprepare_errors = {}, {}, {}
            await dra.manager.prepare(pod)
            assert dra.manager.run_options(pod, "main").cdi_ids == (f"{GPU}/device={uid}",)

    play(scenario)


_TOLD = ("failure", "skipped", "invented", "is_huge", "is_garbled")


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        (_invent, "NodeUnprepareResources returned result for unknown claim UID other"),
        (_skip, "NodeUnprepareResources skipped 1 ResourceClaims"),
        (_fail, "NodeUnprepareResources failed for ResourceClaim c: broken"),
        (_fall, "NodeUnprepareResources: rpc error: code = FailedPrecondition desc ="),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_claim_that_is_not_unprepared_is_kept_and_for_nobody_new(lie: Lie, text: str) -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU, pods=("p", "q"))
        pod, new = world.pod("p", "c"), world.pod("q", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            lie(driver, uid)
            said = await refusal(dra.manager.unprepare(pod))
            assert said.startswith(f"unprepare dynamic resources: {text}")
            assert dra.manager.cache.of_pod("pod-p")
            said = await refusal(dra.manager.prepare(new))
            assert said == "prepare dynamic resources: ResourceClaim c is being unprepared"
            driver.failure, driver.skipped, driver.invented = None, set(), set()
            driver.prepare_errors, driver.unprepare_errors = {}, {}
            await dra.manager.unprepare(pod)
            await dra.manager.prepare(new)
            assert dra.manager.run_options(new, "main").cdi_ids

    play(scenario)


def test_a_driver_must_be_registered_even_for_a_claim_that_is_prepared() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU, pods=("p", "q"))
        pod = world.pod("p", "c")
        async with world.agent() as dra:
            text = "prepare dynamic resources: DRA driver gpu.example.com is not registered"
            assert await refusal(dra.manager.prepare(pod)) == text
            assert len(dra.manager.cache) == 0  # so the pod can be deleted without the driver
            async with FakeDriver(world.root, GPU) as driver:
                await connected(dra, GPU)
                await dra.manager.prepare(pod)
                driver.registration_socket.unlink()
                await until(lambda: not dra.drivers.names())
                assert await refusal(dra.manager.prepare(world.pod("q", "c"))) == text
                said = await refusal(dra.manager.unprepare(pod))
                assert said == f"un{text}"

    play(scenario)


CLAIM_REFUSALS = [
    (make_claim("c", GPU, pods=()), "pod p (pod-p) is not allowed to use ResourceClaim c (uid-c)"),
    (make_claim("c", GPU, allocated=False), "ResourceClaim c: not allocated"),
]


@pytest.mark.parametrize(("claim", "text"), CLAIM_REFUSALS, ids=["not reserved", "not allocated"])
def test_a_claim_must_be_allocated_and_reserved(claim: object, text: str) -> None:
    async def scenario(world: World) -> None:
        world.server.add(claim)  # type: ignore[arg-type]
        async with world.agent() as dra:
            said = await refusal(dra.manager.prepare(world.pod("p", "c")))
            assert said == f"prepare dynamic resources: {text}"

    play(scenario)


def test_a_claim_that_cannot_be_read_is_named() -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            await world.server.until(lambda: bool(world.server.selectors))
            pod = world.pod("p", "c")
            assert await refusal(dra.manager.prepare(pod)) == (
                "prepare dynamic resources: fetch ResourceClaim c: "
                'resourceclaims.resource.k8s.io "c" not found'
            )
            world.server.errors = [UnavailableError("server is away")]
            said = await refusal(dra.manager.prepare(pod))
            assert said == "prepare dynamic resources: fetch ResourceClaim c: server is away"

    play(scenario)


def test_a_claim_from_a_template_must_exist_and_be_the_pods_own() -> None:
    async def scenario(world: World) -> None:
        entry = [{"name": "x", "resourceClaimTemplateName": "t"}]
        spec = {"containers": [{"name": "main"}], "resourceClaims": entry}
        async with world.agent() as dra:
            pod = _pod_of(spec, {})
            said = await refusal(dra.manager.prepare(pod))
            assert said.endswith('pod "default/p": ResourceClaim not created yet')
            status = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "p-x"}]}
            world.claim("p-x", owner="somebody")
            said = await refusal(dra.manager.prepare(_pod_of(spec, status)))
            assert "ResourceClaim default/p-x was not created for Pod default/p" in said
            none = {"resourceClaimStatuses": [{"name": "x"}]}
            await dra.manager.prepare(_pod_of(spec, none))  # no claim was needed

    play(scenario)


def _pod_of(spec: object, status: object) -> Pod:
    metadata = {"name": "p", "namespace": "default", "uid": "pod-p"}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    return decode_tree(tree, Pod).value


def test_a_claim_of_the_same_name_must_wait_for_the_old_one() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            world.claim("c", GPU, uid="another")
            said = await refusal(dra.manager.prepare(pod))
            assert said == (
                "prepare dynamic resources: old ResourceClaim with same name c and different "
                "UID uid-c still exists (previous pod force-deleted?!)"
            )
            await dra.manager.unprepare(pod)
            await dra.manager.prepare(pod)
            assert driver.prepared == {"another"}

    play(scenario)


def test_operations_that_a_driver_need_not_do_are_not_asked_for() -> None:
    async def scenario(world: World) -> None:
        world.claim("none", GPU, skips=("*",))
        world.claim("only", NIC, skips=("NodePrepareResources",))
        pod = world.pod("p", "none", "only")
        async with world.agent() as dra, FakeDriver(world.root, NIC) as nic:
            await connected(dra, NIC)
            await dra.manager.prepare(pod)  # the other driver is not even there
            await dra.manager.unprepare(pod)
            assert nic.calls == [("unprepare", ("uid-only",))]
            metrics = dra.manager.metrics
            assert metrics.prepare_skips.value(GPU) == 1
            assert metrics.unprepare_skips.value(GPU) == 1
            assert metrics.prepare_skips.value(NIC) == 1

    play(scenario)


def test_operations_cannot_be_skipped_without_the_gate() -> None:
    async def scenario(world: World) -> None:
        world.gates = Gates.parse("DRAOptionalNodeOperations=false")
        world.claim("c", GPU, skips=("*",))
        async with world.agent() as dra:
            said = await refusal(dra.manager.prepare(world.pod("p", "c")))
            assert said.endswith(
                "ResourceClaim c: DRAOptionalNodeOperations feature gate is disabled on kubelet"
            )

    play(scenario)


def test_a_container_gets_what_its_requests_say() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c", requests={"c": "b"})
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.devices[uid] = [
                device(GPU, "one", "a"),
                device(GPU, "two", "a", "b"),
                device(GPU, "all"),
            ]
            await dra.manager.prepare(pod)
            assert dra.manager.run_options(pod, "main").cdi_ids == (
                f"{GPU}/device=two",
                f"{GPU}/device=all",
            )

    play(scenario)


def test_extended_resources_come_from_the_special_claim() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("special", GPU)
        mappings = [
            {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r0"},
            {"containerName": "main", "resourceName": "example.com/none", "requestName": "r1"},
            {"containerName": "side", "resourceName": "example.com/gpu", "requestName": "r2"},
        ]
        pod = _pod_of(
            {
                "containers": [
                    {
                        "name": "main",
                        "resources": {"requests": {"example.com/gpu": "1", "example.com/none": 0}},
                    },
                    {"name": "side"},
                ]
            },
            {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "special",
                    "requestMappings": mappings,
                }
            },
        )
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.devices[uid] = [device(GPU, f"d{n}", f"r{n}") for n in range(3)]
            await dra.manager.prepare(pod)
            assert dra.manager.run_options(pod, "main").cdi_ids == (f"{GPU}/device=d0",)
            assert dra.manager.run_options(pod, "side").cdi_ids == ()
            await dra.manager.unprepare(pod)
            assert driver.prepared == set()

    play(scenario)


def test_an_agent_that_starts_again_knows_the_claims_and_asks_again() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with FakeDriver(world.root, GPU) as driver:
            async with world.agent() as dra:
                await connected(dra, GPU)
                await dra.manager.prepare(pod)
            async with world.agent() as dra:
                assert dra.manager.run_options(pod, "main").cdi_ids == (f"{GPU}/device={uid}",)
                await connected(dra, GPU)
                await dra.manager.prepare(pod)
                await dra.manager.unprepare(pod)
            async with world.agent() as dra:
                assert len(dra.manager.cache) == 0
            assert driver.calls == [
                ("prepare", (uid,)),
                ("prepare", (uid,)),
                ("unprepare", (uid,)),
            ]

    play(scenario)


def test_claims_of_pods_that_vanished_are_unprepared() -> None:
    async def scenario(world: World) -> None:
        world.claim("c1", GPU, pods=("p", "q"))
        world.claim("c2", GPU)
        p, q = world.pod("p", "c1", "c2"), world.pod("q", "c1")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await dra.manager.prepare(p)
            await dra.manager.prepare(q)
            driver.unprepare_errors = {"uid-c2": "not yet"}
            await dra.manager.reconcile(["pod-q"])
            assert driver.uids("unprepare") == ["uid-c2"]
            driver.unprepare_errors = {}
            await dra.manager.reconcile(["pod-q"])
            await dra.manager.reconcile(["pod-q"])
            assert driver.uids("unprepare") == ["uid-c2", "uid-c2"]
            assert driver.prepared == {"uid-c1"}
            assert [state.pods for state in dra.manager.cache] == [{"pod-q"}]

    play(scenario)


def test_what_vanished_pods_use_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "SOON_S", 0.001)

    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            await dra.manager.prepare(world.pod("p", "c"))
            driver.unprepare_errors = {"uid-c": "not yet"}
            known: list[list[str] | None] = [None, None, []]  # first they are not known yet

            def active() -> list[str] | None:
                return known.pop(0) if len(known) > 1 else known[0]

            following = asyncio.create_task(dra.manager.follow_active(active))
            await driver.until(lambda: len(driver.uids("unprepare")) > 1)
            driver.unprepare_errors = {}
            await until(lambda: not dra.manager.cache.of_pod("pod-p"))
            following.cancel()
            assert driver.prepared == set()

    play(scenario)


def test_a_pod_that_goes_while_its_claims_are_prepared_gives_them_back_after_that() -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.gate.clear()
            preparing = asyncio.create_task(dra.manager.prepare(pod))
            await driver.until(lambda: driver.waiting == 1)
            going = asyncio.create_task(dra.manager.reconcile([]))
            await asyncio.sleep(0)
            assert driver.calls == [("prepare", (uid,))]
            driver.gate.set()
            await asyncio.gather(preparing, going)
            assert driver.calls == [("prepare", (uid,)), ("unprepare", (uid,))]
            assert driver.prepared == set()

    play(scenario)


def test_a_driver_that_goes_while_it_is_asked_has_failed_and_nobody_is_cancelled() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra:
            async with FakeDriver(world.root, GPU) as driver:
                await connected(dra, GPU)
                driver.gate.clear()
                preparing = asyncio.create_task(dra.manager.prepare(pod))
                await driver.until(lambda: driver.waiting == 1)
                driver.registration_socket.unlink()
                assert (await refusal(preparing)).endswith(
                    "NodePrepareResources: rpc error: code = Canceled "
                    "desc = the driver was deregistered"
                )
            async with FakeDriver(world.root, GPU):
                await connected(dra, GPU)
                await dra.manager.prepare(pod)

    play(scenario)


def test_vanished_pods_are_looked_for_every_minute_once_pods_are_known() -> None:
    clock = ManualClock()

    async def scenario(world: World) -> None:
        world.claim("c", GPU, skips=("*",))
        async with world.agent() as dra:
            await dra.manager.prepare(world.pod("p", "c"))
            await clock.advance(120)
            assert len(dra.manager.cache) == 1  # nobody knows yet which pods there are
            world.active = ["pod-p"]
            await clock.advance(60)
            assert len(dra.manager.cache) == 1
            world.active = []
            await clock.advance(60)
            await until(lambda: len(dra.manager.cache) == 0)

    play(scenario, lambda: clock)


def test_a_prepare_that_is_cancelled_leaves_nothing_held() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.gate.clear()
            preparing = asyncio.create_task(dra.manager.prepare(pod))
            await driver.until(lambda: driver.waiting == 1)
            preparing.cancel()
            await asyncio.gather(preparing, return_exceptions=True)
            driver.gate.set()
            await dra.manager.unprepare(pod)
            assert len(dra.manager.cache) == 0

    play(scenario)


def test_operations_are_counted_under_the_kubelets_names() -> None:
    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        pod = world.pod("p", "c")
        async with world.agent() as dra:
            await refusal(dra.manager.prepare(pod))
            async with FakeDriver(world.root, GPU):
                await connected(dra, GPU)
                await dra.manager.prepare(pod)
                text = dra.manager.metrics.text()
        prepare = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
        call = f'driver_name="{GPU}",method_name="{prepare}",grpc_status_code="OK"'
        failed = 'operation_name="PrepareResources",is_error="true"'
        for line in (
            f"dra_operations_duration_seconds_count{{{failed}}} 1",
            f'dra_operations_duration_seconds_bucket{{{failed},le="0.1"}} 1',
            f'dra_operations_duration_seconds_bucket{{{failed},le="+Inf"}} 1',
            f"dra_grpc_operations_duration_seconds_count{{{call}}} 1",
            f'dra_resource_claims_in_use{{driver_name="{GPU}"}} 1',
            'dra_resource_claims_in_use{driver_name="<any>"} 1',
        ):
            assert line in text.splitlines()

    play(scenario)
