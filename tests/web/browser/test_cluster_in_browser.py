"""The page of a real cluster, and of a file: the same questions as its users have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.apiserver.programs import NO_KUBECTL, find_kubectl
from tests.web.browser.conftest import Open
from tests.web.browser.driving import wait_for_picture

TRAINING = Path(__file__).parents[3] / "examples" / "training"
Kubectl = Callable[..., str]


def moor(*arguments: str) -> str:
    """Run a command and return what it prints."""
    command = [sys.executable, "-m", "moorage.cli.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, Kubectl]]:
    """Run a cluster of one DGX H100; return a link to its page, and kubectl."""
    place = ("--data-dir", str(tmp_path / "data"))
    program = find_kubectl()
    if program is None:
        pytest.skip(NO_KUBECTL)

    def kubectl(*arguments: str) -> str:
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "data" / "kubeconfig")}
        done = subprocess.run(
            [str(program), *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    moor("up", *place, "--port", "0", "--profile", "dgx-h100", "--detach")
    try:
        kubectl("apply", "-f", str(TRAINING))
        (link,) = re.findall(r"http://\S+", moor("ui", *place))
        yield link, kubectl
    finally:
        moor("down", *place)


def test_questions_about_a_cluster(cluster: tuple[str, Kubectl], open_page: Open) -> None:
    link, kubectl = cluster
    page = open_page(link)
    wait_for_picture(page)
    why_is_it_pending(page)
    what_would_a_drain_evict(page)
    which_devices_does_an_expression_select(page)
    who_holds_it(page)
    kubectl("delete", "pod", "notebook-0", "--grace-period=0", "--force")
    expect(page.get_by_text("No pod waits.")).to_be_visible()
    when_was_it_pending(page)


def why_is_it_pending(page: Page) -> None:
    """One training worker wants three GPUs of a NUMA node, and the notebooks took two of one."""
    page.locator(".group-head").click()
    funnel = page.get_by_role("list", name="Devices left after each question").first
    expect(funnel.get_by_role("listitem").last).to_have_text("0together")
    expect(funnel).to_contain_text("8of the class")
    expect(funnel).to_contain_text("3free")
    expect(page.get_by_text("constraint matchAttribute").first).to_be_visible()
    expect(page.get_by_text("Pending since")).to_be_visible()  # it waited before anybody looked
    fix = page.locator(".fix", has_text="ask for 2 instead of 3")
    fix.click()
    changes = page.get_by_role("group", name="Legend: What would change")
    expect(changes.get_by_role("button", name="would be taken")).to_be_visible()
    expect(page.locator(".figure").first).to_contain_text("pending pods")
    fix.click()


def what_would_a_drain_evict(page: Page) -> None:
    page.get_by_role("combobox", name="Find").fill("dgx-h100-0")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="What if it were drained?").click()
    evicted = page.locator(".outcome")
    expect(evicted).to_contain_text("default/notebook-0")
    expect(evicted).to_contain_text("default/notebook-1")
    page.keyboard.press("Escape")


def which_devices_does_an_expression_select(page: Page) -> None:
    page.get_by_role("tab", name="CEL").click()
    page.get_by_role("textbox", name="Selector").fill('device.driver == "gpu.nvidia.com"')
    answer = page.get_by_role("group", name="Legend: What the expression selects")
    expect(answer.get_by_role("button", name="yes")).to_have_text("yes8")


def who_holds_it(page: Page) -> None:
    page.get_by_role("combobox", name="Find").fill("dgx-h100-0 gpu-0")
    page.keyboard.press("Enter")
    inspector = page.get_by_role("region", name="Inspector")
    expect(inspector).to_contain_text("default/notebook-0")
    expect(inspector).to_contain_text("productName")


def when_was_it_pending(page: Page) -> None:
    page.reload()
    page.get_by_role("tab", name="Time").click()
    page.get_by_role("button", name=re.compile("Pending Pod")).last.click()
    expect(page.locator(".banner")).to_contain_text("You look at")
    expect(page.locator(".pending .group-head")).to_have_count(1)
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("No pod waits.")).to_be_visible()


def test_one_file_shows_a_plan_without_a_server(tmp_path: Path, open_page: Open) -> None:
    file = tmp_path / "plan.html"
    moor("plan", "-f", str(TRAINING), "--profile", "dgx-h100", "--picture", str(file))
    page = open_page(file.as_uri())
    wait_for_picture(page)
    page.get_by_role("button", name=re.compile("training-1")).click()
    expect(page.get_by_text("Impossible together").first).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_have_count(0)
    page.get_by_role("tab", name="CEL").click()
    expect(page.get_by_text("Expressions need a server")).to_be_visible()
    page.wait_for_url("**#pod=default/training-1&play=cel")
