"""The pages by which programs are watched: what is open, and who may read the rest."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.api.authentication import TokenReview, TokenReviewStatus, UserInfo
from moorage.api.authorization import SubjectAccessReviewStatus
from moorage.apiserver.auth.users import read_tokens
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import in_process_client
from moorage.client.errors import ClientError, UnavailableError
from moorage.cluster import status_access
from moorage.cluster.status_access import StatusAccess, StatusUser, bearer_token, certificate_user
from moorage.cluster.status_server import (
    ListenAddress,
    StatusPages,
    StatusTls,
    health_pages,
    parse_listen_address,
    prefers_openmetrics,
    serving,
)
from moorage.kit.bulkhead import Fault

LOOPBACK = ListenAddress("127.0.0.1", 0)
SECRET = 'kube_pod{pod="secret"} 1\n'
TROUBLES = {"Pod": 'pods is forbidden: User "scheduler" cannot list'}
TOKENS = read_tokens(
    "root,root,1,system:masters\nprometheus,prometheus,2,system:monitoring\nann,ann,3\n"
    "scheduler,system:kube-scheduler,4\ncontrollers,system:kube-controller-manager,5\n"
    "node,system:node:n,6,system:nodes\n"
)


class Reviews:
    """An API server that knows tokens: `good…` may read everything, `idle…` nothing."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.paths: list[str] = []
        self.fault: ClientError | None = None

    async def write(self, write: Any) -> Any:
        review = write.value
        if self.fault is not None:
            raise self.fault
        if isinstance(review, TokenReview):
            token = review.spec.token
            self.tokens.append(token)
            is_known = token.startswith(("good", "idle"))
            user = UserInfo(username=token, groups=("g",), extra_values={"e": ("1",)})
            status = TokenReviewStatus(authenticated=is_known, user=user)
            return TokenReview(status=status)
        spec = review.spec
        self.paths.append(f"{spec.user} {spec.non_resource_attributes.path}")
        allowed = spec.user.startswith("good") and spec.extra_values == {"e": ("1",)}
        return type(review)(status=SubjectAccessReviewStatus(allowed=allowed))


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def pages(troubles: dict[str, str] | None = None) -> StatusPages:
    return health_pages({"/metrics": lambda: SECRET}, lambda: troubles or {})


def request(path: str, token: str = "", **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    lines += [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([*lines, "", ""]).encode()


async def asked(url: str, sent: bytes, tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    host, port = url.rpartition("//")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(sent)
    try:
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split(b" ", 2)[1]) if head else 0, body.decode()


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2", True),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.2", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=x", False),
    ],
)
def test_openmetrics_is_for_those_who_ask_for_it(accept: str, is_open: bool) -> None:
    assert prefers_openmetrics(accept) == is_open


def test_a_page_without_openmetrics_is_shown_as_it_is() -> None:
    sent = request("/metrics", "good", accept="application/openmetrics-text")
    assert answer(sent) == (200, SECRET)


def answer(sent: bytes, troubles: dict[str, str] | None = None) -> tuple[int, str]:
    """Return the code and the body that a request gets."""

    async def run() -> tuple[int, str]:
        access = StatusAccess(Reviews(), monotonic=Now())
        async with asyncio.timeout(10), serving(LOOPBACK, pages(troubles), access) as url:
            return await asked(url, sent)

    return asyncio.run(run())


# --- pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "code", "body"),
    [
        (request("/healthz?verbose"), 200, "ok"),
        (request("/livez"), 200, "ok"),
        (b"GET /readyz HTTP/1.0\r\n\r\n", 200, "ok"),
        (request("/readyz?verbose", "good"), 200, "ok"),
        (request("/metrics"), 401, "Unauthorized\n"),
        (request("/metrics?x=1"), 401, "Unauthorized\n"),
        (request("/metrics", "bad"), 401, "Unauthorized\n"),
        (request("/metrics", Authorization="Basic good"), 401, "Unauthorized\n"),
        (request("/metrics", "good", authorization="Bearer good"), 401, "Unauthorized\n"),
        (request("/metrics", "good"), 200, SECRET),
        (request("/metrics", authorization="bearer  good"), 200, SECRET),
        (request("/metrics", "idle"), 403, 'forbidden: User "idle" cannot get path "/metrics"\n'),
        (request("//metrics", "good"), 404, "404 page not found\n"),
        (request("/%6detrics", "good"), 404, "404 page not found\n"),
        (request("/x"), 404, "404 page not found\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405, "405 method not allowed\n"),
        (b"nonsense\r\n\r\n", 400, "400 bad request\n"),
        (b"GET /metrics HTTP/2\r\n\r\n", 400, "400 bad request\n"),
        (b"x" * 20_000, 431, "431 the headers are too large\n"),
        (request("/metrics", "g" * 17_000), 431, "431 the headers are too large\n"),
    ],
)
def test_what_is_answered(sent: bytes, code: int, body: str) -> None:
    assert answer(sent) == (code, body)


def test_a_program_with_troubles_is_not_ready_and_names_kinds_only() -> None:
    code, body = answer(request("/readyz"), TROUBLES)
    assert (code, body.splitlines()[0]) == (503, "Pod: cannot be read")
    assert "scheduler" not in body
    assert answer(request("/readyz?verbose"), TROUBLES)[0] == 401
    code, body = answer(request("/readyz?verbose=1", "good"), TROUBLES)
    assert (code, body) == (503, f"Pod: {TROUBLES['Pod']}\n")


def test_a_page_that_fails_is_an_error_and_the_next_one_is_shown(faults: list[Fault]) -> None:
    def broken() -> str:
        raise ZeroDivisionError("secret")

    async def run() -> list[tuple[int, str]]:
        found = health_pages({"/metrics": broken, "/metrics/resources": lambda: SECRET}, dict)
        access = StatusAccess(Reviews(), monotonic=Now())
        async with asyncio.timeout(10), serving(LOOPBACK, found, access) as url:
            paths = ("/metrics", "/metrics/resources", "/healthz")
            return [await asked(url, request(path, "good")) for path in paths]

    assert asyncio.run(run()) == [(500, "internal error\n"), (200, SECRET), (200, "ok")]
    assert [(each.place, each.subject) for each in faults] == [("status pages", "/metrics")]


def test_where_to_listen() -> None:
    assert parse_listen_address("127.0.0.1:10259") == ListenAddress("127.0.0.1", 10259)
    assert parse_listen_address("[::1]:0") == ListenAddress("::1", 0)
    assert parse_listen_address(":8080") == ListenAddress("127.0.0.1", 8080)
    assert parse_listen_address("0") is None
    for text in ("nonsense", "1.2.3.4:x", "1.2.3.4:70000"):
        with pytest.raises(ValueError, match="no address such as"):
            parse_listen_address(text)


def test_which_addresses_only_this_machine_reaches() -> None:
    hosts = ("127.0.0.1", "127.1.2.3", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1", "a.example")
    assert [ListenAddress(host, 1).is_loopback for host in hosts] == [True] * 4 + [False] * 4


# --- reviews --------------------------------------------------------------------------------------


async def read(access: StatusAccess, token: str, path: str = "/metrics") -> int:
    refusal = await access.refusal(path, certificate=None, authorization=f"Bearer {token}")
    return 200 if refusal is None else int(refusal.code)


def test_answers_are_kept_for_some_seconds() -> None:
    async def run() -> None:
        reviews, now = Reviews(), Now()
        access = StatusAccess(reviews, monotonic=now)
        for token in ("good", "good", "idle", "idle", "bad", "bad"):
            await read(access, token)
        assert reviews.tokens == ["good", "idle", "bad"]
        assert reviews.paths == ["good /metrics", "idle /metrics"]
        now.s += status_access.KEPT_S
        assert await read(access, "good") == 200
        assert (reviews.tokens[-1], len(reviews.tokens), len(reviews.paths)) == ("good", 4, 3)

    asyncio.run(run())


def test_many_requests_at_once_cost_one_review() -> None:
    async def run() -> None:
        reviews = Reviews()
        access = StatusAccess(reviews, monotonic=Now())
        codes = await asyncio.gather(*(read(access, "good") for _ in range(15)))
        assert (codes, reviews.tokens) == ([200] * 15, ["good"])

    asyncio.run(run())


def test_a_flood_of_bad_tokens_is_bounded_and_pushes_out_no_good_ones() -> None:
    async def run() -> None:
        reviews, now = Reviews(), Now()
        access = StatusAccess(reviews, monotonic=now)
        assert await read(access, "good") == 200
        codes = [await read(access, f"bad{number}") for number in range(1000)]
        assert set(codes) == {401, 429}
        assert len(reviews.tokens) + len(reviews.paths) == status_access.REVIEWS_AT_ONCE
        # Who was accepted before is reviewed again when the answer is old, whatever others send.
        now.s += status_access.KEPT_S
        for number in range(1000):
            await read(access, f"worse{number}")
        assert await read(access, "good") == 200
        assert reviews.tokens[-1] == "good"
        assert len(access._rejected._known) <= status_access.CACHED_MAX

    asyncio.run(run())


def test_a_token_that_is_no_longer_valid_loses_its_privilege() -> None:
    async def run() -> None:
        reviews, now = Reviews(), Now()
        access = StatusAccess(reviews, monotonic=now)
        await read(access, "good")
        now.s += status_access.KEPT_S
        original = reviews.write

        async def revoked(write: Any) -> Any:
            await original(write)
            return TokenReview(status=TokenReviewStatus(authenticated=False))

        reviews.write = revoked  # type: ignore[method-assign]
        assert await read(access, "good") == 401
        assert len(access._accepted._known) == 0

    asyncio.run(run())


def test_a_server_that_cannot_be_asked_shows_nothing_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        reviews, now = Reviews(), Now()
        reviews.fault = UnavailableError("it is down")
        access = StatusAccess(reviews, monotonic=now)
        assert [await read(access, "good") for _ in range(5)] == [503] * 5
        now.s += status_access.WARN_EVERY_S
        assert await read(access, "good") == 503

    asyncio.run(run())
    assert [record.message for record in caplog.records] == [
        "status pages: the API server answers no reviews: it is down"
    ] * 2


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("Bearer a, Bearer b", ""),
        ("Bearer ä", ""),
        ("", ""),
    ],
)
def test_the_token_of_a_header(header: str, token: str) -> None:
    assert bearer_token(header) == token


def test_the_user_of_a_certificate() -> None:
    subject = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "ann"),))
    ann = StatusUser("ann", ("a", "b", "system:authenticated"))
    assert certificate_user({"subject": subject}) == ann
    for nobody in (None, {}, {"subject": ()}, {"subject": (*subject, *subject)}):
        assert certificate_user(nobody) is None


# --- with a server --------------------------------------------------------------------------------


@asynccontextmanager
async def served(
    folder: Path, tls: StatusTls | None = None, as_user: str = "scheduler"
) -> AsyncIterator[tuple[str, Assembled]]:
    """Run an API server with roles, and the pages of a program that acts as a user."""
    async with (
        asyncio.timeout(30),
        assembled(Settings(folder, has_rbac=True, tokens=TOKENS)) as server,
    ):
        headers = {"authorization": f"Bearer {as_user}"}
        client = in_process_client(server.application, headers=headers)
        access = StatusAccess(client, monotonic=Now())
        async with serving(LOOPBACK._replace(tls=tls), pages(), access) as url:
            yield url, server


@pytest.mark.parametrize("program", ["scheduler", "controllers", "node"])
def test_users_need_the_role_and_every_program_may_ask(tmp_path: Path, program: str) -> None:
    async def run() -> None:
        async with served(tmp_path, as_user=program) as (url, _):
            assert await asked(url, request("/metrics", "prometheus")) == (200, SECRET)
            assert await asked(url, request("/metrics", "root")) == (200, SECRET)
            assert (await asked(url, request("/metrics", "ann")))[0] == 403
            assert (await asked(url, request("/metrics", "nobody")))[0] == 401
            assert (await asked(url, request("/readyz?verbose", "prometheus")))[0] == 200

    asyncio.run(run())


def test_a_program_that_may_not_ask_shows_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with served(tmp_path, as_user="ann") as (url, _):
            assert (await asked(url, request("/metrics", "root")))[0] == 503

    asyncio.run(run())


def client_tls(pki: Path, name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    if name:
        context.load_cert_chain(pki / f"{name}.crt", pki / f"{name}.key")
    return context


def test_client_certificates_and_tokens_are_accepted_over_tls(tmp_path: Path) -> None:
    pki = tmp_path / "pki"

    async def run() -> None:
        async with served(tmp_path):
            pass  # It writes its certificates.
        tls = StatusTls(pki / "server.crt", pki / "server.key", pki / "ca.crt")
        async with served(tmp_path, tls) as (url, _):
            assert url.startswith("https://")
            ask = request("/metrics")
            assert await asked(url, ask, client_tls(pki, "admin")) == (200, SECRET)
            assert (await asked(url, ask, client_tls(pki, "scheduler")))[0] == 403
            assert (await asked(url, ask, client_tls(pki)))[0] == 401
            with_token = request("/metrics", "prometheus")
            assert await asked(url, with_token, client_tls(pki)) == (200, SECRET)
            assert (await asked(url, request("/healthz"), client_tls(pki)))[0] == 200
            assert "HTTPS" in (await asked(url, ask))[1]

    asyncio.run(run())


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.crt"
    path.write_text("nonsense")

    async def run() -> None:
        place = LOOPBACK._replace(tls=StatusTls(path, path))
        with pytest.raises(OSError, match=r"a\.crt: no certificate"):
            async with serving(place, pages(), StatusAccess(Reviews(), monotonic=Now())):
                pass

    asyncio.run(run())
