"""The live page on a real Kubernetes, in a real browser: jobs, a growth, a drain and a killed broker of the lead."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.pictures import chromium
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = [
    IN_PODS,
    pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True),
    pytest.mark.skipif(not chromium(), reason="Chromium is missing: install it (Debian: chromium)"),
    pytest.mark.xdist_group("browser"),
]

GROWS = {
    "size": 1,
    "maxSize": 2,
    "interactive": True,
    "autoscaling": {"enabled": True, "min": 1, "max": 2, "idleSeconds": 3600},
}


@contextmanager
def opened(cluster: FluxRelease, *options: str) -> Iterator[Page]:
    """Open the page of `minicluster dashboard`."""
    line = ["minicluster", "dashboard", NAME, "-n", cluster.namespace, "--no-open", *options]
    with (
        subprocess.Popen(line, env=cluster.cluster.env, text=True, stdout=subprocess.PIPE) as process,
        sync_playwright() as playwright,
    ):
        assert process.stdout
        address = process.stdout.readline().strip()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(STEP_SECONDS * 1000)
            page.goto(address)
            yield page
        finally:
            browser.close()
            process.terminate()
    assert process.returncode == 0


def count(page: Page, status: str) -> int:
    """Return how many jobs the page has in a state."""
    page.select_option("#only", status)
    found = page.locator("#rows tr.job").count()
    page.select_option("#only", "")
    return found


def test_the_page_follows_a_run_and_its_file_shows_the_same(release: Install, tmp_path: Path) -> None:
    cluster = release(GROWS, {"cores": 1})
    cluster.wait_for("0")
    with opened(cluster) as page:
        page.locator("#state", has_text="Running").wait_for()
        assert page.locator("#none").is_visible()
        cluster.flux(0, "submit", "--quiet", "--cc=1-8", "-n1", "--job-name=sweep", "sleep", "2")
        cluster.flux(0, "submit", "--quiet", "-n1", "--job-name=bad", "--setattr=user.study=melt", "false")
        page.locator("#marks li", has_text="size 1 -> 2: ").wait_for()
        page.locator("body[data-rows='9']").wait_for()
        page.locator("#only option[value=FAILED]").wait_for(state="attached")
        cluster.flux(0, "resource", "drain", "1", "disk full")
        page.locator("#marks li", has_text=f"{NAME}-1 drained: disk full").wait_for()
        page.locator("#status", has_text="disk full").wait_for()
        page.locator("body[data-bars='9']").wait_for()
        cluster.kill_broker(0)
        page.locator("#marks li", has_text="the lead started again").wait_for()
        page.locator("#state", has_text="Running").wait_for()
        page.locator("#rows tr.job", has_text="bad").click()
        page.locator("#answer", has_text="failed with exit code 1").wait_for()
        assert "study=melt" in page.locator("#record").inner_text()
        page.keyboard.press("Escape")
        failed = count(page, "FAILED")
        path = tmp_path / "page.html"
        words = ("minicluster", "jobs", NAME, "-n", cluster.namespace, "--html", str(path))
        assert cluster.cluster.run(*words).code == 0
        page.goto(path.as_uri())
        page.locator("body[data-rows='9'][data-bars='9']").wait_for()
        assert count(page, "FAILED") == failed >= 1
        marks = page.locator("#marks").inner_text()
        assert all(text in marks for text in ("size 1 -> 2: ", "drained: disk full", "the lead started again"))


def test_the_page_shows_what_jobs_use_and_cancels_and_drains(release: Install) -> None:
    cluster = release({"size": 2, "interactive": True}, {"cores": 1})
    cluster.wait_for("0-1")
    with opened(cluster, "--writable") as page:
        page.on("dialog", lambda dialog: dialog.accept())
        page.locator("#state", has_text="Running").wait_for()
        spin = ("sh", "-c", "x=$(head -c 40000000 /dev/zero | tr '\\0' x); while :; do :; done")
        cluster.flux(0, "submit", "--quiet", "-N2", "-n2", "--job-name=spin", "-t2m", *spin)
        page.locator("#use option", has_text=f"{NAME}-1").wait_for(state="attached")
        page.locator("#rows tr.job", has_text="spin").click()
        until(lambda: page.evaluate("document.body.dataset.uses > 1"))
        cores, memory = page.evaluate(
            """[["cores used", "cores"], ["memory used", "memory"]].map(([name, column]) =>
            Bokeh.documents.at(-1).get_model_by_name(name).data[column].at(-1))"""
        )
        # both share the cores of one Kubernetes node
        assert 0.3 < cores < 2.1
        assert 0.07 < memory < 0.5
        page.click("#cancel")
        page.locator("#rows tr.job", has_text="CANCELED").wait_for()
        page.keyboard.press("Escape")
        reserved = "Bokeh.documents.at(-1).get_model_by_name('cores used').data.reserved.at(-1)"
        until(lambda: page.evaluate(reserved) == 0)
        page.select_option("#node", "1")
        page.fill("#reason", "disk full")
        page.click("#drain")
        page.locator("#marks li", has_text=f"{NAME}-1 drained: disk full").wait_for()
        page.locator("#drain", has_text="undrain").click()
        page.locator("#marks li", has_text=f"{NAME}-1 undrained").wait_for()
