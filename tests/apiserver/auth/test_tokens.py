from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.authentication import (
    BoundObjectReference,
    SelfSubjectReview,
    TokenRequest,
    TokenRequestSpec,
    TokenReview,
    TokenReviewSpec,
)
from moorage.api.codec import to_tree
from moorage.api.core import Node, Pod, Secret, ServiceAccount
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.authenticator import Authenticator, TokenUser, bearer_token
from moorage.apiserver.auth.reviews import answer_self, answer_token
from moorage.apiserver.auth.service_account_tokens import (
    Issuer,
    Lookup,
    SigningKey,
    TokenRefused,
    VerifyingKey,
    verified,
)
from moorage.apiserver.auth.token_requests import TokenObjects, bound_lookup, issue
from moorage.apiserver.auth.users import ANONYMOUS, StaticTokens, User, read_tokens
from moorage.apiserver.errors import SigningKeyError, TokenFileError
from moorage.apiserver.http.status import StatusError

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))
API = "https://kubernetes.default.svc"


def pem(key: Any) -> bytes:
    data: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return data


KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))
OTHER = SigningKey(ec.generate_private_key(ec.SECP256R1()))
RSA = SigningKey(rsa.generate_private_key(65537, 2048))
ISSUER = Issuer(API, (KEY.public, RSA.public), (API,))

ACCOUNT = ServiceAccount(metadata=ObjectMeta(name="bot", namespace="ci", uid="account-uid"))
NODE = Node(metadata=ObjectMeta(name="node-a", uid="node-uid"))
POD = Pod(
    metadata=ObjectMeta(name="runner", namespace="ci", uid="pod-uid"),
    spec=replace(Pod().spec, service_account_name="bot", node_name="node-a"),
)
SECRET = Secret(metadata=ObjectMeta(name="token", namespace="ci", uid="secret-uid"))
STORED: Mapping[Lookup, Any] = {
    Lookup("serviceaccounts", "ci", "bot"): ACCOUNT,
    Lookup("pods", "ci", "runner"): POD,
    Lookup("secrets", "ci", "token"): SECRET,
    Lookup("nodes", "", "node-a"): NODE,
}


NO_TOKENS = StaticTokens({})


def later(seconds: float) -> Timestamp:
    return Timestamp(NOW.instant + timedelta(seconds=seconds))


def authenticator(
    stored: Mapping[Lookup, Any] = STORED,
    now: Timestamp = NOW,
    static: StaticTokens = NO_TOKENS,
) -> Authenticator:
    async def find(where: Lookup) -> Any | None:
        return stored.get(where)

    return Authenticator(ISSUER, find, lambda: now, static)


def request(
    kind: str = "", name: str = "", uid: str = "", audiences: tuple[str, ...] = (), **spec: Any
) -> TokenRequest:
    reference = BoundObjectReference(kind=kind, api_version="v1", name=name, uid=uid)
    return TokenRequest(
        spec=TokenRequestSpec(
            audiences=audiences, bound_object_ref=reference if kind else None, **spec
        )
    )


def issued(
    wanted: TokenRequest, *, bound: Any = None, key: SigningKey = KEY, **more: Any
) -> TokenRequest:
    objects = TokenObjects(ACCOUNT, bound, NODE if isinstance(bound, Pod) else None)
    return issue(wanted, objects, key=key, issuer=ISSUER, now=NOW, token_id="id-1", **more).value


def user_of(token: str, **more: Any) -> TokenUser | TokenRefused:
    return asyncio.run(authenticator(**more).token_user(token, (API,)))


# --- tokens of service accounts -------------------------------------------------------------------


@pytest.mark.parametrize("key", [KEY, RSA], ids=["ES256", "RS256"])
def test_a_token_makes_its_bearer_the_service_account(key: SigningKey) -> None:
    found = user_of(issued(request(), key=key).status.token)
    assert found == TokenUser(
        User(
            "system:serviceaccount:ci:bot",
            ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
            "account-uid",
            {"authentication.kubernetes.io/credential-id": ("JTI=id-1",)},
        ),
        (API,),
    )


def test_a_token_bound_to_a_pod_tells_the_pod_and_its_node() -> None:
    token = issued(request("Pod", "runner", "pod-uid"), bound=POD).status.token
    found = user_of(token)
    assert isinstance(found, TokenUser)
    assert found.user.extra == {
        "authentication.kubernetes.io/pod-name": ("runner",),
        "authentication.kubernetes.io/pod-uid": ("pod-uid",),
        "authentication.kubernetes.io/node-name": ("node-a",),
        "authentication.kubernetes.io/node-uid": ("node-uid",),
        "authentication.kubernetes.io/credential-id": ("JTI=id-1",),
    }


@pytest.mark.parametrize(
    ("kind", "name", "bound", "where"),
    [
        ("Pod", "runner", POD, Lookup("pods", "ci", "runner")),
        ("Secret", "token", SECRET, Lookup("secrets", "ci", "token")),
        ("Node", "node-a", NODE, Lookup("nodes", "", "node-a")),
        ("", "", None, Lookup("serviceaccounts", "ci", "bot")),
    ],
)
def test_a_token_ends_with_what_it_is_bound_to(
    kind: str, name: str, bound: Any, where: Lookup
) -> None:
    wanted = request(kind, name)
    if kind:
        assert bound_lookup(wanted, "ci") == where
    token = issued(wanted, bound=bound).status.token
    assert isinstance(user_of(token), TokenUser)
    gone = {key: value for key, value in STORED.items() if key != where}
    assert isinstance(user_of(token, stored=gone), TokenRefused)
    old = STORED[where]
    another = replace(old, metadata=replace(old.metadata, uid="another"))
    assert isinstance(user_of(token, stored={**STORED, where: another}), TokenRefused)
    deleted = replace(old, metadata=replace(old.metadata, deletion_timestamp=later(-100)))
    assert isinstance(user_of(token, stored={**STORED, where: deleted}), TokenRefused)


@pytest.mark.parametrize(
    ("seconds", "is_good"), [(-120, False), (-30, True), (0, True), (3600, True), (3700, False)]
)
def test_a_token_is_good_for_its_time_and_a_little_around_it(seconds: int, is_good: bool) -> None:
    token = issued(request()).status.token
    assert isinstance(user_of(token, now=later(seconds)), TokenUser) is is_good


def test_a_token_for_others_is_not_for_us() -> None:
    token = issued(request(audiences=("vault",))).status.token
    assert isinstance(user_of(token), TokenRefused)
    found = asyncio.run(authenticator().token_user(token, ("vault", "else")))
    assert isinstance(found, TokenUser)
    assert found.audiences == ("vault",)


def test_a_token_of_another_key_or_issuer_is_refused() -> None:
    assert isinstance(user_of(issued(request(), key=OTHER).status.token), TokenRefused)
    foreign = KEY.sign({"iss": "https://elsewhere", "sub": "system:serviceaccount:ci:bot"})
    assert isinstance(user_of(foreign), TokenRefused)


def parts_of(token: str) -> list[dict[str, Any]]:
    return [
        json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        for part in token.split(".")[:2]
    ]


def encoded(tree: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


def test_a_token_cannot_choose_how_it_is_checked() -> None:
    token = issued(request()).status.token
    header, payload = parts_of(token)
    signature = token.rpartition(".")[2]
    for algorithm in ("none", "HS256", "RS256", "", None):
        forged = encoded({**header, "alg": algorithm})
        assert verified(f"{forged}.{encoded(payload)}.{signature}", ISSUER.keys) is None
        assert verified(f"{forged}.{encoded(payload)}.", ISSUER.keys) is None
    changed = encoded({**payload, "sub": "system:serviceaccount:kube-system:admin"})
    assert verified(f"{encoded(header)}.{changed}.{signature}", ISSUER.keys) is None


def test_a_token_whose_subject_is_not_its_account_is_refused() -> None:
    _, payload = parts_of(issued(request()).status.token)
    token = KEY.sign({**payload, "sub": "system:serviceaccount:ci:other"})
    assert isinstance(user_of(token), TokenRefused)


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Za-z0-9_-]{0,12}\.[A-Za-z0-9_-]{0,12}\.[a-z]{0,4}")
)
def test_no_text_makes_the_check_fail(text: str) -> None:
    assert verified(text, ISSUER.keys) is None


@given(st.binary(min_size=0, max_size=80))
def test_no_signature_is_accepted_by_chance(signature: bytes) -> None:
    assert not KEY.public.accepts(b"text", signature)
    assert not RSA.public.accepts(b"text", signature)


@given(
    st.dictionaries(
        st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "kubernetes.io"]),
        st.sampled_from([None, 0, -1, 1e300, "x", API, [API], {"namespace": 1}, {"pod": {}}]),
    )
)
def test_whatever_a_signed_token_says_it_is_known_or_refused(payload: dict[str, Any]) -> None:
    assert isinstance(user_of(KEY.sign({**payload, "iss": API})), TokenRefused)


def test_keys_that_are_too_weak_are_not_used() -> None:
    with pytest.raises(SigningKeyError, match="2048"):
        VerifyingKey(rsa.generate_private_key(65537, 1024).public_key())
    with pytest.raises(SigningKeyError, match="P-256"):
        SigningKey(ec.generate_private_key(ec.SECP384R1()))
    with pytest.raises(SigningKeyError, match="not a private key"):
        SigningKey.from_pem(b"nonsense")
    assert SigningKey.from_pem(pem(ec.generate_private_key(ec.SECP256R1()))).public.id


# --- TokenRequest ---------------------------------------------------------------------------------


def test_a_request_is_answered_with_its_token_and_what_was_decided() -> None:
    tree = to_tree(issued(request()))
    assert tree["metadata"] == {
        "name": "bot",
        "namespace": "ci",
        "uid": "account-uid",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    assert tree["spec"]["audiences"] == [API]
    assert tree["spec"]["expirationSeconds"] == 3600
    assert tree["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"
    _, payload = parts_of(tree["status"]["token"])
    assert payload["kubernetes.io"] == {
        "namespace": "ci",
        "serviceaccount": {"name": "bot", "uid": "account-uid"},
    }


def test_the_server_may_shorten_the_time() -> None:
    answer = issue(
        request(expiration_seconds=7200),
        TokenObjects(ACCOUNT),
        key=KEY,
        issuer=ISSUER,
        now=NOW,
        token_id="x",
        seconds_max=3600,
    )
    assert answer.value.spec.expiration_seconds == 3600
    assert answer.warnings == ("requested expiration of 7200 seconds shortened to 3600 seconds",)


@pytest.mark.parametrize(
    ("wanted", "bound", "code", "part"),
    [
        (request(expiration_seconds=60), None, 422, "less than 10 minutes"),
        (request(expiration_seconds=2**33), None, 422, "larger than 2^32"),
        (replace(request(), metadata=ObjectMeta(name="x")), None, 422, "metadata.name"),
        (replace(request(), metadata=ObjectMeta(uid="x")), None, 409, "does not match"),
        (request("Pod", "gone"), None, 404, 'pods "gone" not found'),
        (request("Pod", "runner", "old"), POD, 409, "deleted and then recreated"),
        (
            request("Pod", "runner"),
            replace(POD, spec=replace(POD.spec, service_account_name="x")),
            400,
            "different serviceaccount name",
        ),
    ],
)
def test_a_request_that_cannot_be_met_says_why(
    wanted: TokenRequest, bound: Any, code: int, part: str
) -> None:
    with pytest.raises(StatusError) as caught:
        issued(wanted, bound=bound)
    assert caught.value.status.code == code
    assert part in caught.value.status.message


def test_tokens_are_bound_to_pods_secrets_and_nodes_only() -> None:
    with pytest.raises(StatusError, match="cannot bind token to object of type"):
        bound_lookup(request("ConfigMap", "x"), "ci")


# --- static tokens --------------------------------------------------------------------------------


def test_a_file_of_tokens_is_read() -> None:
    tokens = read_tokens(
        'secret-1,ann,1,"dev, ops"\n# nobody,x,1\n\nsecret-2, bob, 2\nsecret-3,eve,3,one\n'
    )
    assert tokens.find("secret-1") == User("ann", ("dev", "ops"), "1")
    assert tokens.find("secret-2") == User("bob", (), "2")
    assert tokens.find("secret-3") == User("eve", ("one",), "3")
    assert tokens.find("secret") is None
    assert b"secret-1" not in repr(tokens.users).encode()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a,b", "line 1: token, user name and user uid are needed, found 2"),
        ("x,ann,1\n,bob,2", "line 2: the token and the user name may not be empty"),
        ('x,"ann,1', "line 1"),
    ],
)
def test_a_bad_file_of_tokens_names_the_line(text: str, part: str) -> None:
    with pytest.raises(TokenFileError) as caught:
        read_tokens(text, source="tokens.csv")
    assert part in str(caught.value)
    assert str(caught.value).startswith("tokens.csv")


# --- bootstrap tokens -----------------------------------------------------------------------------


def bootstrap_secret(**data: str) -> Secret:
    given_data = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        **{key.replace("_", "-"): value for key, value in data.items()},
    }
    return Secret(
        metadata=ObjectMeta(name="bootstrap-token-abcdef", namespace="kube-system"),
        type="bootstrap.kubernetes.io/token",
        data={key: base64.b64encode(value.encode()).decode() for key, value in given_data.items()},
    )


def bootstrapped(
    secret: Secret, token: str = "abcdef.0123456789abcdef"
) -> TokenUser | TokenRefused:
    stored = {Lookup("secrets", "kube-system", "bootstrap-token-abcdef"): secret}
    return user_of(token, stored=stored)


def test_a_bootstrap_token_is_a_user_of_its_own() -> None:
    secret = bootstrap_secret(
        auth_extra_groups="system:bootstrappers:workers", expiration="2026-01-02T00:00:00Z"
    )
    found = bootstrapped(secret)
    assert isinstance(found, TokenUser)
    assert found.user.name == "system:bootstrap:abcdef"
    assert found.user.groups == (
        "system:bootstrappers",
        "system:bootstrappers:workers",
        "system:authenticated",
    )


@pytest.mark.parametrize(
    "secret",
    [
        bootstrap_secret(token_secret="xxxxxxxxxxxxxxxx"),
        bootstrap_secret(token_id="xxxxxx"),
        bootstrap_secret(usage_bootstrap_authentication="false"),
        bootstrap_secret(expiration="2025-12-31T00:00:00Z"),
        bootstrap_secret(expiration="soon"),
        bootstrap_secret(auth_extra_groups="system:masters"),
        replace(bootstrap_secret(), type="Opaque"),
        replace(
            bootstrap_secret(),
            metadata=ObjectMeta(name="bootstrap-token-abcdef", deletion_timestamp=NOW),
        ),
        replace(bootstrap_secret(), data={"token-secret": "%%%"}),
    ],
)
def test_a_bootstrap_token_that_may_not_be_used_is_none(secret: Secret) -> None:
    assert isinstance(bootstrapped(secret), TokenRefused)


# --- requests -------------------------------------------------------------------------------------


def user_with(authorization: str | None) -> User:
    static = read_tokens("good,ann,1,dev")
    asked = authenticator(static=static)
    return asyncio.run(asked.user(certificate=None, authorization=authorization))


def test_who_shows_nothing_is_nobody() -> None:
    assert user_with(None) == ANONYMOUS
    assert user_with("") == ANONYMOUS
    assert user_with("Basic YTpi") == ANONYMOUS


def test_who_shows_a_good_token_is_known() -> None:
    expected = User("ann", ("dev", "system:authenticated"), "1")
    assert user_with("Bearer good") == user_with("bearer  good ") == expected


@pytest.mark.parametrize("token", ["bad", "a.b.c", "x" * 20_000, "abcdef.0123456789abcdef"])
def test_who_shows_a_bad_token_is_not_nobody_but_refused(token: str) -> None:
    with pytest.raises(StatusError) as caught:
        user_with(f"Bearer {token}")
    assert caught.value.status.code == 401
    assert caught.value.status.message == "Unauthorized"


@pytest.mark.parametrize(
    ("header", "expected"),
    [("Bearer x", "x"), ("Bearer ", None), ("Bearer", None), ("Token x", None), (None, None)],
)
def test_the_token_is_what_follows_bearer(header: str | None, expected: str | None) -> None:
    assert bearer_token(header) == expected


# --- reviews --------------------------------------------------------------------------------------


def reviewed(token: str, *audiences: str) -> dict[str, Any]:
    review = TokenReview(spec=TokenReviewSpec(token=token, audiences=audiences))
    asked = authenticator(static=read_tokens("good,ann,1,dev"))
    status: dict[str, Any] = to_tree(asyncio.run(answer_token(review, asked)))["status"]
    return status


def test_a_review_tells_whose_token_it_is_and_for_whom() -> None:
    assert reviewed("good") == {
        "authenticated": True,
        "user": {"username": "ann", "uid": "1", "groups": ["dev", "system:authenticated"]},
        "audiences": [API],
    }
    token = issued(request(audiences=("vault",))).status.token
    assert reviewed(token, "vault")["audiences"] == ["vault"]
    assert "authenticated" not in reviewed(token)
    assert "authenticated" not in reviewed("good", "vault")


def test_a_review_of_a_bad_token_has_an_error() -> None:
    assert reviewed("bad") == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(StatusError, match="token is required"):
        reviewed("")


def test_one_may_ask_who_one_is() -> None:
    tree = to_tree(
        answer_self(SelfSubjectReview(), User("ann", ("dev",), extra={"a": ("b",)}), NOW)
    )
    assert tree["status"]["userInfo"] == {
        "username": "ann",
        "groups": ["dev"],
        "extra": {"a": ["b"]},
    }
