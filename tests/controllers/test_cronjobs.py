"""Jobs are made when their time comes, and no more than the policies allow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.batch import CronJob, Job, JobCondition
from moorage.client.writes import Update
from moorage.controllers.cronjobs import CronJobController
from moorage.kit.cron_schedule import CronError, find_zone, parse_schedule
from tests.controllers.things import NOW, World, template, thing


def cron_job(schedule: str = "*/10 * * * *", **spec: Any) -> Any:
    body = {
        "schedule": schedule,
        "concurrencyPolicy": "Allow",
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": {"template": template("report")}},
        **spec,
    }
    metadata = {"creationTimestamp": str(NOW)}
    return thing("batch/v1", "CronJob", "report", spec=body, metadata=metadata)


def world_of(**spec: Any) -> World:
    world = World(CronJobController())
    world.put(cron_job(**spec))
    return world


def names(world: World) -> list[str]:
    return [job.metadata.name for job in world.all(Job)]


def end(world: World, name: str, condition: str = "Complete") -> None:
    job = world.get(Job, name)
    done = JobCondition(type=condition, status="True", last_transition_time=world.model.now)
    ended = world.model.now if condition == "Complete" else None
    status = replace(
        job.status, conditions=(done,), start_time=world.model.now, completion_time=ended
    )
    world.model.write(Update(replace(job, status=status), "status"))
    world.settle()


def minutes(offset: int) -> int:
    return int(NOW.instant.timestamp()) // 60 + offset


def test_a_job_is_made_at_each_time_with_its_name_and_its_owner() -> None:
    world = world_of()
    assert names(world) == []
    world.advance(601)
    assert names(world) == [f"report-{minutes(10)}"]
    job = world.all(Job)[0]
    assert job.metadata.owner_references[0].kind == "CronJob"
    stamp = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp == "2026-01-01T00:10:00Z"
    status = world.get(CronJob, "report").status
    assert [each.name for each in status.active] == names(world)
    assert status.last_schedule_time.instant == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    world.advance(600)
    assert len(names(world)) == 2
    assert world.told("SuccessfulCreate")[0] == f"Created job report-{minutes(10)}"


def test_a_job_that_ended_leaves_the_active_ones() -> None:
    world = world_of()
    world.advance(601)
    end(world, names(world)[0])
    status = world.get(CronJob, "report").status
    assert status.active == ()
    assert status.last_successful_time == world.model.now
    assert world.told("SawCompletedJob")


def test_forbid_makes_no_job_while_one_runs_and_replace_deletes_it() -> None:
    world = world_of(concurrencyPolicy="Forbid")
    world.advance(1300)
    assert names(world) == [f"report-{minutes(10)}"]
    assert world.told("JobAlreadyActive")
    end(world, names(world)[0])
    assert names(world) == [f"report-{minutes(10)}", f"report-{minutes(20)}"]
    world = world_of(concurrencyPolicy="Replace")
    world.advance(1300)
    assert names(world) == [f"report-{minutes(20)}"]


def test_old_jobs_are_deleted_beyond_the_limits() -> None:
    world = world_of(successfulJobsHistoryLimit=1)
    for _ in range(3):
        world.advance(601)
        end(world, names(world)[-1])
    assert len(names(world)) == 1


def test_a_suspended_cron_job_makes_none_and_a_missed_deadline_is_told() -> None:
    world = world_of(suspend=True)
    world.advance(4000)
    assert names(world) == []
    world = world_of(suspend=True, startingDeadlineSeconds=30)
    world.advance(650)
    world.change(world.get(CronJob, "report"), suspend=False)
    assert names(world) == []
    world.advance(600)
    assert names(world) == [f"report-{minutes(20)}"]


def test_of_many_missed_times_only_the_last_gets_a_job() -> None:
    world = world_of(schedule="* * * * *", suspend=True)
    world.advance(86_400)
    world.change(world.get(CronJob, "report"), suspend=False)
    assert names(world) == [f"report-{minutes(1440)}"]
    assert world.told("TooManyMissedTimes")


# --- schedules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("30 2 * * *", "2026-01-01T03:00:00", "2026-01-02T02:30:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 12 13 * fri", "2026-02-13T12:00:00", "2026-02-20T12:00:00"),
        ("0 0 */2 * mon", "2026-01-01T00:00:00", "2026-01-03T00:00:00"),
        ("*/15 9-17 * jan-mar mon-fri", "2026-01-02T17:45:00", "2026-01-05T09:00:00"),
        ("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@every 1h30m", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
        ("@every 1.5h500ms", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
        ("@every 1ms", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        ("@every -1h", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        ("*/99999999999 * * * *", "2026-01-01T00:00:00", "2026-01-01T01:00:00"),
    ],
)
def test_the_next_time_of_a_schedule(text: str, after: str, expected: str) -> None:
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = parse_schedule(text).next(start)
    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_time_that_the_clock_skips_is_skipped_and_one_shown_twice_comes_twice() -> None:
    zone = find_zone("Europe/Berlin")
    schedule = parse_schedule("30 2 * * *")
    spring = schedule.next(datetime(2026, 3, 28, 12, tzinfo=UTC), zone)
    assert spring == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    first = schedule.next(datetime(2026, 10, 24, 12, tzinfo=UTC), zone)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert first is not None
    assert schedule.next(first, zone) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            "*/9223372036854775808 * * * *",
            (
                "failed to parse int from 9223372036854775808: strconv.Atoi: "
                'parsing "9223372036854775808": value out of range'
            ),
        ),
        (
            "@every 5x",
            'failed to parse duration @every 5x: time: unknown unit "x" in duration "5x"',
        ),
        ("@often", "unrecognized descriptor: @often"),
    ],
)
def test_a_schedule_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_schedule(text)
    assert str(caught.value) == words


def test_a_schedule_that_never_comes_has_no_next_time() -> None:
    assert parse_schedule("0 0 30 2 *").next(NOW.instant) is None
