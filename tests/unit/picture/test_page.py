"""The page in a real browser: what it shows, follows, filters; hostile texts; other pages; a file without network."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from minicluster.picture.timeline import Timeline
from picture_lead import START, PictureLead, Served, job
from playwright.sync_api import BrowserContext, Dialog, Page, sync_playwright
from status_samples import SETTINGS, flux

from tools.clients import until
from tools.pictures import chromium

pytestmark = [
    pytest.mark.skipif(not chromium(), reason="Chromium is missing: install it (Debian: chromium)"),
    pytest.mark.xdist_group("browser"),
]
HOSTILE = "<img src=x onerror=document.title='broken'>'\"&amp;\u2028</script><script>document.title='broken'</script>"
#: Milliseconds that the browser has, also on a busy machine
PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    """One window for all pages: each server has a port, and so an origin, of its own."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield found.new_context()
        found.close()


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: BrowserContext) -> Iterator[Open]:
    """Opens pages, which must have no errors."""
    errors: list[str] = []
    opened = []

    def open_page(address: str, width: int = 1280, scheme: Any = "light", is_filled: bool = True) -> Page:
        page = browser.new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(address)
        if is_filled:
            page.locator("body[data-bars]").wait_for()
        return page

    yield open_page
    for page in opened:
        page.close()
    allowed = ("WebSocket", "Failed to load", "Framing", "CORS policy", "Access-Control")
    assert [each for each in errors if not any(text in each for text in allowed)] == []


def shown(page: Page) -> dict[str, str]:
    """Return how many bars, rows and marks a page has."""
    found: dict[str, str] = page.evaluate("({...document.body.dataset})")
    return found


def wait(page: Page, **shown: int) -> None:
    """Wait until the page shows so many bars, rows or marks."""
    page.locator("body" + "".join(f'[data-{what}="{count}"]' for what, count in shown.items())).wait_for()


def names(page: Page) -> list[str]:
    """Return the names in the table of jobs."""
    return page.locator("#rows tr.job td:nth-child(2)").all_inner_texts()


@pytest.fixture
def filled(served: Served, picture_lead: PictureLead, open_page: Open) -> tuple[Page, Any]:
    """A page with three jobs, and the conversation that feeds it."""
    served.pages.show("mini")
    waits = {"state": "SCHED", "result": None, "t_run": None, "t_cleanup": None, "t_inactive": None, "ranks": None}
    failed = {"result": "FAILED", "exit_code": 3, "ranks": "2", "nodes": "mini-2"}
    talk = picture_lead.begin(
        [
            job(1, name="first", t_submit=START - 3),
            job(2, name="second", user={"sample": 7}, t_submit=START - 2, **failed),
            job(3, name="third", t_submit=START - 1, **waits),
        ]
    )
    page = open_page(served.pages.address("mini"))
    wait(page, rows=3, bars=2)
    return page, talk


def test_the_page_shows_jobs_nodes_status_and_the_job_below_the_pointer(filled: tuple[Page, Any]) -> None:
    page, _ = filled
    assert names(page) == ["third", "second", "first"]
    assert page.locator("#state").inner_text() == "Running"
    status = page.locator("#status").inner_text()
    assert "4 of at most 8" in status
    assert "Oldest\tjob f3 (third) for" in status
    assert "Flux started" in page.locator("#marks").inner_text()
    assert page.locator("#count").inner_text() == "3 jobs"
    labels = page.evaluate(
        "[...Bokeh.documents.at(-1).get_model_by_name('nodes').left[0].major_label_overrides.values()]"
    )
    assert [label for label in labels if label.strip()] == ["mini-0", "mini-1", "mini-2", "mini-3"]
    # the pointer on a bar shows the job
    where = page.evaluate(
        """async () => { const plot = Bokeh.documents.at(-1).get_model_by_name('nodes');
        const view = Bokeh.index.find_one_by_id(plot.id), bars = plot.renderers[0].data_source.data;
        plot.x_range.setv({start: bars.left[1] - 9000, end: bars.right[1] + 9000});
        await new Promise((done) => setTimeout(done, 100));
        const {left, top} = view.el.getBoundingClientRect(), {x_scale, y_scale} = view.frame;
        return [left + x_scale.compute((bars.left[1] + bars.right[1]) / 2), top + y_scale.compute(2)]; }"""
    )
    page.mouse.move(where[0], where[1])
    page.mouse.move(where[0] + 1, where[1])
    page.locator(".bk-Tooltip", has_text="FAILED, exit code 3").first.wait_for()


def test_the_page_follows_what_changes(filled: tuple[Page, Any]) -> None:
    page, talk = filled
    where = {"ranks": "2", "nodes": "mini-2", "ncores": 2}
    # a text that somebody selects stays selected
    page.evaluate("getSelection().selectAllChildren(document.querySelector('tr[data-id=f3] td'))")
    talk.say(jobs=[{"number": 3, "state": "RUN", "t_run": time.time(), **where}])
    wait(page, bars=3)
    assert page.locator("tr[data-id=f3] td").nth(2).inner_text() == "RUNNING"
    talk.say(jobs=[{"number": 3, "state": "INACTIVE", "t_cleanup": time.time(), "exit_code": 9}])
    page.locator("tr[data-id=f3] td.wrong", has_text="FAILED").wait_for()
    talk.say(jobs=[job(9, t_submit=time.time())])
    page.locator("tr[data-id=f9]").wait_for()
    assert page.evaluate("String(getSelection())").strip() == "f3"
    talk.say(nodes=[{"t": time.time(), "event": "drain", "ranks": "1", "reason": HOSTILE}])
    page.locator("#marks li", has_text="mini-1 drained: <img").wait_for()
    assert page.title() == "mini · minicluster"


def test_a_job_inside_of_another_has_a_row_and_no_command_that_takes_its_id(filled: tuple[Page, Any]) -> None:
    page, talk = filled
    inside = {**job(0, name="deep", t_submit=START - 2), "id": "f1/f2", "number": None}
    talk.say(jobs=[inside, {"number": 1, "inner": {"total": 12, "failed": 2, "canceled": 0, "timeout": 1}}])
    wait(page, rows=4, bars=2)
    assert names(page).count("deep") == 1
    page.click("tr[data-id='f1/f2']")
    page.locator("#which", has_text="f1/f2 deep").wait_for()
    assert page.locator("#lines li").count() == 0
    assert page.locator("#answer").inner_text() == ""
    page.click("tr[data-id=f1]")
    page.locator("#record tr", has_text="12, 3 failed").wait_for()


def test_jobs_are_searched_filtered_and_sorted(filled: tuple[Page, Any]) -> None:
    page, _ = filled
    page.fill("#search", "sample=7")
    wait(page, rows=1)
    assert (names(page), page.locator("#count").inner_text()) == (["second"], "1 of 3 jobs")
    page.fill("#search", "")
    page.select_option("#only", "PENDING")
    wait(page, rows=1)
    assert names(page) == ["third"]
    page.select_option("#only", "")
    page.locator("#heads th", has_text="NAME").click()
    assert names(page) == ["first", "second", "third"]
    page.locator("#heads th", has_text="NAME").click()
    assert names(page) == ["third", "second", "first"]


def test_a_click_shows_the_job_its_command_and_its_output(filled: tuple[Page, Any], picture_lead: PictureLead) -> None:
    page, _ = filled
    known = {"job": job(2, result="FAILED", exit_code=3), "waits": "", "needs": {}, "said": [], "again": "", "now": 0.0}
    picture_lead.answers["f2"] = {**known, "command": f"echo {HOSTILE}", "output": f"{HOSTILE}\n"}
    page.locator("tr[data-id=f2]").click()
    page.locator("#answer pre").nth(1).wait_for()
    assert page.locator("#answer pre").nth(1).text_content() == f"{HOSTILE}\n"
    assert page.locator("#answer pre").nth(0).text_content() == f"echo {HOSTILE}"
    assert "failed with exit code 3" in page.locator("#answer").inner_text()
    assert page.locator("#lines code").all_inner_texts() == [
        "minicluster why mini -n lab f2",
        "minicluster output mini -n lab f2",
    ]
    page.keyboard.press("Escape")
    page.locator("tr[data-id=f3]").click()
    # this page is not writable: it has no button that changes things
    assert [page.locator(each).is_visible() for each in ("#cancel", "#drain", "#detail")] == [False, False, True]
    assert page.locator("#lines code").all_inner_texts()[-1] == "minicluster flux mini -n lab -- cancel f3"
    page.locator("#answer .wrong", has_text="mini has no job f3 any more").wait_for()
    assert page.title() == "mini · minicluster"


def test_what_jobs_use_is_drawn_and_a_panel_covers_no_plot(filled: tuple[Page, Any]) -> None:
    page, talk = filled
    runs = {"state": "RUN", "t_run": START, "ranks": "0-1", "nodes": "mini-[0-1]", "ncores": 4}
    talk.say(nodes=[], hosts=["mini-[0-3]"], cores={"0-3": 2})
    talk.say(jobs=[{"number": 3, **runs}])
    for t in (10, 20):
        use = {"cpu_seconds": 1.5 * t, "memory": t << 30, "memory_limit": 32 << 30}
        talk.say(use={rank: {"time": START + t, "jobs": {"3": use}} for rank in "01"}, now=START + t)
    wait(page, bars=3, uses=2)
    page.locator("#use option", has_text="mini-1").wait_for(state="attached")
    page.locator("tr[data-id=f3]").click()
    assert page.locator("#use option:checked").inner_text() == "job f3"
    assert page.evaluate(
        """["cores used", "memory used"].map((name) => {
        const {t, ...columns} = Bokeh.documents.at(-1).get_model_by_name(name).data;
        return columns; })"""
    ) == [{"cores": [3.0, 3.0], "reserved": [4, 4]}, {"memory": [20, 40], "limit": [64, 64]}]
    # a job that has all cores of its nodes fills their lanes, also where others had parts of them
    heights = page.evaluate(
        """(() => { const {id, top, bottom} = Bokeh.documents.at(-1).get_model_by_name("bars").data;
        return id.flatMap((one, n) => one === "f3" ? [bottom[n] - top[n]] : []); })()"""
    )
    assert [round(height, 2) for height in heights] == [1.84]
    side = "['plots', 'detail'].map((id) => document.getElementById(id).getBoundingClientRect())"
    until(lambda: page.evaluate(f"(([plots, panel]) => plots.right <= panel.left)({side})"))
    page.set_viewport_size({"width": 400, "height": 900})
    until(lambda: page.evaluate(f"(([plots, panel]) => plots.bottom <= panel.top)({side})"))
    page.keyboard.press("Escape")
    page.locator("#use option:checked", has_text="all nodes").wait_for(state="attached")
    assert not overflows(page)


def test_a_writable_page_asks_before_it_changes_things(
    served: Served, picture_lead: PictureLead, open_page: Open
) -> None:
    served.pages.writable = True
    served.pages.show("mini")
    runs = {"state": "RUN", "result": None, "t_cleanup": None, "t_inactive": None, "exit_code": None}
    talk = picture_lead.begin([job(1, name=HOSTILE, **runs), job(2)])
    page, asked, says = open_page(served.pages.address("mini")), [], [False, True, True, True]

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if says.pop(0) else dialog.dismiss()

    page.on("dialog", answer)
    page.locator("tr[data-id=f2]").click()
    assert page.locator("#cancel").is_hidden()
    page.locator("tr[data-id=f1]").click()
    page.click("#cancel")
    assert picture_lead.changes == []
    page.click("#cancel")
    page.locator("#said", has_text="Done: flux cancel f1").wait_for()
    assert asked == [f"Cancel job f1 ({HOSTILE[:100]})? It can't be taken back."] * 2
    page.select_option("#node", "3")
    page.fill("#reason", "disk full")
    page.click("#drain")
    page.locator("#said", has_text="flux resource drain -- 3 disk full").wait_for()
    talk.say(status=[SETTINGS, {**flux(drained={"3": "disk full"}), "waiting": [], "queue_problem": ""}], now=START)
    page.locator("#drain", has_text="undrain").wait_for()
    picture_lead.refuses = "flux-resource: ERROR: <b>no"
    page.click("#drain")
    page.locator("#said.wrong", has_text="It was not done: ").wait_for()
    assert asked[2:] == [
        "Drain mini-3, so that it takes no more jobs? Those on it run to their end.",
        "Undrain mini-3, so that it takes jobs again?",
    ]
    words = [["cancel", "f1"], ["resource", "drain", "--", "3", "disk full"], ["resource", "undrain", "3"]]
    assert picture_lead.changes == [["/mnt/bin/flux", *each] for each in words]
    assert (page.title(), overflows(page)) == ("mini · minicluster", False)


def test_hostile_texts_are_shown_as_they_are(served: Served, picture_lead: PictureLead, open_page: Open) -> None:
    served.pages.show("mini")
    long = "x" * 10_000
    rows = [job(1, name=HOSTILE, user={HOSTILE: HOSTILE}), job(2, name=long, ranks="2")]
    talk = picture_lead.begin(rows, problems=[HOSTILE])
    talk.say(jobs=[{"number": 1, "command": HOSTILE}])
    page = open_page(served.pages.address("mini"))
    wait(page, rows=2, bars=2)
    for number, name in ((1, HOSTILE), (2, long)):
        page.locator(f"tr[data-id=f{number}]").click()
        assert page.locator("#which").text_content() == f"f{number} {name}"
        page.keyboard.press("Escape")
    page.select_option("#colour", "name")
    page.locator("#legend", has_text="<img").wait_for()
    assert (page.title(), page.locator("img").count()) == ("mini · minicluster", 0)
    assert not overflows(page)


def overflows(page: Page) -> bool:
    """Tell whether a page is wider than its window."""
    found: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return found


def test_what_is_lost_is_told_and_what_is_known_stays(
    filled: tuple[Page, Any], picture_lead: PictureLead, served: Served
) -> None:
    page, talk = filled
    talk.end()
    page.locator("#status", has_text="Unknown").wait_for()
    assert len(names(page)) == 3
    again = picture_lead.begin([job(1, name="first"), job(2, name="second")])
    page.locator("#only option", has_text="LOST").wait_for(state="attached")
    page.locator("#status", has_text="Running").wait_for()
    again.say(jobs=[job(4, name="fourth")])
    page.locator("tr[data-id=f4]").wait_for()
    served.stop()
    page.locator("#trouble", has_text="does not answer").wait_for()
    assert len(names(page)) == 4


def test_another_page_of_the_browser_can_read_and_do_nothing(
    served: Served, picture_lead: PictureLead, open_page: Open, tmp_path: Path
) -> None:
    served.pages.writable = True
    (tmp_path / "index.html").write_text("<title>other</title>")
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *words: handler(*words, directory=str(tmp_path))
    ) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        page = open_page(f"http://127.0.0.1:{other.server_port}/index.html", is_filled=False)
        address = served.pages.address("mini")
        found = page.evaluate(
            """async (address) => {
            const read = (path) => fetch(address + path).then((answer) => answer.text()).catch(() => "refused");
            const talk = new Promise((done) => {
              const socket = new WebSocket(address.replace("http", "ws") + "live");
              socket.onmessage = () => done("told");
              socket.onerror = () => done("refused");
            });
            const frame = new Promise((done) => {
              const one = document.createElement("iframe");
              one.onload = () => { try { done(one.contentDocument ? "read" : "refused"); } catch { done("refused"); } };
              one.src = address;
              document.body.append(one);
            });
            const body = '{"change": "cancel", "of": "f1"}';
            const ours = {method: "POST", headers: {"Content-Type": "application/json"}, body};
            const plain = {method: "POST", mode: "no-cors", body};
            const send = (how) => fetch(address + "change", how).then((answer) => answer.status).catch(() => "refused");
            return [await read(""), await read("job?id=f1"), await talk, await frame, await send(ours),
              await send(plain) || "refused"]; }""",
            address,
        )
        other.shutdown()
        thread.join()
    assert (found, picture_lead.changes) == (["refused"] * 6, [])


@pytest.mark.parametrize(("count", "nodes", "width", "scheme"), [(0, 1, 1920, "light"), (10_000, 200, 1280, "dark")])
def test_a_file_needs_no_network(  # noqa: PLR0917 - one for each part
    open_page: Open, tmp_path: Path, count: int, nodes: int, width: int, scheme: str
) -> None:
    from minicluster.picture import page as pages  # noqa: PLC0415 - Bokeh takes each worker a second

    timeline = Timeline("mini")
    timeline.take_nodes([{"t": START, "event": "online", "ranks": f"0-{nodes - 1}"}], [f"mini-[0-{nodes - 1}]"])
    rows = [
        job(n, name=HOSTILE, t_run=START + n, t_cleanup=START + n + 5, ranks=f"{n % nodes}", nodes=f"mini-{n % nodes}")
        for n in range(count)
    ]
    timeline.take_past(rows, START)
    path = tmp_path / "page.html"
    path.write_bytes(pages.as_file("mini", "", timeline.snapshot(START)))
    requests: list[str] = []
    page = open_page("about:blank", width, scheme, is_filled=False)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.locator("body[data-bars]").wait_for()
    assert shown(page) == {"bars": str(count), "rows": str(count), "marks": "0", "uses": "0"}
    assert [each for each in requests if not each.startswith(("file:", "data:", "blob:"))] == []
    assert (overflows(page), page.title()) == (False, "mini · minicluster")
    assert page.locator("#none").is_visible() == (count == 0)
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == grounds[scheme]
