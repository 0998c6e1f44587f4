"""The page lets in who has a link, answers what may be asked, and refuses everything else."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.apiserver.http.messages import Request, Response
from moorage.insight.devices import DeviceState
from moorage.insight.history import Change, History
from moorage.web.asking import Asking
from moorage.web.device_rows import STATES
from moorage.web.errors import BusyError, DeadlineError
from moorage.web.feed import Feed, SourceFacts
from moorage.web.fleet import Delta, apply, read_fleet
from moorage.web.login import LINK_S, SESSION_S, Logins
from moorage.web.messages import BODY_BYTES_MAX, host_name
from moorage.web.page import EVERYTHING, Access, Page
from moorage.web.rights import ALL, Rights
from moorage.web.scene import Scene
from tests.insight.history.changes import at
from tests.web.asked import POST, Visitor, at_page, nobody
from tests.web.fleets import CONTEXT, NOW, SMALL, feed_of, holding, machine, told, waiting


async def stranger(page: Page[Any]) -> Visitor:
    return Visitor(page)


def test_explanation_is_found_once_for_a_moment() -> None:
    async def scenario(visitor: Visitor) -> None:
        asked = {"namespace": "team", "name": "big"}
        first = await visitor.ask("/explain", asked)
        assert first[0] == 200
        view = await visitor.page.views.get(ALL)
        moment = await view.moment()
        kept = moment.explanations.get(("team", "big"))
        assert kept is not None
        assert await visitor.ask("/explain", asked) == first
        assert moment.explanations.get(("team", "big")) is kept

    at_page(feed_of(SMALL), scenario)


def test_first_pods_of_the_list_are_explained_before_somebody_asks() -> None:
    large = [each for number in range(20) for each in machine(f"m{number}", 100)]
    feed = feed_of([*large, *waiting("one"), *waiting("two", count=200)])

    async def scenario(visitor: Visitor) -> None:
        _, fleet = await visitor.get("/fleet")
        view = await visitor.page.views.get(ALL)
        moment = await view.moment()
        names = {row["first"] for row in fleet["groups"]}
        while len(moment.explanations) < len(names):
            await asyncio.sleep(0.01)

    at_page(feed, scenario)


def test_a_large_fleet_is_prepared_while_it_is_looked_at() -> None:
    async def scenario(visitor: Visitor) -> None:
        assert (await visitor.get("/fleet"))[0] == 200
        status, answer = await visitor.ask("/cel", {"expression": "true"})
        assert (status, answer["counts"]["yes"]) == (200, 2000)

    large = [each for number in range(20) for each in machine(f"m{number}", 100)]
    at_page(feed_of(large), scenario)


# --- signing in -------------------------------------------------------------------------------


def test_a_link_works_once() -> None:
    async def scenario(visitor: Visitor) -> None:
        token = visitor.page.logins.link_token("you")
        first = await visitor.send("GET", f"/login?token={token}")
        second = await (await stranger(visitor.page)).send("GET", f"/login?token={token}")
        assert isinstance(first, Response)
        assert isinstance(second, Response)
        headers = dict(first.headers)
        assert (first.status, headers["Location"]) == (303, "/ui/")
        for part in ("HttpOnly", "SameSite=Strict", "Path=/ui"):
            assert part in headers["Set-Cookie"]
        assert second.status == 403
        assert b"<code>moor ui</code>" in second.body
        assert token.encode() not in second.body

    at_page(feed_of(SMALL), scenario)


def test_a_used_link_leads_who_is_signed_in_to_the_page() -> None:
    async def scenario(visitor: Visitor) -> None:
        token = visitor.page.logins.link_token("you")
        assert visitor.page.logins.redeem(token) is not None
        again = await visitor.send("GET", f"/login?token={token}")
        assert isinstance(again, Response)
        headers = dict(again.headers)
        assert (again.status, headers["Location"]) == (303, "/ui/")
        assert "Set-Cookie" not in headers
        other = await (await stranger(visitor.page)).send("GET", f"/login?token={token}")
        assert isinstance(other, Response)
        assert other.status == 403
        assert b"Run <code>moor ui</code> where" in other.body

    at_page(feed_of(SMALL), scenario)


def test_without_a_cookie_nothing_is_shown() -> None:
    async def scenario(visitor: Visitor) -> None:
        other = await stranger(visitor.page)
        for path in ("/session", "/fleet", "/events?since=1", "/object", "/device", "/history"):
            status, answer = await other.get(path)
            assert (status, answer["code"]) == (401, "not-signed-in")
        for path in ("/explain", "/what-if", "/cel"):
            assert (await other.ask(path, {"expression": "true"}))[0] == 401
        assert (await visitor.get("/session"))[0] == 200

    at_page(feed_of(SMALL), scenario)


def test_links_and_sessions_end() -> None:
    now_s = 0.0
    logins: Logins[str] = Logins(lambda: now_s)
    late, used = logins.link_token("ann"), logins.link_token("ann")
    cookie = logins.redeem(used)
    assert cookie is not None
    name = logins.cookie_name("")
    assert logins.user(f"a=b; {name}={cookie}", "") == "ann"
    now_s = LINK_S + 1
    assert logins.redeem(late) is None
    now_s = SESSION_S + 1
    assert logins.user(f"{name}={cookie}", "") is None


def test_pages_at_several_ports_keep_their_cookies_apart() -> None:
    logins: Logins[str] = Logins(lambda: 0.0)
    cookie = logins.redeem(logins.link_token("ann"))
    header = f"{logins.cookie_name('127.0.0.1:1')}={cookie}"
    assert logins.user(header, "127.0.0.1:1") == "ann"
    assert logins.user(header, "127.0.0.1:2") is None


@given(st.text(max_size=60))
def test_no_cookie_header_is_a_fault(header: str) -> None:
    logins: Logins[str] = Logins(lambda: 0.0)
    assert logins.user(header, "") is None


# --- hostile requests -------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:1", "0"])
def test_another_name_of_this_machine_is_refused(host: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        for path in ("/", "/fleet", "/login?token=x"):
            answer = await visitor.send("GET", path, headers={"host": host})
            assert isinstance(answer, Response)
            assert (answer.status, msgspec.json.decode(answer.body)["code"]) == (403, "bad-host")

    at_page(feed_of(SMALL), scenario)


def test_names_of_hosts_are_read_without_their_ports() -> None:
    assert [host_name(each) for each in ("LocalHost:80", "[::1]:80", "127.0.0.1")] == [
        "localhost",
        "[::1]",
        "127.0.0.1",
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_another_site_cannot_ask(headers: dict[str, str]) -> None:
    async def scenario(visitor: Visitor) -> None:
        answer = await visitor.send("POST", "/cel", {"expression": "true"}, {**POST, **headers})
        assert answer.status == 403

    at_page(feed_of(SMALL), scenario)


def test_a_form_of_another_site_cannot_ask() -> None:
    async def scenario(visitor: Visitor) -> None:
        answer = await visitor.send("POST", "/cel", {"expression": "true"})
        assert answer.status == 400

    at_page(feed_of(SMALL), scenario)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/fleet", 405),
        ("DELETE", "/object", 405),
        ("GET", "/cel", 405),
        ("POST", "/", 405),
        ("GET", "/nothing", 404),
        ("GET", "/static/../page.py", 404),
        ("GET", "/static//etc/passwd", 404),
        ("GET", "/static/nothing.js", 404),
        ("GET", "/events?since=-1", 400),
        ("GET", "/events?since=x", 400),
        ("GET", "/object?kind=Secret&namespace=a&name=b", 400),
        ("GET", "/object?kind=Pod&namespace=a&name=b", 404),
        ("GET", "/device?driver=a", 404),
        ("GET", "/fleet?at=1", 409),
    ],
)
def test_what_there_is_not_is_refused(method: str, path: str, status: int) -> None:
    async def scenario(visitor: Visitor) -> None:
        answer = await visitor.send(method, path, b"{}", POST)
        assert isinstance(answer, Response)
        assert answer.status == status
        assert msgspec.json.decode(answer.body)["error"]

    at_page(feed_of(SMALL), scenario)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b" " * (BODY_BYTES_MAX + 1), 413),
        (b'{"expression": 1}', 400),
        (b'{"expression": "true", "more": 1}', 400),
        (b'{"expression": "true", "at": "3"}', 409),
        (b'{"expression": "true", "at": []}', 400),
    ],
)
def test_a_body_that_is_no_question_is_refused(body: bytes, status: int) -> None:
    async def scenario(visitor: Visitor) -> None:
        answer = await visitor.send("POST", "/cel", body, POST)
        assert answer.status == status

    at_page(feed_of(SMALL), scenario)


@settings(max_examples=30)
@given(st.text(max_size=30), st.text(max_size=30))
def test_names_are_data(namespace: str, name: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        for body in ({"namespace": namespace, "name": name}, {"changes": [namespace, name]}):
            path = "/explain" if "name" in body else "/what-if"
            status, answer = await visitor.ask(path, body)
            assert status in (400, 404, 422)
            assert answer["error"]

    at_page(feed_of(SMALL), scenario)


def test_every_answer_keeps_browsers_careful() -> None:
    async def scenario(visitor: Visitor) -> None:
        for path in ("/", "/static/main.js", "/session", "/fleet", "/nothing", "/events?since=1"):
            headers = dict((await visitor.send("GET", path)).headers)
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            expected = "no-cache" if path in ("/", "/static/main.js") else "no-store"
            assert headers["Cache-Control"] == expected

    at_page(feed_of(SMALL), scenario)


# --- files and the fleet ----------------------------------------------------------------------


def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    async def scenario(visitor: Visitor) -> None:
        first = await visitor.send("GET", "/")
        assert isinstance(first, Response)
        assert first.content_type.startswith("text/html")
        tag = dict(first.headers)["ETag"]
        again = await visitor.send("GET", "/", headers={"if-none-match": f'"x", {tag}'})
        packed = await visitor.send("GET", "/", headers={"accept-encoding": "gzip, br"})
        assert isinstance(again, Response)
        assert isinstance(packed, Response)
        assert (again.status, again.body) == (304, b"")
        assert gzip.decompress(packed.body) == first.body

    at_page(feed_of(SMALL), scenario)


def test_the_fleet_is_that_of_the_scene() -> None:
    async def scenario(visitor: Visitor) -> None:
        _, tree = await visitor.get("/fleet")
        assert told(read_fleet(tree)) == told(Scene(CONTEXT, SMALL).fleet(1, ""))
        packed = await visitor.send("GET", "/fleet", headers={"accept-encoding": "gzip"})
        assert isinstance(packed, Response)
        body = packed.body
        if dict(packed.headers).get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert msgspec.json.decode(body) == tree

    at_page(feed_of(SMALL), scenario)


def test_the_session_says_what_is_shown() -> None:
    async def scenario(visitor: Visitor) -> None:
        _, session = await visitor.get("/session")
        assert (session["user"], session["title"], session["source"]) == ("you", "test", "files")
        assert (session["live"], session["history"], session["readOnly"]) == (False, False, True)
        assert "dgx-h100" in session["profiles"]
        assert session["forbidden"] == []

    at_page(feed_of(SMALL), scenario)


# --- rights -----------------------------------------------------------------------------------

LIMITED = Rights((("Node", frozenset()), ("Pod", frozenset({"mine"})),
                  ("ResourceClaim", frozenset({"mine"}))))  # fmt: skip


def limited(rights: Rights) -> Access[str]:
    async def rights_of(_: str) -> Rights:
        return rights

    return Access(name_of=str, rights_of=rights_of)


def test_a_viewer_sees_what_they_may_list() -> None:
    objects = [*SMALL, *waiting("own", namespace="mine")]

    async def scenario(visitor: Visitor) -> None:
        _, session = await visitor.get("/session")
        assert session["forbidden"] == ["nodes", "pods", "resourceclaims"]
        _, tree = await visitor.get("/fleet")
        shown = told(read_fleet(tree))
        assert shown["pods"].keys() == {"mine/own"}
        assert shown["claims"].keys() == {"mine/own-gpus"}
        assert shown["holdings"] == {}
        assert {state for _, state, _ in shown["nodes"].values()} == {3}  # known by name only
        assert "busy" not in msgspec.json.encode(tree).decode()
        for kind, name in (("Pod", "big"), ("ResourceClaim", "busy")):
            status, _ = await visitor.get(f"/object?kind={kind}&namespace=team&name={name}")
            assert status == 404
        assert (await visitor.ask("/explain", {"namespace": "team", "name": "big"}))[0] == 404

    at_page(feed_of(objects), scenario, limited(LIMITED))


def test_what_a_viewer_may_not_list_is_unknown_to_them() -> None:
    objects = [*SMALL, *waiting("own", namespace="mine")]

    async def scenario(visitor: Visitor) -> None:
        _, tree = await visitor.get("/fleet")
        states = read_fleet(tree).tables["devices"]["state"]
        assert set(states) == {STATES[DeviceState.UNKNOWN]}
        _, why = await visitor.ask("/explain", {"namespace": "mine", "name": "own"})
        assert why["cause"].startswith("nodes may not be read with these rights, so which node")
        assert "the right to list nodes" in why["fixes"][0]["text"]

    at_page(feed_of(objects), scenario, limited(LIMITED))


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        (("Node",), "nodes"),
        (("ResourceSlice",), "resourceslices"),
        (("DeviceClass",), "deviceclasses"),
        (("Node", "ResourceSlice", "DeviceClass", "Pod"), "nodes, resourceslices, deviceclasses"),
    ],
)
def test_what_if_is_for_who_may_list_what_it_reads(kinds: tuple[str, ...], named: str) -> None:
    rights = Rights(tuple((kind, frozenset()) for kind in kinds))

    async def scenario(visitor: Visitor) -> None:
        for question in (
            {"changes": ["add-profile dgx-h100-mig=1000"]},
            {"fix": {"namespace": "team", "name": "big", "number": 1}},
        ):
            status, answer = await visitor.ask("/what-if", question)
            assert (status, answer["code"]) == (403, "forbidden")
            assert answer["error"] == (
                f"what-if reads {named} of the whole cluster: ask an administrator for the right "
                "to list them."
            )
        assert (await visitor.get("/session"))[1]["whatIf"] is False

    at_page(feed_of(SMALL), scenario, limited(rights))


def test_a_viewer_hears_of_nothing_else() -> None:
    feed = feed_of(SMALL, is_live=True)

    async def scenario(visitor: Visitor) -> None:
        events = visitor.events(1)
        heard = asyncio.ensure_future(anext(events))
        await visitor.get("/fleet")
        feed.publish(waiting("secret"), revision=2, time=NOW)
        feed.publish(waiting("own", namespace="mine"), revision=3, time=NOW)
        name, change = await heard
        assert name == "fleet"
        assert "own" in change["strings"]
        assert "secret" not in change["strings"]
        await events.aclose()  # type: ignore[attr-defined]

    at_page(feed, scenario, limited(LIMITED))


# --- events -----------------------------------------------------------------------------------


def live_feed() -> Feed:
    return feed_of(SMALL, revision=5, is_live=True)


def test_events_lead_from_one_fleet_to_the_next() -> None:
    feed = live_feed()

    async def scenario(visitor: Visitor) -> None:
        _, tree = await visitor.get("/fleet")
        fleet = read_fleet(tree)
        events = visitor.events(fleet.revision)
        steps: list[list[Any]] = [
            [holding("busy", "gpu-1")],
            waiting("more"),
            [holding("x", "gpu-0")],
        ]
        for number, step in enumerate(steps, 6):
            heard = asyncio.ensure_future(anext(events))
            feed.publish(step, revision=number, time=NOW)
            name, data = await heard
            assert (name, data["revision"]) == ("fleet", number)
            fleet = apply(msgspec.convert(data, Delta), fleet)
        assert told(fleet) == told(read_fleet((await visitor.get("/fleet"))[1]))
        again = visitor.events(5)  # who was away hears all of it
        assert [(await anext(again))[1]["revision"] for _ in steps] == [6, 7, 8]
        for each in (events, again):
            await each.aclose()  # type: ignore[attr-defined]

    at_page(feed, scenario)


def test_one_change_is_encoded_once_for_all() -> None:
    feed = live_feed()

    async def scenario(visitor: Visitor) -> None:
        await visitor.get("/fleet")
        answers = [await visitor.send("GET", "/events?since=5") for _ in range(20)]
        streams: list[Any] = [answer.chunks for answer in answers]  # type: ignore[union-attr]
        for stream in streams:
            assert (await anext(stream)).startswith(b":")
        heard = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        feed.publish(waiting("more"), revision=6, time=NOW)
        chunks = await asyncio.gather(*heard)
        assert len({id(chunk) for chunk in chunks}) == 1
        for stream in streams:
            await stream.aclose()

    at_page(feed, scenario)


@pytest.mark.parametrize("change", [machine("n0"), []])
def test_who_has_other_rows_loads_the_fleet_again(change: list[Any]) -> None:
    feed = live_feed()

    async def scenario(visitor: Visitor) -> None:
        await visitor.get("/fleet")
        events = visitor.events(5 if change else 3)  # 3 is no revision that was shown
        heard = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        if change:
            feed.publish(change, revision=6, time=NOW)
        assert (await heard)[0] == "reload"
        await events.aclose()  # type: ignore[attr-defined]

    at_page(feed, scenario)


def test_what_nobody_can_see_is_no_event() -> None:
    feed = live_feed()

    async def scenario(visitor: Visitor) -> None:
        await visitor.get("/fleet")
        events = visitor.events(5)
        heard = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        feed.publish([holding("busy", "gpu-0")], revision=6, time=NOW)
        feed.publish(waiting("more"), revision=7, time=NOW)
        assert (await heard)[1]["revision"] == 7
        await events.aclose()  # type: ignore[attr-defined]

    at_page(feed, scenario)


# --- history ----------------------------------------------------------------------------------


def test_every_moment_of_a_history_can_be_asked_for() -> None:
    changes = [
        Change(3, at(3), tuple(SMALL)),
        Change(5, at(5), (holding("busy", "gpu-1"),)),
        Change(9, at(9), (), (("Pod", "team", "big"),)),
    ]
    history = History(changes)
    feed = Feed(SourceFacts("x", "recording"), CONTEXT, history=history)
    feed.publish(history.snapshot().objects(), revision=9, time=at(9))

    async def scenario(visitor: Visitor) -> None:
        _, tree = await visitor.get("/history")
        assert (tree["first"], tree["last"]) == (3, 9)
        assert [revision for revision, _ in tree["points"]] == [3, 5, 9]
        assert {"Pending"} <= {mark["what"] for mark in tree["marks"]}
        for moment, held in (("3", "gpu-0"), ("4", "gpu-0"), ("5", "gpu-1"), ("3", "gpu-0")):
            _, answer = await visitor.get(f"/fleet?at={moment}")
            ((device, _),) = told(read_fleet(answer))["holdings"]
            assert device == f"gpu.example.com/n1/{held}"
        _, then = await visitor.get(f"/fleet?at={at(8)}")
        assert then["revision"] == 5
        body = {"namespace": "team", "name": "big", "at": 5}
        assert (await visitor.ask("/explain", body))[0] == 200
        assert (await visitor.ask("/explain", {**body, "at": 9}))[0] == 404
        for moment in ("2", "10", "2000-01-01T00:00:00Z"):
            assert (await visitor.get(f"/fleet?at={moment}"))[0] == 409
        assert (await visitor.get("/fleet?at=yesterday"))[0] == 400

    at_page(feed, scenario)


def test_a_live_history_forgets_its_older_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.web.feed.CHANGES_MAX", 10)
    facts = SourceFacts("x", "cluster", is_live=True)
    feed = Feed(facts, CONTEXT, history=History())
    for number in range(1, 40):
        feed.publish([holding("busy", f"gpu-{number % 2}")], revision=number, time=at(number))
    assert feed.history is not None
    assert len(feed.history) <= 10
    assert feed.history.last.revision == 39
    (busy,) = feed.history.snapshot(39).claims
    assert busy == holding("busy", "gpu-1")


# --- questions in time ------------------------------------------------------------------------


def test_who_asks_too_much_is_told_to_wait() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=60.0), asyncio.Event()
        loop = asyncio.get_running_loop()

        def blocked() -> None:
            asyncio.run_coroutine_threadsafe(held.wait(), loop).result(60)

        waiting_for = [asyncio.ensure_future(asking.answer("ann", blocked)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await asking.answer("ann", lambda: None)
        held.set()
        await asyncio.gather(*waiting_for)
        assert await asking.answer("ann", lambda: 3) == 3
        asking.close()

    asyncio.run(run())


def test_a_question_that_takes_too_long_is_answered_at_its_deadline() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=0.01), asyncio.Event()
        loop = asyncio.get_running_loop()
        late = asyncio.run_coroutine_threadsafe
        with pytest.raises(DeadlineError):
            await asking.answer("ann", lambda: late(held.wait(), loop).result(60))
        held.set()
        asking.close()

    asyncio.run(run())


def test_a_fault_is_no_secret_of_the_client_but_of_the_log() -> None:
    async def run() -> None:
        from moorage.web.local_server import PageHandler

        page = Page(feed_of(SMALL), EVERYTHING, files={})
        handler = PageHandler(page)
        answer = await handler.handle(Request("GET", "/other", {}, {"host": "127.0.0.1"}))
        assert isinstance(answer, Response)
        assert (answer.status, dict(answer.headers)["Location"]) == (302, "/ui/")
        answer = await page.answer(Request("GET", "/ui", {}, {"host": "localhost"}), nobody)
        assert isinstance(answer, Response)
        assert answer.status == 308
        await page.close()

    asyncio.run(run())
