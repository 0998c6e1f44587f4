"""What one viewer of the page asks neither stops others nor shows what is not theirs to see."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moorage.api.core import Namespace
from moorage.api.core.namespace import Event
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from moorage.apiserver.auth.access import Decision, NoOpinion
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import StreamingResponse
from moorage.insight.errors import ChangeTextError
from moorage.insight.history import Change, History
from moorage.insight.whatif.change_words import Additions, ChangeWords
from moorage.kit.checkpoints import Unwanted, checkpoint, ending_when
from moorage.web.asking import Asking
from moorage.web.door import UserRights
from moorage.web.errors import BusyError, DeadlineError, UnusableError
from moorage.web.feed import Feed, SourceFacts
from moorage.web.login import LINKS_MAX, SESSION_S, Logins
from moorage.web.page import CHECK_S, EVENTS_S, STREAMS_MAX, Access, Page
from moorage.web.questions.cel import cel_answer
from moorage.web.questions.explain import explain_answer
from moorage.web.questions.moment import ShownMoment
from moorage.web.questions.paint import painted
from moorage.web.questions.what_if import what_if_answer
from moorage.web.rights import ALL, Rights
from moorage.web.view import KEEP_ALIVE, VIEWS_MAX, Views
from tests.insight.history.changes import at
from tests.insight.topologies import device, node, slice_of
from tests.web.asked import Visitor, at_page
from tests.web.fleets import CONTEXT, GPUS, NOW, SMALL, feed_of, holding, machine, waiting


def until(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], Any]:
    """Return a question whose thread is busy until an event."""
    return lambda: asyncio.run_coroutine_threadsafe(event.wait(), loop).result(60)


def test_a_viewer_with_long_questions_leaves_a_thread_to_others() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=60.0, threads=2), asyncio.Event()
        loop = asyncio.get_running_loop()
        long = [asyncio.create_task(asking.answer("ann", until(loop, held))) for _ in range(4)]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert await asking.answer("bob", lambda: 3) == 3
        assert not any(each.done() for each in long)
        held.set()
        await asyncio.gather(*long)
        asking.close()

    asyncio.run(run())


def test_a_question_whose_turn_does_not_come_is_never_asked() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=0.01, threads=1), asyncio.Event()
        loop, asked = asyncio.get_running_loop(), []
        with pytest.raises(DeadlineError):
            await asking.answer("ann", until(loop, held))
        with pytest.raises(DeadlineError):
            await asking.answer("bob", lambda: asked.append("bob"))
        held.set()
        async with asyncio.timeout(60):
            while asking.busy:
                await asyncio.sleep(0)
        assert not asked
        asking.close()

    asyncio.run(run())


def test_a_question_that_nobody_waits_for_ends() -> None:
    """The question ends by itself, for it never returns: at the deadline, or with its asker."""

    def endless() -> None:
        while True:
            checkpoint()

    async def gone() -> None:
        await asyncio.sleep(0)

    async def run() -> None:
        late, patient = Asking(deadline_s=0.01), Asking(deadline_s=60)
        with pytest.raises(DeadlineError, match="No answer within"):
            await late.answer("ann", endless)
        with pytest.raises(DeadlineError, match="The client is gone"):
            await patient.answer("ann", endless, gone)
        cancelled = asyncio.create_task(patient.answer("bob", endless))
        await asyncio.sleep(0)
        cancelled.cancel()
        async with asyncio.timeout(60):
            while late.busy or patient.busy:
                await asyncio.sleep(0)
        assert cancelled.cancelled()
        late.close()
        patient.close()

    asyncio.run(run())


class After(threading.Event):
    """An event that is set once somebody has looked at it so often."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("question", ["add-profile example-gpu", "remove-node n1"])
def test_an_abandoned_question_changes_no_later_answer(question: str) -> None:
    objects = [*SMALL, *machine("n3", 4)]
    expected = what_if_answer(moment_of(objects), [question])
    moment = moment_of(objects)
    looks, ended = 0, 0
    while True:
        try:
            with ending_when(After(looks)):
                assert what_if_answer(moment, [question]) == expected
            break
        except Unwanted:
            looks, ended = looks + 1, ended + 1
    assert ended > len(objects)
    assert what_if_answer(moment, [question]) == expected


# --- expressions that are much work -----------------------------------------------------------

DIGITS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
MUCH = f"{DIGITS}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, {DIGITS}.all(d, {{}} || a + b > 0))))"


class Interrupts:
    """Ends evaluations when it was asked so often."""

    def __init__(self, most: int) -> None:
        self.asked, self._most = 0, most

    def __call__(self) -> str | None:
        self.asked += 1
        return "enough" if self.asked > self._most else None


def moment_of(objects: list[Any]) -> ShownMoment:
    async def run() -> ShownMoment:
        views = Views(feed_of(objects))
        moment = await (await views.get(ALL)).moment()
        await views.close()
        return moment

    return asyncio.run(run())


def test_an_expression_that_is_too_much_for_all_devices_together_is_ended() -> None:
    devices = [device(f"gpu-{n}", {"serial": f"s{n}"}) for n in range(60)]
    moment = moment_of([node("n1"), slice_of(*devices, pool="n1", name="slice-n1")])
    read = 'device.attributes["gpu.example.com"].serial'
    for expression in (
        MUCH.format(f'{read} == "x"'),  # much for each device
        f'{read} == "x"',  # little, for many
        f'{read}.matches("x") && {read} == "x"',
        f"{MUCH.format(f'{read} == 3')} && {read} == 3",  # much to explain
    ):
        interrupts = Interrupts(20)
        with pytest.raises(UnusableError, match="too much work for all devices: enough"):
            cel_answer(moment, expression, interrupt=interrupts)
        assert interrupts.asked == 21


def test_a_pod_with_expressions_that_are_too_much_is_explained_without_paint() -> None:
    gpus = DeviceClass(
        metadata=ObjectMeta(name="gpu"),
        spec=DeviceClassSpec(
            selectors=(DeviceSelector(cel=CELDeviceSelector(expression=MUCH.format("false"))),)
        ),
    )
    moment = moment_of([gpus, *machine("n1"), *waiting("big")])
    (pod,) = moment.snapshot.pods
    assert painted(moment, pod, interrupt=Interrupts(1)) is None
    assert painted(moment, pod, interrupt=Interrupts(1_000_000)) is not None


# --- questions that are large or long ---------------------------------------------------------


MANY_PODS = "\n---\n".join(
    f"{{apiVersion: v1, kind: Pod, metadata: {{name: p{number}}}, "
    "spec: {containers: [{name: c, image: i}]}}"
    for number in range(5001)
)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (["add-profile dgx-h100-mig=90"], "add 20,160 devices: at most 20,000 can"),
        (["add-profile dgx-h100-mig=45"] * 2, "add 20,160 devices: at most 20,000 can"),
        (["add-profile dgx-h100=10000"], r"add \d+,000 devices: at most 20,000 can"),
        ([f"add {MANY_PODS}"], "add 5,001 objects: at most 5,000 can"),
    ],
)
def test_what_if_adds_a_bounded_number_of_devices_and_objects(
    changes: list[str], error: str
) -> None:
    with pytest.raises(UnusableError, match=error):
        what_if_answer(moment_of(SMALL), changes)


def test_what_if_adds_a_bounded_number_of_bytes() -> None:
    moment = moment_of(SMALL)
    words = ChangeWords(moment.snapshot, moment.context, most=Additions(100, 100, size=1000))
    with pytest.raises(ChangeTextError, match=r"add \d\d,\d\d\d bytes: at most 1,000 can"):
        list(words.read("add_profile", "dgx-h100"))


def test_a_pod_is_explained_while_another_question_has_the_kept_cluster() -> None:
    moment = moment_of(SMALL)
    expected = explain_answer(moment, "team", "big")
    with moment.alone(), ThreadPoolExecutor(1) as threads:
        assert threads.submit(explain_answer, moment, "team", "big").result(60) == expected


# --- who may see what, and for how long -------------------------------------------------------


# Names the claim of another namespace, by a part of its name.
POD_OF_OTHERS = """apiVersion: v1
kind: Pod
metadata: {name: pry, namespace: team}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [{name: c, resourceClaimName: claim}]"""


def limited(**namespaces: str) -> Rights:
    """Return the rights to list some kinds in one namespace only."""
    return Rights(tuple((kind, frozenset({name})) for kind, name in sorted(namespaces.items())))


def test_events_of_an_object_are_for_who_may_list_events() -> None:
    rights = ALL

    async def rights_of(_: str) -> Rights:
        return rights

    async def events(kind: str, namespace: str, name: str) -> list[Event]:
        read.append((kind, namespace, name))
        return [Event(metadata=ObjectMeta(name="e"), reason="Secret", message=f"of {name}")]

    async def scenario(visitor: Visitor) -> None:
        nonlocal rights
        path = "/object?kind=Pod&namespace=team&name=big"
        assert (await visitor.get(path))[1]["events"][0]["message"] == "of big"
        for other in (limited(Event="other"), Rights((("Event", frozenset()),))):
            rights = other
            assert (await visitor.get(path))[1]["events"] == []
        rights = limited(Event="team")
        assert (await visitor.get(path))[1]["events"]
        assert (await visitor.get("/object?kind=Node&namespace=&name=n1"))[1]["events"] == []
        assert (await visitor.get("/object?kind=Secret&namespace=team&name=x"))[0] == 400
        assert read == [("Pod", "team", "big")] * 2

    read: list[tuple[str, str, str]] = []
    feed = feed_of(SMALL)
    feed.read_events = events
    at_page(feed, scenario, Access(name_of=str, rights_of=rights_of))


PRY = [
    "drain n1",
    "cordon n1",
    "remove-node n1",
    "taint-node n1=a:NoExecute",
    "taint-device gpu.example.com/n1/gpu-0=a:NoExecute",
    "add-profile dgx-h100=1",
    "delete-pod team/hidd",
    "delete-claim team/hidd",
    "delete-pod mine/hidd",
    f"add {POD_OF_OTHERS}",
]


def test_no_answer_names_what_a_viewer_may_not_see() -> None:
    hidden = holding("hidden-claim", "gpu-0", pods=("hidden-pod",))
    theirs = [*waiting("hidden-wait"), hidden, *waiting("own", namespace="mine")]
    changes = [
        Change(3, at(3), (GPUS, *machine("n1"), *theirs)),
        Change(5, at(5), (holding("hidden-claim", "gpu-1", pods=("hidden-pod",)),)),
        Change(9, at(9), (*machine("n2"),), (("Pod", "team", "hidden-wait"),)),
    ]
    history = History(changes)
    feed = Feed(SourceFacts("x", "recording"), CONTEXT, history=history)
    feed.publish(history.snapshot().objects(), revision=9, time=at(9))
    kinds = ("Pod", "ResourceClaim", "Namespace", "Event", "ResourceQuota", "Deployment")
    rights = limited(**dict.fromkeys(kinds, "mine"))

    async def rights_of(_: str) -> Rights:
        return rights

    async def scenario(visitor: Visitor) -> None:
        answers = [await visitor.get("/session"), await visitor.get("/history")]
        for moment in ("", "3", "5", "9"):
            shown = [("at", moment)] if moment else []
            query = "".join(f"&{key}={value}" for key, value in shown)
            answers += [await visitor.get(f"/fleet?of=all{query}")]
            device = f"/device?driver=gpu.example.com&pool=n1&name=gpu-0{query}"
            answers += [await visitor.get(device)]
            node = f"/object?kind=Node&namespace=&name=n1{query}"
            answers += [await visitor.get(node)]
            asked: list[tuple[str, dict[str, Any]]] = [
                ("/explain", {"namespace": "mine", "name": "own"}),
                ("/what-if", {"fix": {"namespace": "mine", "name": "own", "number": 1}}),
                ("/cel", {"expression": 'device.driver == "gpu.example.com"'}),
                *(("/what-if", {"changes": [each]}) for each in PRY),
            ]
            answers += [await visitor.ask(path, {**body, **dict(shown)}) for path, body in asked]
        texts = [str(answer) for _, answer in answers]
        assert [each for each in texts if "hidden" in each] == []
        assert sum(status == 200 for status, _ in answers) > len(answers) / 2

    at_page(feed, scenario, Access(name_of=str, rights_of=rights_of))


@pytest.mark.parametrize("ends", ["session", "rights", "time"])
def test_a_stream_of_events_ends_with_what_allows_it(ends: str) -> None:
    now_s, rights = 0.0, limited(Pod="team")

    async def rights_of(_: str) -> Rights:
        return rights

    async def run() -> None:
        nonlocal now_s, rights
        feed = feed_of(SMALL, is_live=True)
        page = Page(feed, Access(name_of=str, rights_of=rights_of), clock=lambda: now_s)
        visitor = Visitor(page)
        await visitor.sign_in("ann")
        answer = await visitor.send("GET", "/events?since=1")
        assert isinstance(answer, StreamingResponse)
        assert answer.user == "ann"
        assert await anext(answer.chunks) == KEEP_ALIVE
        now_s += CHECK_S
        feed.publish([holding("more", "gpu-1")], revision=2, time=NOW)
        assert b"event: fleet" in await anext(answer.chunks)
        if ends == "session":
            now_s += SESSION_S
        elif ends == "time":
            now_s += EVENTS_S
        else:
            rights, now_s = limited(Pod="other"), now_s + CHECK_S
        feed.publish([holding("more")], revision=3, time=NOW)
        assert [chunk async for chunk in answer.chunks] == []
        await page.close()

    asyncio.run(run())


class FewRights:
    """An authorizer that allows nothing, and counts what it is asked before others go on."""

    def __init__(self) -> None:
        self.asked = self.at_once = 0
        self._since = 0

    def authorize(self, _: object) -> Decision:
        self.asked += 1
        self._since += 1
        self.at_once = max(self.at_once, self._since)
        return NoOpinion()

    async def let_go_on(self) -> None:
        while True:
            self._since = 0
            await asyncio.sleep(0)


def test_to_find_out_what_a_viewer_may_see_lets_other_requests_go_on() -> None:
    async def run() -> None:
        authorizer = FewRights()
        spaces = [Namespace(metadata=ObjectMeta(name=f"n{n}")) for n in range(1000)]
        rights = UserRights(authorizer, feed_of(spaces))
        others = asyncio.create_task(authorizer.let_go_on())
        first, second = await asyncio.gather(*(rights.rights_of(User("ann")) for _ in range(2)))
        others.cancel()
        assert first is second
        assert "pods" in first.forbidden
        assert "events" in first.forbidden
        assert authorizer.at_once < 200
        assert authorizer.asked < 20 * 1000

    asyncio.run(run())


def test_views_are_bounded_and_those_with_viewers_stay() -> None:
    async def run() -> None:
        views = Views(feed_of(SMALL))
        looked_at = await views.get(limited(Pod="first"))
        events = looked_at.events(0)
        await anext(events)
        for number in range(2 * VIEWS_MAX):
            await views.get(limited(Pod=f"n{number}"))
        assert await views.get(limited(Pod="first")) is looked_at
        last = await views.get(limited(Pod=f"n{2 * VIEWS_MAX - 1}"))
        assert await views.get(limited(Pod=f"n{2 * VIEWS_MAX - 1}")) is last
        streams = [events]
        with pytest.raises(BusyError):  # noqa: PT012 - one of these is too many
            for number in range(VIEWS_MAX):
                streams.append((await views.get(limited(Pod=f"n{number}"))).events(0))
                await anext(streams[-1])
        assert len(streams) == VIEWS_MAX
        for each in streams:
            await each.aclose()
        await views.close()

    asyncio.run(run())


def test_a_user_with_many_links_ends_no_link_or_session_of_others() -> None:
    logins: Logins[str] = Logins(lambda: 0.0)
    link = logins.link_token("ann")
    cookie = logins.redeem(logins.link_token("ann"))
    for _ in range(LINKS_MAX + 1):
        logins.redeem(logins.link_token("eve"))
        logins.link_token("eve")
    assert logins.redeem(link) is not None
    assert logins.user(f"moor-ui={cookie}", "") == "ann"


def test_a_user_has_a_bounded_number_of_streams() -> None:
    async def scenario(visitor: Visitor) -> None:
        streams = []
        for _ in range(STREAMS_MAX):
            answer = await visitor.send("GET", "/events?since=1")
            assert isinstance(answer, StreamingResponse)
            assert await anext(answer.chunks) == KEEP_ALIVE
            streams.append(answer.chunks)
        assert (await visitor.get("/events?since=1"))[0] == 429
        other = Visitor(visitor.page)
        await other.sign_in("somebody else")
        assert isinstance(await other.send("GET", "/events?since=1"), StreamingResponse)
        for each in streams:
            await each.aclose()  # type: ignore[attr-defined]
        assert isinstance(await visitor.send("GET", "/events?since=1"), StreamingResponse)

    at_page(feed_of(SMALL, is_live=True), scenario)


def test_who_waits_for_the_history_lets_others_read() -> None:
    feed = Feed(SourceFacts("test", "cluster", is_live=True), CONTEXT, reads_past=True)
    feed.publish(SMALL, revision=1, time=NOW)

    async def scenario(visitor: Visitor) -> None:
        waiting = []
        for name in ("ann", "bob"):
            other = Visitor(visitor.page)
            await other.sign_in(name)
            waiting.append(asyncio.create_task(other.get("/history")))
        await feed.wants_past.wait()
        assert (await visitor.get("/fleet"))[0] == 200
        assert not any(each.done() for each in waiting)
        feed.has_past.set()
        await asyncio.gather(*waiting)

    at_page(feed, scenario)
