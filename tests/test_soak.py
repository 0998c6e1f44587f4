"""A sample of the campaigns, and the laws of running them."""

from __future__ import annotations

import base64
import gc
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.api.catalogue import SERVED
from moorage.api.codec import encode_json
from moorage.api.documents import read
from moorage.api.errors import DocumentError
from moorage.api.gates import Gates
from moorage.client.writes import Create, Patch, Target
from moorage.insight.answer.changes.edits import Edit, ObjectChange
from moorage.insight.answer.finding import Answer, Fix, FixRank
from moorage.kit.clock import ManualClock
from moorage.validation.manifests import ManifestValidator
from moorage.validation.strategy import Context
from soak import (
    Plan,
    agreement,
    allocator,
    cel,
    disk,
    extension_fuzz,
    fixes,
    hostile,
    http_fuzz,
    live,
    livescheduler,
    node,
    questions,
    reading,
    scheduler,
    server_crash,
    server_watch,
    stall,
    store_crash,
    store_watch,
    weeks,
)
from soak.__main__ import campaigns, main
from soak._agreement.doors import Answer as PrintedAnswer
from soak._agreement.doors import Doors
from soak._agreement.laws import LAWS, statement_of
from soak._agreement.pod_laws import placed_or_pending
from soak._definitions import KINDS as CUSTOM_KINDS
from soak._definitions import definition
from soak._disk.cluster_case import ConfigMapWriter, NoMountError
from soak._fixes.mistakes import TEAM, random_world
from soak._fixes.trial import BrokenLawError as FixLawError
from soak._fixes.trial import Trial
from soak._hostile.answers import AnswerLaws, Findings
from soak._hostile.bodies import Bodies
from soak._hostile.grammar import Grammar
from soak._hostile.objects import KINDS as HOSTILE_KINDS
from soak._hostile.requests import Attack, Requests
from soak._hostile.site import HostileSite
from soak._hostile.users import STATIC, Canaries, User, users_of
from soak._hostile.values import Lexicon
from soak._http import Reply
from soak._live.actions import Action
from soak._live.history import USED, shrink
from soak._live.server import Server as LiveServer
from soak._node.laws import BrokenLawError, held
from soak._node.programs import Site
from soak._policies import policies
from soak._servers import Server
from soak._weeks.growth import Growths
from tests.allocator.problems import FAMILIES
from tests.corpus import corpus
from tests.scheduler.makers import pod
from tests.scheduler.scenes import group

SEED = 6


def hostile_users() -> tuple[User, ...]:
    return users_of({name: name for name in STATIC}, "account", "bootstrap")


def hostile_requests() -> Requests:
    return Requests(Bodies(Grammar(Lexicon("/x/1/outside", "/x/free"))), hostile_users())


CASES = 400
NOTHING = ObjectChange("Pod", TEAM, "train", (Edit(("metadata", "labels", "a"), "b"),))

NAMES = (
    *("agreement", "allocator", "cel", "disk", "expensive-pods", "extension-fuzz"),
    *("fixes", "hostile", "http-fuzz"),
    *("live", "livescheduler"),
    "node",
    "questions",
    "reading",
    "scheduler",
    *("server-crash", "server-watch", "stall", "store-crash", "store-watch", "weeks"),
)


@pytest.fixture(autouse=True)
def _complains_of_its_own() -> Iterator[None]:
    """Let a connection that a campaign leaves open fail its own test, not a later one."""
    yield
    gc.collect()


@pytest.mark.sweep
def test_damaged_objects_and_bytes_give_declared_errors_only() -> None:
    outcome = reading.run(Plan(SEED, cases=CASES))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES)
    # A sample that only ever meets one end proves little.
    for figure in ("objects accepted", "objects refused", "unreadable"):
        assert int(outcome.figures[figure]) > CASES // 20, figure


@pytest.mark.sweep
def test_no_answer_about_a_random_world_contradicts_another() -> None:
    outcome = agreement.run(Plan(SEED, cases=10))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == "10"
    # Laws about pods that nobody waits for, or devices that nobody has, prove little.
    for figure in ("pods placed", "pods pending", "claims with devices", "changes offered"):
        assert int(outcome.figures[figure].replace(",", "")) > 0, figure


def test_a_random_world_is_decided_by_seed_and_number() -> None:
    made = [agreement.make_case(SEED, number).world for number in (7, 7, 8)]
    assert made[0] == made[1] != made[2]


class DoctoredDoors(Doors):
    """A world in which `plan` denies a node to every pod."""

    @property
    def plan(self) -> PrintedAnswer:
        found = super().plan
        tree = found.tree
        for each in tree["pods"]:
            each.pop("node", None)
        return found._replace(text=json.dumps(tree))


def test_answers_that_contradict_each_other_are_found(tmp_path: Path) -> None:
    worlds = (Doors(agreement.make_case(SEED, n).world, tmp_path) for n in range(10))
    honest = next(each for each in worlds if each.plan.tree["summary"]["placed"])
    assert list(placed_or_pending(honest)) == []
    faults = list(placed_or_pending(DoctoredDoors(honest.world, tmp_path)))
    assert [each.partition(":")[0] for each in faults[:2]] == ["placed", "pending"]
    assert "only explain: pod " in faults[0]


def test_the_laws_of_answers_are_documented() -> None:
    page = Path(__file__).parents[1] / "docs" / "explanation" / "agreement.md"
    listed = [line[2:] for line in page.read_text("utf-8").split("## Laws")[1].splitlines()]
    assert [statement_of(law) for law in LAWS if statement_of(law) not in listed] == []


@pytest.mark.sweep
def test_random_expressions_give_values_and_errors_only() -> None:
    outcome = cel.run(Plan(SEED, cases=CASES))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES)
    for figure in ("do not compile", "evaluations with a value", "evaluations with an error"):
        assert int(outcome.figures[figure].replace(",", "")) > CASES // 20, figure
    assert int(outcome.figures["of all, by generated code"].replace(",", "")) > CASES // 20


@pytest.mark.sweep
def test_the_allocator_answers_random_problems_as_the_plain_one_does() -> None:
    outcome = allocator.run(Plan(SEED, cases=CASES // 2))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES // 2)
    for family in FAMILIES:
        assert "allocated" in outcome.figures[family], family
        assert "none" in outcome.figures[family], family


def test_a_case_of_allocation_is_decided_by_seed_and_number() -> None:
    assert allocator.make_case(SEED, 7) == allocator.make_case(SEED, 7)
    assert allocator.make_case(SEED, 7) != allocator.make_case(SEED, 11)


@pytest.mark.sweep
def test_fixes_of_recorded_cases_are_valid_and_place_the_pod() -> None:
    corpus("allocator")
    _try_fixes(range(0, len(fixes.recorded_worlds()), 150))


@pytest.mark.sweep
def test_fixes_of_random_mistakes_are_valid_and_place_the_pod() -> None:
    first = len(fixes.recorded_worlds())
    _try_fixes(range(first, first + 20))


def _try_fixes(numbers: range) -> None:
    counts: Counter[str] = Counter()
    for number in numbers:
        fixes.make_case(SEED, number, counts).outcomes()
    assert counts["changes offered"] > len(numbers) // 10
    assert counts["pods with advice only"] > len(numbers) // 10


def test_a_fix_that_does_not_help_is_found() -> None:
    counts: Counter[str] = Counter()
    tried = Trial(random_world(f"{SEED}/1"), counts)
    with pytest.raises(FixLawError, match="nothing changes") as found:
        tried.run(lambda *_: Answer("a cause", (Fix("nothing changes", FixRank.LESS, (NOTHING,)),)))
    assert found.value.kind == "pod not placed"
    with pytest.raises(FixLawError, match="no cause"):
        tried.run(lambda *_: Answer("no cause"))
    assert (counts["changes offered"], counts["no fix and no advice"]) == (1, 1)


def test_a_case_of_fixes_is_decided_by_its_seed() -> None:
    made = [random_world(seed).manifests for seed in ("1/1", "1/1", "1/2")]
    assert made[0] == made[1] != made[2]


@pytest.mark.sweep
def test_clusters_with_a_history_answer_as_clusters_made_anew() -> None:
    outcome = scheduler.run(Plan(SEED, cases=CASES // 40))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES // 40)
    figures = ("pods that fit", "pods that do not", "victims found", "reservations", "releases")
    for figure in figures:
        assert int(outcome.figures[figure].replace(",", "")) > 0, figure


def test_a_history_is_decided_by_seed_and_number() -> None:
    assert scheduler.make_case(SEED, 7) == scheduler.make_case(SEED, 7)
    assert scheduler.make_case(SEED, 7) != scheduler.make_case(SEED, 8)


@pytest.mark.sweep
def test_a_live_scheduler_places_every_pod_that_fits() -> None:
    outcome = livescheduler.run(Plan(SEED, cases=CASES // 20))
    assert outcome.faults == ()
    for figure in ("pods on nodes, at rest", "pods that wait, at rest", "writes", "restarts"):
        assert int(outcome.figures[figure].replace(",", "")) > 0, figure


@pytest.mark.sweep
def test_a_control_plane_gives_nothing_twice_and_leaks_nothing() -> None:
    outcome = live.run(Plan(SEED, cases=CASES // 16))
    assert outcome.faults == ()
    figures = (
        *("writes", "crashes", "lost answers", "watches cut off", "pods on nodes, at rest"),
        *("devices that got ready", "claims refused by quota"),
    )
    for figure in figures:
        assert int(outcome.figures[figure].replace(",", "")) > 0, figure


def test_a_history_of_a_control_plane_is_decided_by_seed_and_number() -> None:
    cases = [live.make_case(SEED, 3) for _ in range(2)]
    assert cases[0].outcomes() == cases[1].outcomes()
    assert str(live.make_case(SEED, live.EMBEDDED_EVERY - 1)).endswith("on the real server")


@pytest.mark.parametrize("value", [pod("p"), group("gang")], ids=lambda each: each.kind)
def test_what_is_only_said_of_an_object_moves_nothing(value: Any) -> None:
    server = LiveServer(Random(SEED), ManualClock(), USED)
    target = Target.of(server.write(Create(value)))
    moved = server.moved
    condition = {"type": "Waits", "status": "True", "reason": "Quota", "message": "exceeded"}
    server.write(Patch(target, {"status": {"conditions": [condition]}}, "status"))
    assert (server.model.revision, server.moved) == (2, moved)
    server.write(Patch(target, {"metadata": {"labels": {"a": "b"}}}))
    assert server.moved == server.model.revision == 3


def test_a_broken_history_is_shrunk_to_a_short_story() -> None:
    actions = [Action("nothing", number, 0) for number in range(20)]
    culprits = {actions[3], actions[17]}
    story = shrink(actions, culprits.issubset)
    assert set(story) == culprits


@pytest.mark.sweep
def test_a_killed_writer_loses_nothing_that_was_answered() -> None:
    outcome = store_crash.run(Plan(SEED, cases=2), rounds=4)
    assert outcome.faults == ()
    assert outcome.figures["kills"] == "8"
    assert int(outcome.figures["answered writes"].replace(",", "")) > 0


@pytest.mark.sweep
def test_a_store_on_a_failing_disk_loses_nothing_that_was_answered() -> None:
    outcome = disk.run(Plan(SEED, cases=4), rounds=3)
    assert outcome.faults == ()
    assert int(outcome.figures["files: faults of the disk"].replace(",", "")) > 0
    if not any(name.startswith("skipped: store") for name in outcome.figures):
        for figure in ("answered writes", "faults of the disk", "losses of power"):
            assert int(outcome.figures[f"store: {figure}"].replace(",", "")) > 0, figure


@pytest.mark.sweep
def test_a_cluster_outlives_a_full_disk() -> None:
    outcome = disk.run(Plan(SEED, cases=1, first=disk.CLUSTER_EVERY - 1), cycles=2)
    assert outcome.faults == ()
    if not any(name.startswith("skipped: cluster") for name in outcome.figures):
        assert outcome.figures["cluster: pods that ran"] == "3"


def test_a_case_that_is_impossible_here_is_counted_as_skipped() -> None:
    class Impossible:
        def outcomes(self) -> Counter[str]:
            raise NoMountError("Operation not permitted")

    found = disk.DiskCase("cluster", Impossible()).outcomes()
    assert found == {"skipped: cluster: Operation not permitted": 1}


def test_broken_laws_of_the_disk_are_seen() -> None:
    writer = ConfigMapWriter("w", Random(1), number=7, answered=5, unknown={6})
    writer.check({"data": {"n": "6"}})
    with pytest.raises(AssertionError, match=r"w: holds 7, possible: \[5, 6\]"):
        writer.check({"data": {"n": "7"}})
    with pytest.raises(AssertionError, match="holds 0"):
        writer.check(None)


@pytest.mark.sweep
def test_watchers_of_a_store_that_is_compacted_and_restarted_miss_nothing() -> None:
    size = store_watch.Size(watchers=40, writers=8, writes=2000, compactions=5, restarts=2)
    outcome = store_watch.run(Plan(SEED, cases=1), size)
    assert outcome.faults == ()
    assert outcome.figures["writes"] == "2,000"
    assert outcome.figures["restarts"] == "2"
    assert outcome.figures["watches resumed after a restart"]


@pytest.mark.sweep
def test_a_killed_server_loses_nothing_that_was_answered() -> None:
    outcome = server_crash.run(Plan(SEED, cases=1), rounds=2)
    assert outcome.faults == ()
    assert outcome.figures["kills"] == "2"
    assert int(outcome.figures["answered writes"].replace(",", "")) > 0


@pytest.mark.sweep
def test_a_node_whose_programs_are_killed_gives_nothing_twice_and_leaks_nothing() -> None:
    outcome = node.run(Plan(SEED, cases=1), rounds=2)
    assert outcome.faults == ()
    assert outcome.figures["kills"] == "2"
    assert outcome.figures["damaged checkpoints refused"] == "2"
    assert int(outcome.figures["pods"]) > 0


def test_a_device_with_two_owners_is_seen_in_a_journal(tmp_path: Path) -> None:
    site = Site(tmp_path)
    journal = site.journal("lamp.example.com")
    journal.write_text("prepare a lamp-1\nprepare a lamp-1\nunprepare a\nprepare b lamp-1\n")
    assert held(site, "lamp.example.com") == {"lamp-1": "b"}
    with journal.open("a") as file:
        file.write("prepare c lamp-1\n")
    with pytest.raises(BrokenLawError, match="lamp-1 of b prepared for c"):
        held(site, "lamp.example.com")


@pytest.mark.sweep
def test_watchers_of_a_server_that_is_compacted_and_killed_miss_nothing() -> None:
    size = server_watch.Size(watchers=24, writers=8, writes=320, kills=1, kept_s=1.0)
    outcome = server_watch.run(Plan(SEED, cases=1), size)
    assert outcome.faults == ()
    assert outcome.figures["kills"] == "1"
    assert int(outcome.figures["writes"].replace(",", "")) >= 320
    assert int(outcome.figures["events told"].replace(",", "")) > 320


@pytest.mark.sweep
def test_random_requests_are_answered_and_refused_ones_change_nothing() -> None:
    outcome = http_fuzz.run(Plan(SEED, cases=CASES // 2))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES // 2)
    for figure in ("answers 2xx", "answers 4xx", "refused writes that changed nothing"):
        assert int(outcome.figures[figure]) > CASES // 40, figure


@pytest.mark.sweep
def test_custom_resources_whose_definitions_change_are_answered() -> None:
    outcome = extension_fuzz.run(Plan(SEED, cases=CASES * 2))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == str(CASES * 2)
    for figure in ("answers 2xx", "answers 4xx"):
        assert int(outcome.figures[f"fuzz.example.com {figure}"]) > CASES // 40, figure


def test_random_definitions_and_policies_are_mostly_accepted() -> None:
    found = Counter[bool]()
    for number in range(40):
        random = Random(f"{SEED}/{number}")
        for tree in (definition(random, CUSTOM_KINDS[number % 3]), *policies(random)):
            found[is_accepted(tree)] += 1
    assert found[True] > found[False] > 0


def is_accepted(tree: Any) -> bool:
    context = Context(gates=Gates.parse(), now=reading.NOW, extensions=True)
    judge = ManifestValidator(context)
    try:
        verdicts = [judge.validate(each) for each in read(encode_json(tree), source="case")]
    except DocumentError:
        return False
    return all(verdict is not None and verdict.is_accepted for verdict in verdicts)


@pytest.mark.sweep
def test_the_worst_requests_are_answered_while_others_are_served() -> None:
    outcome = stall.run(Plan(SEED, cases=9, first=60))
    assert outcome.faults == ()
    assert outcome.figures["cases"] == "9"
    assert int(outcome.figures["answers 4xx"]) > 0


@pytest.mark.sweep
def test_hostile_questions_leave_no_memory_behind() -> None:
    outcome = questions.run(Plan(SEED, cases=2))
    assert outcome.faults == ()
    assert int(outcome.figures["answers 200"]) > 0
    assert int(outcome.figures["answers 403"]) > 0


def test_a_large_request_is_decided_by_seed_and_number(tmp_path: Path) -> None:
    session = stall.Session(tmp_path)
    made = [stall.make_case(session, SEED, number).worst for number in (60, 60, 61)]
    assert made[0] == made[1] != made[2]


def test_a_request_is_decided_by_seed_and_number() -> None:
    session = http_fuzz.Session(Server(Path("nowhere")))
    made = [http_fuzz.make_case(session, SEED, number).sent for number in (7, 7, 8)]
    assert made[0] == made[1] != made[2]


@pytest.mark.sweep
def test_hostile_users_hurt_nobody_and_see_nothing_of_others() -> None:
    outcome = hostile.run(Plan(SEED, cases=1), hostile.Size(requests=300, kills=1))
    assert outcome.faults == ()
    assert outcome.figures["requests"] == "300"
    for figure in ("answers 2xx", "answers 4xx", "kills", "good pods", "quiet requests"):
        assert int(outcome.figures[figure].replace(",", "")) > 0, figure


def test_a_hostile_request_is_decided_by_seed_and_number() -> None:
    made = []
    for seed in (7, 7, 8):
        requests, random = hostile_requests(), Random(seed)
        made.append([requests.make(random).data for _ in range(1500)])
    assert made[0] == made[1] != made[2]


def test_hostile_requests_are_of_every_user_kind_and_shape() -> None:
    requests, random = hostile_requests(), Random(SEED)
    made = [requests.make(random) for _ in range(4000)]
    assert {each.shape for each in made} == {"whole", "watch", "stream", "odd"}
    assert {each.kind for each in made if each.kind} == set(HOSTILE_KINDS)
    assert {each.user.name for each in made} == {each.name for each in hostile_users()} | {
        "several"
    }


@pytest.mark.parametrize(
    ("law", "status", "body"),
    [
        ("leak", 403, 'pods "{marker}" is forbidden'),
        ("leak", 200, "{encoded}"),
        ("rights", 200, "{{}}"),
        ("5xx", 500, "{{}}"),
        ("Python", 422, "spec: 'NoneType' object has no attribute 'x'"),
        ("JSON", 400, "{{"),
        ("Status", 404, "{{}}"),
    ],
)
def test_an_answer_that_breaks_a_law_is_found(
    tmp_path: Path, law: str, status: int, body: str
) -> None:
    canaries, findings = Canaries(Random(1)), Findings(tmp_path, "again")
    marker = canaries.markers["quiet"]
    encoded = base64.b64encode(marker.encode()).decode()
    text = body.format(marker=marker, encoded=encoded).encode()
    pods = next(kind for kind in SERVED if kind.name == "Pod")
    attack = Attack(
        b"GET / HTTP/1.1\r\n\r\n", hostile_users()[0], "GET", "/", "whole", pods, "quiet"
    )
    reply = Reply(status, {"content-type": "application/json"}, text)
    AnswerLaws(canaries, findings).check(attack, reply)
    assert law in findings.counts
    own = attack._replace(namespace="hostile-a")
    good = Reply(
        200, {"content-type": "application/json"}, canaries.markers["hostile-a"].join('""').encode()
    )
    before = findings.counts.total()
    AnswerLaws(canaries, findings).check(own, good)
    assert findings.counts.total() == before


def test_a_file_that_is_changed_outside_of_the_state_folder_is_found(tmp_path: Path) -> None:
    site = HostileSite(tmp_path, Random(1))
    before = site.surroundings()
    (site.state / "d").mkdir()
    (site.free / "x").write_text("allowed")
    assert site.surroundings() == before
    (site.base / "home" / "x").write_text("not")
    assert site.surroundings().keys() - before.keys() == {str(site.base / "home" / "x")}
    (tmp_path / "canary").write_text("changed")
    assert site.surroundings()[str(tmp_path / "canary")] != before[str(tmp_path / "canary")]


def test_a_log_with_a_traceback_is_found_once(tmp_path: Path) -> None:
    site = HostileSite(tmp_path, Random(1))
    log = site.logs / "node.log"
    log.write_text("good\nTraceback (most recent call last):\n  x\nKeyError: 1\n")
    assert [each.startswith("node.log") for each in site.new_log_faults()] == [True]
    assert list(site.new_log_faults()) == []


@pytest.mark.sweep
def test_nothing_grows_in_a_cluster_through_days_of_churn() -> None:
    size = weeks.Size(windows=6, rounds=1, window_s=0, machines=1)
    outcome = weeks.run(Plan(SEED, cases=1), size)
    assert outcome.faults == ()
    assert outcome.figures["namespaces"] == outcome.figures["times that nodes were gone"] == "6"


@pytest.mark.sweep
def test_no_program_grows_with_the_pods_that_come_and_go() -> None:
    outcome = weeks.run(Plan(SEED, cases=1, first=1), weeks.Size(real_windows=4, real_rounds=1))
    assert outcome.faults == ()
    assert outcome.figures["namespaces"] == "4"
    assert "programs: node descriptors" in outcome.figures


@pytest.mark.parametrize(
    ("samples", "is_found"),
    [
        ((50, 80, 90, 90, 90, 90, 90, 90, 90), False),
        ((50, 80, 90, 90, 90, 300, 90, 90, 90), False),  # once, and gone again
        ((50, 80, 90, 94, 98, 102, 106, 110, 114), True),
        ((90, 90, 90, 80, 70, 60, 50, 40, 30), False),
    ],
    ids=str,
)
def test_a_figure_that_grows_after_it_has_warmed_up_is_found(
    samples: tuple[int, ...], is_found: bool
) -> None:
    growths = Growths()
    for sample in samples:
        growths.add({"server MB": sample, "node threads": 3})
    assert [each.startswith("server MB grew") for each in growths.faults()] == [True] * is_found


def test_every_seed_of_the_expressions_is_one() -> None:
    refused = [seed for seed in cel.SEEDS if cel.is_refused(seed)]
    assert refused == []


def test_a_case_of_expressions_is_decided_by_seed_and_number() -> None:
    assert cel.make_case(SEED, 7) == cel.make_case(SEED, 7)
    assert cel.make_case(SEED, 7) != cel.make_case(SEED, 8)


def test_a_case_is_decided_by_seed_and_number() -> None:
    assert reading.make_case(SEED, 7) == reading.make_case(SEED, 7)
    assert reading.make_case(SEED, 7) != reading.make_case(SEED, 8)
    assert reading.make_case(SEED, 7) != reading.make_case(SEED + 1, 7)


def test_a_broken_law_is_reported_with_the_way_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a law is broken")

    monkeypatch.setattr(reading, "_check_places", fail)
    assert main(["reading", "--seed", "1", "--cases", "20"]) == 1
    output = capsys.readouterr().out
    assert "python3 dev.py soak reading --seed 1 --case " in output
    assert "ZeroDivisionError: a law is broken" in output
    assert output.endswith("faults            1\n")


def test_campaigns_are_listed_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == campaigns() == list(NAMES)


def test_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reading", "--seed", str(SEED), "--case", "3"]) == 0
    output = capsys.readouterr().out
    for figure in ("cases", "accepted", "refused", "unreadable", "seconds", "worst case", "seed"):
        assert figure in output


def test_unknown_campaign_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["raeding"]) == 2
    said = capsys.readouterr().err
    assert said == f"soak: no campaign 'raeding'; there are: {', '.join(NAMES)}\n"


@pytest.mark.parametrize(
    ("plan", "numbers"),
    [
        (Plan(1, cases=3), [0, 1, 2]),
        (Plan(1, cases=1, first=7), [7]),
        (Plan(1, seconds=0), []),
        (Plan(1, cases=0), []),
    ],
    ids=str,
)
def test_plan_says_which_cases_are_run(plan: Plan, numbers: list[int]) -> None:
    assert list(plan.numbers()) == numbers
