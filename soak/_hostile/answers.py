"""The laws that hold for each answer, and the findings of a campaign.

1. an answer is no server error, but for those that say so: a revision not reached, a node that
   does not answer
2. JSON is JSON, and a rejection in JSON is a Status with its code and a message
3. no answer has the marker of a namespace that is not the user's
4. no success with objects that the user has no rights to
5. no text that only Python writes
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections import Counter
from http import HTTPStatus
from pathlib import Path

import msgspec

from soak._hostile.requests import Attack
from soak._hostile.site import FOUND, python_text
from soak._hostile.users import MARK, Canaries
from soak._http import Reply

FINDINGS_MAX = 40
SHOWN = 1500
SUCCESSES = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Kubernetes answers 500 as well where the node of a pod does not answer, or has no container.
OF_NODES = (
    b"error dialing backend", b"container not found", b"unable to upgrade", b"pod does not exist",
    b"the node answered", b"no preferred addresses found", b"connect: connection refused",
)  # fmt: skip


class Findings:
    """Broken laws, one of each kind, with the request that broke it."""

    def __init__(self, folder: Path, again: str) -> None:
        self.texts: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._folder, self._again = folder / FOUND, again

    def note(self, law: str, fact: str, attack: Attack | None = None) -> None:
        """Keep a broken law, if it is the first of its kind."""
        kind = f"{law}: {_without_particulars(fact)}"
        self.counts[law] += 1
        if kind in self.texts or len(self.texts) >= FINDINGS_MAX:
            return
        lines = [f"{law}: {fact[: 3 * SHOWN]}", f"again: {self._again}"]
        if attack is not None:
            path = self._folder / f"request-{len(self.texts)}.http"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(attack.data)
            lines.append(f"{attack.user.name}: {curl(attack.data, path)}")
        self.texts[kind] = "\n".join(lines)


def _without_particulars(fact: str) -> str:
    """Return what is common to failures of a kind: no names, numbers and quoted texts."""
    text = fact.split("File ")[-1] if "Traceback" in fact else fact
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`', "", text[:600])
    return re.sub(r"[0-9a-f]*\d[0-9a-f]*|[^\w /.:]", "", text)[:120]


def curl(data: bytes, stored: Path) -> str:
    """Return a request as a command line; the whole is in a file."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    words = [
        "curl",
        "-k",
        "--http1.1",
        "--path-as-is",
        "-X",
        method,
        f"$SERVER{rest.rpartition(' ')[0]}",
    ]
    for line in lines:
        if line.startswith("Authorization"):
            words += ["-H", "Authorization: Bearer $TOKEN"]
        elif not line.startswith(("Host:", "Content-Length:")):
            words += ["-H", line[:200]]
    if body:
        words += ["--data-binary", body.decode("latin-1")]
    text = " ".join(map(shlex.quote, words))
    return f"{text[:SHOWN]}{'…' if len(text) > SHOWN else ''}  # whole: {stored}"


class AnswerLaws:
    """Checks answers."""

    def __init__(self, canaries: Canaries, findings: Findings) -> None:
        self._canaries, self._findings = canaries, findings
        self._foreign: dict[str, tuple[bytes, ...]] = {}

    def check(self, attack: Attack, reply: Reply) -> None:
        """Check an answer."""
        note = self._findings.note
        body = reply.body
        if reply.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if reply.status >= 500 and not _is_due(attack, reply.status, body):
            note("5xx", f"{reply.status} {body[:SHOWN].decode(errors='replace')}", attack)
        self.check_bytes(attack, body)
        if attack.method != "HEAD" and reply.headers.get("content-type", "").startswith(
            "application/json"
        ):
            self._check_json(attack, reply.status, body)
        if 200 <= reply.status < 300 and attack.kind is not None and attack.method in SUCCESSES:
            kind, namespace = attack.kind, attack.namespace
            if not attack.user.may(kind.plural, namespace):
                text = f"{attack.user.name} {attack.method} {kind.plural} in {namespace!r}"
                note(
                    "rights",
                    f"{text}: {reply.status} {body[:SHOWN].decode(errors='replace')}",
                    attack,
                )

    def check_bytes(self, attack: Attack, body: bytes) -> None:
        """Check what an answer may not have, also one that goes on."""
        if MARK in body or b"enE3" in body:  # or the marker as in base64
            foreign = self._foreign.get(attack.user.name)
            if foreign is None:
                foreign = self._foreign[attack.user.name] = self._canaries.foreign_to(attack.user)
            for mark in foreign:
                if mark in body:
                    at = body.find(mark)
                    shown = body[max(at - 300, 0) : at + 100].decode(errors="replace")
                    self._findings.note("leak", f"to {attack.user.name}: {shown}", attack)
        if found := python_text(body):
            self._findings.note("Python", found.decode(errors="replace"), attack)

    def _check_json(self, attack: Attack, status: int, body: bytes) -> None:
        try:
            tree = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._findings.note("JSON", f"{status} {error}: {body[:300]!r}", attack)
            return
        if status < 400:
            return
        is_status = isinstance(tree, dict) and tree.get("kind") == "Status"
        if not is_status or tree.get("code") != status or not tree.get("message"):
            self._findings.note("Status", f"{status} {body[:300]!r}", attack)


def _is_due(attack: Attack, status: int, body: bytes) -> bool:
    """Return whether a server error is as it must be."""
    if status == HTTPStatus.GATEWAY_TIMEOUT:
        return (
            attack.method == "HEAD" or b"Too large resource version" in body or b"Timeout" in body
        )
    if attack.shape == "stream" or attack.path.endswith(("/log", "/exec", "/attach", "/proxy")):
        return any(text in body for text in OF_NODES)
    return False
