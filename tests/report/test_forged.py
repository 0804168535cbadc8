"""Model files of somebody else: script in their stored report never runs, and nothing is fetched.

A listener on loopback says whether anything was. The same script reaches it where a page has no policy.
"""

import re
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import guardband as gb
from guardband.cli import main
from guardband.doors.kept_report import read_report
from guardband.doors.model_file import save
from guardband.report.page import render
from guardband.report.schema import checked
from reported import documents, fitted, found, places, put

PAYLOAD = (
    "\"'><img src=x onerror=fetch('{url}/text')><script>fetch('{url}/text')</script>"
    "<style>*{{background:url({url}/text)}}</style>"
)
INJECTED = """
<script>fetch('{url}/script')</script><script src="{url}/source"></script><img src="{url}/img">
<img src="x:" onerror="fetch('{url}/onerror')"><svg onload="fetch('{url}/onload')"></svg>
<style>body {{ background: url({url}/style) !important }}</style><p style="background: url({url}/attribute)">x</p>
<link rel="stylesheet" href="{url}/link"><iframe src="{url}/iframe"></iframe>
<object data="{url}/object"></object><embed src="{url}/embed"><video src="{url}/video"></video>
<iframe srcdoc="<img src='{url}/srcdoc'>"></iframe>
<iframe name="sink"></iframe><form id="sent" target="sink" action="{url}/form"></form><script>sent.submit()</script>
"""
PATHS = set(re.findall(r"url}(/\w+)", INJECTED))


def forged(folder, document):
    """Return a model file whose stored report is this document."""
    path = folder / "m.guardband"
    save(fitted(), path, report=document)
    return path


def test_script_in_every_text_and_number_is_refused_or_shown_as_text(tmp_path):
    """One file for each text, and one page for each document that is not refused."""
    payload = PAYLOAD.format(url="http://127.0.0.1:1")
    tried = refused = 0
    for name in ("entities", "unchecked", "several joint"):
        own = documents()[name]
        for at in places(own):
            tried += 1
            document = put(own, at, payload)
            if isinstance(found(own, at), str):
                document = read_report(forged(tmp_path, document))
            try:
                page = render(checked(document))
            except gb.ModelFileError:
                refused += 1
                is_word = at[-1] in ("key", "flag", "status", "reason", "side")
                assert not isinstance(found(own, at), str) or is_word or "rows" in at, at
                continue
            assert not re.search(r"<img|<script>fetch|<style>\*|\"'>", page), at
            assert page.count("<script") <= 2
    assert tried > 300
    assert 0 < refused < tried


def everywhere(document, payload):
    """Return a document with script in every text that may be any text."""
    document = checked(document)
    for at in list(places(document)):
        if isinstance(found(document, at), str):
            with suppress(gb.ModelFileError):
                document = checked(put(document, at, payload))
    return document


@pytest.fixture
def listener():
    """Return the address of a server, and what was asked of it."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path != "/favicon.ico":  # of the page that the visit ends on
                asked.append(self.path.split("?")[0])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def visited(browser, path, url, until=lambda: True):
    """Open a page, use it, and go on to the listener, which so has had every request that came before.

    ``until`` says when all is there that is waited for, up to a minute.
    """
    heard = []
    page = browser.new_page()
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.goto(path.as_uri(), wait_until="networkidle")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for button in page.locator("[data-family]").all()[:2]:
        button.click()
    if page.locator("#picture svg").count():
        page.locator("#picture svg").hover()
    for _ in range(600):
        if until():
            break
        page.wait_for_timeout(100)
    page.goto(f"{url}/end")
    page.close()
    return heard


def test_texts_of_a_forged_file_stay_texts_in_a_browser(browser, listener, tmp_path, monkeypatch):
    url, asked = listener
    payload = PAYLOAD.format(url=url)
    document = everywhere(documents()["entities"], payload)
    assert document["audit"]["families"][0]["strata"][0]["label"] == payload
    assert document["rows"]["cells"][0][0] == document["response"] == document["fitted"][0][1] == payload
    source = forged(tmp_path, document)
    monkeypatch.setattr("sys.argv", ["guardband", "report", str(source), "--figures", str(tmp_path / "figures")])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert visited(browser, tmp_path / "m.html", url) == []
    for name in ("intervals", "coverage-by-width"):
        assert visited(browser, tmp_path / "figures" / f"{name}.svg", url) == []
    assert set(asked) == {"/end"}


def test_the_policy_alone_stops_what_is_put_into_a_page_by_hand(browser, listener, tmp_path):
    url, asked = listener
    page = render(documents()["entities"])
    path = tmp_path / "page.html"
    forbidding = re.search(r"<meta http-equiv[^>]*>\n", page).group(0)
    for place in ('<main id="main">', "</title>"):
        path.write_text(page.replace(place, place + INJECTED.format(url=url), 1), encoding="utf-8")
        assert len(visited(browser, path, url)) >= 10  # the console names what was blocked
        assert set(asked) == {"/end"}
    path.write_text(path.read_text(encoding="utf-8").replace(forbidding, ""), encoding="utf-8")
    visited(browser, path, url, until=lambda: set(asked) >= PATHS)
    assert set(asked) == PATHS | {"/end"}


def test_a_page_promises_what_its_model_does(tmp_path, monkeypatch):
    document = documents()["entities"] | {"promise": "99.99% guaranteed", "level": 0.9999}
    source = forged(tmp_path, document)
    monkeypatch.setattr("sys.argv", ["guardband", "report", str(source)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "99.99%" not in page
    assert fitted().certificate_.promise.headline("conf-nn") in page
