"""Controllers with a copy of the objects that is late, one event at a time, under `Running`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from moorage.client.contract import ObjectList
from moorage.client.errors import ClientError
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Apply, Create, Delete, Patch, RecordEvent, Update
from moorage.controllers.controller import Controller, ObjectChange
from moorage.controllers.reconciler import Reconciler
from tests.controllers.model import Model, RefusedError
from tests.controllers.scenes import NOW


def server_error(reason: str, message: str) -> ClientError:
    """Return a refusal as a client raises it."""
    return ClientError(message, reason=reason)


class ModelClient:
    """A client of the server in memory; it may be told to fail."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.failures: deque[Exception] = deque()
        self.gets = 0

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        self.gets += 1
        return self.model.get(struct, namespace, name)

    async def list(self, struct: type[Any], namespace: str = "", **_: Any) -> ObjectList:
        raise NotImplementedError

    def watch(self, struct: type[Any], namespace: str = "", **_: Any) -> Any:
        raise NotImplementedError

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        if self.failures:
            raise self.failures.popleft()
        try:
            return self.model.write(write)
        except RefusedError as error:
            raise server_error(error.refused.reason, error.refused.message) from None


class ListQueue:
    """A queue whose delays end when someone says so."""

    def __init__(self) -> None:
        self.keys: deque[ObjectKey] = deque()
        self.later: list[tuple[ObjectKey, float]] = []
        self.limited: list[ObjectKey] = []
        self.forgotten: list[ObjectKey] = []
        self.finished: list[ObjectKey] = []

    def add(self, key: ObjectKey) -> None:
        if key not in self.keys:
            self.keys.append(key)

    def add_after(self, key: ObjectKey, delay_s: float) -> None:
        if delay_s <= 0:
            self.add(key)
        else:
            self.later.append((key, delay_s))

    def add_rate_limited(self, key: ObjectKey) -> None:
        self.limited.append(key)

    async def get(self) -> ObjectKey:
        while not self.keys:
            await asyncio.sleep(0)
        return self.keys.popleft()

    def done(self, key: ObjectKey) -> None:
        self.finished.append(key)

    def forget(self, key: ObjectKey) -> None:
        self.forgotten.append(key)

    def wake(self) -> None:
        """End all delays."""
        for key in [*(key for key, _ in self.later), *self.limited]:
            self.add(key)
        self.later.clear()
        self.limited.clear()


class Late:
    """Controllers that see changes when `deliver` is called, each kind in order."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self.model = Model(NOW)
        self.model.follow = self.follow
        self.copy = Indexer()
        self.client = ModelClient(self.model)
        self.told: list[RecordEvent] = []
        self._events: dict[type[Any], deque[ObjectChange]] = {}
        self._seen: dict[type[Any], int] = {}
        self.queues = [ListQueue() for _ in controllers]
        self.running = [
            Reconciler(
                controller,
                objects=self.copy,
                client=self.client,
                queue=queue,
                record=self.told.append,
                now=lambda: self.model.now,
                has_seen=self._has_seen,
            )
            for controller, queue in zip(controllers, self.queues, strict=True)
        ]

    def follow(self, change: ObjectChange) -> None:
        """Keep a change for later."""
        self._events.setdefault(type(change.value), deque()).append(change)

    def _has_seen(self, struct: type[Any], revision: str) -> bool:
        return self._seen.get(struct, 0) >= int(revision)

    def deliver(self, struct: type[Any]) -> bool:
        """Let the controllers see the next change of a kind; tell whether there was one."""
        events = self._events.get(struct)
        if not events:
            return False
        change = events.popleft()
        value = change.value
        if change.new is None:
            self.copy.remove(struct, value.metadata.namespace, value.metadata.name)
        else:
            self.copy.put(change.new)
            revision = int(value.metadata.resource_version)
            self._seen[struct] = max(self._seen.get(struct, 0), revision)
        for running in self.running:
            running.changed(change)
        return True

    def work(self, number: int) -> bool:
        """Let a controller handle its next key; tell whether it had one."""
        queue = self.queues[number]
        if not queue.keys:
            return False
        asyncio.run(self.running[number].handle(queue.keys.popleft()))
        return True

    def settle(self) -> None:
        """Let everything be seen and done, until a round changes nothing."""
        for _ in range(1000):
            before = self.model.revision
            for struct in list(self._events):
                while self.deliver(struct):
                    pass
            for queue in self.queues:
                queue.wake()
            for number in range(len(self.queues)):
                while self.work(number):
                    pass
            if self.model.revision == before:
                return
        raise AssertionError("no rest")
