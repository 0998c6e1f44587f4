"""What `moor up` shows on a terminal."""

from __future__ import annotations

from moorage.cli.status import ProgressView, status_lines
from moorage.cluster.overview import Overview
from moorage.cluster.state_folder import ClusterState, ProcessState

OVERVIEW = Overview(1, 1, 0, {"Running": 2}, 6, 2, {"dra.cpu": (1, 1), "dra.net": (1, 5)})


def state(*working: bool) -> ClusterState:
    processes = tuple(ProcessState(f"p{n}", is_working=each) for n, each in enumerate(working))
    return ClusterState(pid=1, began="", processes=processes)


def test_what_stands_below_is_drawn_again_after_a_line() -> None:
    written: list[str] = []
    view = ProgressView(is_terminal=True, write=written.append)
    view.show(["a", "b"])
    view.line("stays")
    assert "".join(written) == "a\nb\n\x1b[2A\x1b[Jstays\na\nb\n"


def test_the_same_is_not_drawn_twice_and_a_file_has_only_lines_that_stay() -> None:
    for is_terminal, expected in ((True, ["a\n"]), (False, [])):
        written: list[str] = []
        view = ProgressView(is_terminal=is_terminal, write=written.append)
        view.show(["a"])
        view.show(["a"])
        assert written == expected


def test_processes_pods_and_devices_are_told() -> None:
    assert status_lines(state(True, True), OVERVIEW)[1:] == [
        "processes  2 of 2 working",
        "nodes      1 of 1 ready",
        "pods       2 running",
        "devices    2 of 6 in use",
        "           dra.cpu 1/1, dra.net 1/5",
    ]


def test_a_process_that_does_not_work_is_named() -> None:
    assert status_lines(state(True, False), None)[1] == "processes  1 of 2 working; p1: starting"
