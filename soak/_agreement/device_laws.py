"""Laws about devices and claims: who has what, and what is free, in every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from soak._agreement.doors import Doors
from soak._agreement.words import (
    FREE,
    SEVERAL,
    STATES,
    causes_differ,
    device_of,
    differ,
    entries_of,
    holdings_of,
    name_of,
    nodes_differ,
    place_of,
    uncounted,
)


def claims_hold_devices(doors: Doors) -> Iterator[str]:
    """Each device that `claims` says a claim has is one that `devices` says the claim has."""
    held = {
        (device_of(device), (claim["namespace"], claim["name"]), bool(device.get("adminAccess")))
        for claim in doors.claims
        for device in claim["devices"]
    }
    holds = {
        (device_of(device), (holder["namespace"], holder["claim"]), is_admin)
        for device in doors.devices
        for is_admin, field in ((False, "holders"), (True, "admins"))
        for holder in device.get(field, ())
    }
    yield from differ("holdings", held, holds, "claims", "devices")
    missing = {device_of(each) for each in doors.devices if each["state"] == "missing"}
    unpublished = {
        device_of(device)
        for claim in doors.claims
        for device in claim["devices"]
        if not device["published"]
    }
    yield from differ("not published", unpublished, missing, "claims", "devices")
    for claim in doors.claims:
        if bool(claim["devices"]) and claim["state"] == "pending":
            yield f"{claim['name']} is pending and has devices"
        if claim["consumers"] and claim["state"] not in ("reserved", "deleting"):
            yield f"{claim['name']} is {claim['state']} and has consumers"
    for device in doors.devices:
        is_held, state = bool(device["holders"]), device["state"]
        if is_held and state in (FREE, "blocked"):
            yield f"{device_of(device)} is {state} and has holders"
        if not is_held and state in ("taken", "shared", "missing") and not device.get("admins"):
            yield f"{device_of(device)} is {state} and has no holders"
        if device["open"] and state not in (FREE, "shared"):
            yield f"{device_of(device)} is open and {state}"


def counts_are_rows(doors: Doors) -> Iterator[str]:
    """`devices --summary`, `devices`, and `metrics` count the same devices in each state."""
    rows = Counter((place_of(each), each["driver"], each["state"]) for each in doors.devices)
    summary = doors.ask("devices", "--summary").tree["summary"]
    counted: Counter[tuple[str, str, str]] = Counter()
    for each in summary:
        place = each["node"] if each["node"].startswith("node-") else SEVERAL
        for state in STATES:
            counted[place, each["driver"], state] += each[state]
    yield from uncounted("devices", +rows, +counted, "rows", "--summary")
    for each in summary:
        if each["total"] != sum(each[state] for state in STATES if state != "missing"):
            yield f"the total of {each} is not the sum of its states"
    library = doors.library.devices().to_dict()["summary"]
    for state in STATES:
        total = sum(n for (_, _, found), n in rows.items() if found == state)
        if library.get(state, 0) != total:
            yield f"{state}: {total} rows, the library counts {library.get(state, 0)}"
    measured: Counter[tuple[str, str]] = Counter()
    for labels, number in doors.metrics.get("moorage_devices", Counter()).items():
        named = dict(labels)
        measured[named["driver"], named["state"]] += number
    by_driver: Counter[tuple[str, str]] = Counter()
    for (_, driver, state), number in rows.items():
        by_driver[driver, state] += number
    yield from uncounted("devices", +by_driver, +measured, "devices", "metrics")


def metrics_count_claims_and_pods(doors: Doors) -> Iterator[str]:
    """`metrics` counts the claims of `claims`, and the pods that `plan --all` says are waiting."""
    states = Counter(each["state"] for each in doors.claims)
    counted = Counter(
        {
            dict(labels)["state"]: number
            for labels, number in doors.metrics.get("moorage_claims", Counter()).items()
        }
    )
    made_later = {  # a plan creates the claims of templates, a server has them later
        state: counted[state] - states[state] for state in {*states, *counted}
    }
    for state, more in made_later.items():
        if more:
            yield f"claims that are {state}: {states[state]} rows, metrics {counted[state]}"
    waiting = doors.whole_plan.tree["pods"]
    pods: Counter[tuple[str, bool]] = Counter(
        (each["pod"].partition("/")[0], bool(each.get("node"))) for each in waiting
    )
    measured: Counter[tuple[str, bool]] = Counter()
    for labels, number in doors.metrics.get("moorage_pending_pods", Counter()).items():
        named = dict(labels)
        measured[named["namespace"], named["cause"] == "fits-now"] += number
    yield from uncounted("waiting pods (placed)", +pods, +measured, "plan --all", "metrics")


def recorded_page_shows_devices(doors: Doors) -> Iterator[str]:
    """The page of `moor snapshot --html` shows the devices, claims and nodes as commands do."""
    page = doors.recorded_page
    rows = {device_of(each): each for each in doors.devices}
    yield from differ("devices", set(rows), set(page.devices), "devices", "page")
    for key in rows.keys() & page.devices.keys():
        wanted, state = rows[key]["state"], page.devices[key].state
        if state != wanted and (wanted, state) != ("blocked", "shared"):
            yield f"{key}: devices says {wanted}, the page {state}"
    claims = {(each["namespace"], each["name"]) for each in doors.claims}
    waiting = {name[1] for name, pod in page.pods.items() if pod.cause is not None}
    shown = {  # The page also has the claims that pods which wait would get from their templates.
        name
        for name in page.claims
        if name in claims or not any(name[1].startswith(f"{pod}-") for pod in waiting)
    }
    yield from differ("claims", claims, shown, "claims", "page")
    yield from differ("holdings", holdings_of(doors.claims), set(page.holdings), "claims", "page")
    yield from nodes_differ(doors, page)


def recorded_page_shows_pods(doors: Doors) -> Iterator[str]:
    """The page of `moor snapshot --html` lists the pods that wait, with the causes of `explain`."""
    page = doors.recorded_page
    waiting = {name for name, pod in page.pods.items() if pod.cause is not None}
    named = {name_of(each["pod"]) for each in doors.whole_plan.tree["pods"]}
    yield from differ("waiting pods", named, waiting, "plan --all", "page")
    for answer in doors.explanation.tree["pending"]:
        shown = page.explained.get(answer["pod"])
        if shown is not None and not answer["standsFor"]:
            texts = [each["text"] for each in answer["fixes"]]
            said = [each["text"] for each in shown["fixes"]]
            # The page writes what a fix costs behind its text.
            is_alike = all(map(str.startswith, said, texts)) and len(said) == len(texts)
            if shown["cause"] != answer["cause"] or not is_alike:
                yield f"{answer['pod']}: explain {texts}, page {shown['cause']!r} {said}"
    yield from causes_differ(doors, page)


def shown_page_is_the_plan(doors: Doors) -> Iterator[str]:
    """The page of `moor ui -f` shows the pods where `plan` puts them, and the same causes."""
    page = doors.shown_page
    for each in doors.whole_plan.tree["pods"]:
        shown = page.pods.get(name_of(each["pod"]))
        where = "" if shown is None else shown.node
        uses = bool(each.get("requests"))
        if where != each.get("node", "") and (uses or not each.get("node")):
            yield f"{each['pod']}: plan {each.get('node')}, page {where!r}"
        for granted in each.get("requests", ()):
            for device in granted["devices"]:
                held = (device_of(device), (name_of(each["pod"])[0], granted["claim"]))
                if held not in page.holdings:
                    yield f"{held}: planned for {each['pod']}, not on the page"
    yield from causes_differ(doors, page)


def metrics_count_room_as_fit(doors: Doors) -> Iterator[str]:
    """`metrics` counts as many more claims of a shape as `fit` of its template, on what is left."""
    waiting = {
        entry.get("resourceClaimTemplateName")
        for each in (*doors.world.cluster, *doors.world.manifests)
        for entry in entries_of(each)
    }
    for labels, number in doors.metrics.get("moorage_shape_claims", Counter()).items():
        space, _, name = dict(labels)["shape"].partition("/")
        if name not in waiting:
            yield f"{name} is a shape, and no pod uses it"
            continue
        found = doors.ask("fit", f"template/{name}", "-n", space, "--max", "1000").tree
        if found["total"] != number:
            yield f"template {name}: metrics {number}, fit {found['total']}"
        free = {each["request"]: each["free"] for each in found["supplies"] if each["isCountable"]}
        measured = {
            dict(key)["request"]: count
            for key, count in doors.metrics.get("moorage_shape_free_devices", Counter()).items()
            if dict(key)["shape"] == f"{space}/{name}"
        }
        if free != measured:
            yield f"free devices for template {name}: metrics {measured}, fit {free}"
