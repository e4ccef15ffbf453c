"""The server of a live page: on 127.0.0.1, for who knows the token, from our own page; and it changes nothing."""

import http.client
import json
import re
import socket
from typing import Any

import pytest
from picture_lead import PictureLead, Served, job
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect


def get(
    served: Served, path: str, method: str = "GET", body: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", served.pages.port, timeout=20)
    connection.request(method, path, body or None, headers={"Host": f"127.0.0.1:{served.pages.port}", **named})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return found


def listen(served: Served, origin: str, count: int, token: str = "") -> list[Any]:
    """Return the first messages of the connection of a page. Raises HTTPClientError."""
    address = f"ws://127.0.0.1:{served.pages.port}/{token or served.pages.token}/mini/live"

    async def run() -> list[Any]:
        connection = await websocket_connect(HTTPRequest(address, headers={"Origin": origin}))
        found = [json.loads(str(await connection.read_message())) for _ in range(count)]
        connection.close()
        await connection.read_message()
        return found

    found: list[Any] = IOLoop(make_current=False).run_sync(run, 30)
    return found


def test_a_page_has_its_script_and_bokeh_from_the_server_alone(served: Served) -> None:
    root = f"/{served.pages.token}/"
    status, headers, text = get(served, f"{root}mini/")
    assert status == 200
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,", "../bokeh.js", "../page.js"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
    assert (headers["Referrer-Policy"], headers["X-Frame-Options"]) == ("no-referrer", "DENY")
    assert "Server" not in headers
    assert get(served, f"{root}page.js")[0] == get(served, f"{root}bokeh.js")[0] == 200
    assert "Set-Cookie" not in headers


def test_the_list_has_a_link_for_each_minicluster(served: Served) -> None:
    status, _, text = get(served, f"/{served.pages.token}/")
    assert (status, '<a href="mini/">mini</a></td><td>Running</td>' in text) == (200, True)


@pytest.mark.parametrize("path", ["/", "/mini/", "/{}x/mini/", "/x/mini/", "/favicon.ico", "/{}/../", "/{}/Mini/"])
def test_without_the_token_there_is_nothing(served: Served, path: str) -> None:
    assert get(served, path.format(served.pages.token))[0::2] == (404, "there is no such page\n")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.2:PORT", "[::1]:1"])
def test_a_foreign_name_that_leads_here_is_refused(served: Served, host: str) -> None:
    named = host.replace("PORT", str(served.pages.port))
    assert get(served, f"/{served.pages.token}/mini/", Host=named)[0] in (400, 403)


def test_other_pages_and_other_methods_are_refused(served: Served) -> None:
    path, port = f"/{served.pages.token}/mini/job?id=f1", served.pages.port
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"file://127.0.0.1:{port}"):
        assert get(served, path, Origin=origin)[0] == 403
    assert get(served, path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert get(served, path, Origin=f"http://127.0.0.1:{port}")[0] == 200
    assert get(served, path, Host=f"localhost:{port}")[0] == 200
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert get(served, f"/{served.pages.token}/mini/", method)[0] == 405


#: What a page of ours sends with a change
OURS = {"Content_Type": "application/json"}


def post(served: Served, asked: object, **headers: str) -> tuple[int, str]:
    """Return status and body of the answer to a change that is asked for."""
    origin = {"Origin": f"http://127.0.0.1:{served.pages.port}", **OURS, **headers}
    body = asked if isinstance(asked, str) else json.dumps(asked)
    status, _, text = get(served, f"/{served.pages.token}/mini/change", "POST", body, **origin)
    return status, text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"change": "cancel", "of": "f2aBVu4iT"}, ["cancel", "f2aBVu4iT"]),
        ({"change": "drain", "of": "3", "reason": "-f disk\nfull"}, ["resource", "drain", "--", "3", "-f disk full"]),
        ({"change": "drain", "of": "3"}, ["resource", "drain", "--", "3", "drained from the page"]),
        ({"change": "undrain", "of": "3"}, ["resource", "undrain", "3"]),
    ],
)
def test_a_writable_page_has_flux_change_things(
    served: Served,
    picture_lead: PictureLead,
    capfd: pytest.CaptureFixture[str],
    asked: dict[str, str],
    words: list[str],
) -> None:
    served.pages.writable = True
    assert post(served, asked) == (200, json.dumps({"done": " ".join(["flux", *words])}))
    assert picture_lead.changes == [["/mnt/bin/flux", *words]]
    assert capfd.readouterr().err == f"minicluster: from the page of mini: {' '.join(['flux', *words])}\n"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"change": "cancel", "of": "--all"}, "'--all' can't be what to cancel"),
        ({"change": "drain", "of": "0-3"}, "'0-3' can't be what to drain"),
        ({"change": "drain", "of": "3", "reason": "minicluster: x"}, "a reason that begins with 'minicluster: ' is"),
        ({"change": "shutdown", "of": "3"}, "a page can't do 'shutdown': choose cancel, drain, undrain"),
        ({"change": ["cancel"], "of": {}}, "a page can't do \"['cancel']\""),
        ({}, "a page can't do ''"),
    ],
)
def test_what_is_no_change_is_refused(
    served: Served, picture_lead: PictureLead, asked: dict[str, Any], problem: str
) -> None:
    served.pages.writable = True
    status, text = post(served, asked)
    assert (status, json.loads(text)["error"].startswith(problem), picture_lead.changes) == (200, True, [])


def test_a_change_that_flux_refuses_is_told(served: Served, picture_lead: PictureLead) -> None:
    served.pages.writable = True
    picture_lead.refuses = "flux-cancel: f1: job is inactive"
    assert post(served, {"change": "cancel", "of": "f1"}) == (200, json.dumps({"error": picture_lead.refuses}))
    picture_lead.kube.has["pods"] = []
    status, text = post(served, {"change": "cancel", "of": "f1"})
    assert (status, json.loads(text)) == (200, {"error": "mini has no lead now: nothing is changed"})


def test_a_page_that_is_not_writable_changes_nothing(served: Served, picture_lead: PictureLead) -> None:
    why = "refused: this page changes nothing: start it with --writable\n"
    assert post(served, {"change": "cancel", "of": "f1"}) == (403, why)
    assert picture_lead.changes == []


def test_changes_are_for_our_own_page_alone(served: Served, picture_lead: PictureLead) -> None:
    served.pages.writable = True
    asked, port = {"change": "cancel", "of": "f1"}, served.pages.port
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"file://127.0.0.1:{port}", ""):
        assert post(served, asked, Origin=origin)[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert post(served, asked, Content_Type=kind) == (403, "refused: this is for the page alone\n")
    assert post(served, asked, Host="evil.example")[0] == 403
    assert post(served, asked, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors")[0] == 403
    body, path = json.dumps(asked), f"/{served.pages.token}/mini/change"
    assert get(served, path, "POST", body, **OURS)[0] == 403
    own = {"Origin": f"http://127.0.0.1:{port}", **OURS}
    assert get(served, path.replace("/mini", "x/mini"), "POST", body, **own)[0] == 404
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        assert get(served, path, method, **own)[0] == 405
    assert [post(served, text)[0] for text in ("", "{", "7")] == [400] * 3
    assert picture_lead.changes == []


def test_a_proxy_has_the_name_that_was_given(served: Served) -> None:
    path = f"/{served.pages.token}/mini/"
    assert get(served, path, Host="hub.lab.org")[0] == 403
    served.pages.hosts = ("hub.lab.org",)
    assert get(served, path, Host="hub.lab.org", Origin="https://hub.lab.org")[0] == 200


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_who_comes_by_the_name_of_a_proxy_is_told_how_to_start_the_page_with_it(served: Served, header: str) -> None:
    host = "ondemand.lab.org:8443"
    named = {header: host if header == "Host" else f"https://{host}"}
    status, headers, text = get(served, f"/{served.pages.token}/mini/", **named)
    assert (status, headers["Content-Type"]) == (403, "text/plain; charset=utf-8")
    assert f"the name {host}." in text
    [command] = [line for line in text.splitlines() if line.startswith("  minicluster ")]
    assert command == f"  minicluster dashboard NAME --host {host}"
    assert f'cluster.dashboard(hosts=["{host}"])' in text
    assert served.pages.token not in text


@pytest.mark.parametrize("name", ["null", "file://x;rm -rf", "http://a b", "http://<b>"])
def test_a_name_that_is_none_is_not_repeated(served: Served, name: str) -> None:
    status, _, text = get(served, f"/{served.pages.token}/mini/", Origin=name)
    assert (status, text) == (403, "refused: this page is served to 127.0.0.1 alone\n")


def test_it_listens_on_the_loopback_alone(served: Served) -> None:
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect(("127.0.0.2", served.pages.port))


def test_a_connection_of_another_page_is_refused(served: Served, picture_lead: PictureLead) -> None:
    for origin in ("http://evil.example", f"http://127.0.0.1:{served.pages.port + 1}"):
        with pytest.raises(HTTPClientError) as error:
            listen(served, origin, 1)
        assert error.value.code == 403
    with pytest.raises(HTTPClientError) as error:
        listen(served, f"http://127.0.0.1:{served.pages.port}", 1, token="x")
    assert error.value.code == 404
    assert picture_lead.talks.empty()


def test_a_page_is_told_all_and_then_what_changes(served: Served, picture_lead: PictureLead) -> None:
    served.pages.show("mini")
    talk = picture_lead.begin([job(1), job(2)])
    own = f"http://127.0.0.1:{served.pages.port}"
    while not (found := listen(served, own, 1)[0])["jobs"]:
        pass
    assert (found["all"], sorted(row["id"] for row in found["jobs"])) == (True, ["f1", "f2"])
    talk.say(jobs=[job(3, state="RUN", result=None)])
    while len(listen(served, own, 1)[0]["jobs"]) < 3:
        pass


def test_a_job_is_asked_of_the_lead(served: Served, picture_lead: PictureLead) -> None:
    known = {
        "job": job(1, result="FAILED", exit_code=3),
        "waits": "",
        "needs": {},
        "said": ["x"],
        "again": "",
        "now": 0.0,
    }
    picture_lead.answers["f1"] = {**known, "command": "sh -c 'exit 3'", "output": "<b>\u2028"}
    found = json.loads(get(served, f"/{served.pages.token}/mini/job?id=f1")[2])
    assert found == {
        "why": ["job f1 (work) failed with exit code 3 after 1m2s on mini-[0-1]"],
        "command": "sh -c 'exit 3'",
        "output": "<b>\u2028",
    }
    found = json.loads(get(served, f"/{served.pages.token}/mini/job?id=f2")[2])
    assert found == {"error": "mini has no job f2 any more"}


def test_the_token_is_in_no_log(
    served: Served, picture_lead: PictureLead, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    picture_lead.kube.has["pods"] = RuntimeError("broken")
    for path in ("mini/", "mini/job?id=f1", "nothing"):
        get(served, f"/{served.pages.token}/{path}")
    served.stop()
    said = "".join(capfd.readouterr()) + caplog.text
    assert ("the page has an error: RuntimeError: broken" in said, served.pages.token in said) == (True, False)
    picture_lead.kube.has["pods"] = []
