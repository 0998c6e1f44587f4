"""Stale explanations: those that name what is gone, and the pods that need another one.

    explained ──► index: words of the explanation ─► explanation ─► pods
                                  ▲
    an object is gone, or has ────┘ its pods ──► stale, until they are explained anew
    nothing more to give                           ▲
    a pod is not tried any more, as its claim is gone

Pods of one kind get the same answer, so only one of them is tried when something changes (see
`scheduling_queue`); the others keep what was said of them. That may be out of date, and once it
names what nobody finds any more, it misleads. The index is by words, as a name is a word: a pod can
be explained anew for no reason, and then nothing changes; none is forgotten. Its size is that of
the explanations that differ, and what is gone costs by the pods whose explanation names it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import NamedTuple

DUE_S = 2.0  # until then pods are tried first: that often gives them another explanation, too
AGAIN_S = 1.0  # before a pod is explained anew for which there was no time
GIVE_UP_S = 5.0  # then it is left without an explanation

_words = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?").findall


def names_in(text: str) -> frozenset[str]:
    """Return the words of a text that may be names of objects, each without its namespace."""
    return frozenset(_words(text))


class Stale(NamedTuple):
    """A pod with a stale explanation."""

    key: str
    since_s: float

    def is_given_up(self, now_s: float) -> bool:
        """Return whether the pod has waited long enough for another explanation."""
        return now_s - self.since_s >= GIVE_UP_S


class StaleExplanations:
    """Which pods need another explanation."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # by pod
        self._pods: dict[str, dict[str, None]] = {}  # by explanation; who came first is first
        self._naming: dict[str, dict[str, None]] = {}  # explanations, by word
        self._stale: OrderedDict[str, tuple[float, float]] = OrderedDict()  # since, and not before

    def put(self, key: str, text: str) -> None:
        """Record that this is said of a pod now."""
        self.discard(key)
        if not text:
            return
        self._texts[key] = text
        if text not in self._pods:
            self._pods[text] = {}
            for word in names_in(text):
                self._naming.setdefault(word, {})[text] = None
        self._pods[text][key] = None

    def discard(self, key: str) -> None:
        """Forget a pod."""
        self._stale.pop(key, None)
        text = self._texts.pop(key, None)
        if text is None:
            return
        pods = self._pods[text]
        del pods[key]
        if pods:
            return
        del self._pods[text]
        for word in names_in(text):
            naming = self._naming[word]
            del naming[text]
            if not naming:
                del self._naming[word]

    def vanish(self, name: str, now_s: float) -> None:
        """Record that an object of this name is gone, or has nothing more to give."""
        for text in self._naming.get(name, ()):
            for key in self._pods[text]:
                self.mark(key, now_s)

    def mark(self, key: str, now_s: float) -> None:
        """Record that what was said of a pod, if anything, is of another time."""
        if key in self._texts:
            self._stale.setdefault(key, (now_s, now_s))

    def postpone(self, key: str, now_s: float) -> None:
        """Record that there was no time for a pod."""
        since_s, _ = self._stale.pop(key, (now_s, now_s))
        self._stale[key] = (since_s, now_s + AGAIN_S)

    def first(self, now_s: float) -> Stale | None:
        """Return the pod whose turn it is, if there is one."""
        for key, (since_s, from_s) in self._stale.items():
            return Stale(key, since_s) if from_s <= now_s else None
        return None

    def is_due(self, now_s: float) -> bool:
        """Return whether a pod has waited so long that nothing else comes before it."""
        found = self.first(now_s)
        return found is not None and now_s - found.since_s >= DUE_S

    def next_s(self) -> float | None:
        """Return when it is the turn of the next pod."""
        return next((from_s for _, from_s in self._stale.values()), None)
