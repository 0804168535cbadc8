import ast
import json
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.audit.verdict import VerdictKind
from guardband.experiments.reproduce import page as reproduction
from guardband.report import rendering
from guardband.report.document import document
from guardband.report.page import STATUS, render, write_report
from guardband.report.page import script as page_script
from guardband.report.rendering import asset, json_text
from judged import evidence_of
from reported import fitted, rows_and_targets

HOSTILE = ['<script>alert("x")</script>', "a'b\"c", "</script><!--", "--><b>&amp;", "\u2028 line", "lower", "$x$", ""]


class Reader(HTMLParser):
    """Counts elements, and collects ids and what they refer to."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self):
        super().__init__()
        self.counts, self.open, self.ids, self.refers = {}, [], [], []

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        own = dict(attributes)
        if "id" in own:
            self.ids.append(own["id"])
        self.refers += [own[key] for key in ("for", "aria-labelledby") if key in own]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((700, len(HOSTILE) - 1)), columns=HOSTILE[:-1])
    frame["text"] = rng.choice(HOSTILE[:-1], 700)
    y = pd.Series(rng.random(700), name="</title><script>alert(1)</script>")
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=0).fit(frame[:500], y[:500])
    group = pd.Series(rng.choice(HOSTILE[:3], 200), name="<i>group</i>")
    return document(model, Evidence.of(model, frame[500:], y[500:], group=group))


def test_names_and_values_never_become_elements(hostile):
    page = render(hostile)
    reader = read(page)
    assert reader.counts["script"] == 2
    assert "b" not in reader.counts or page.count("<b>") == 1  # the verdict's own
    assert "<i>group" not in page
    assert "alert(1)</script>" not in page


def test_the_data_come_back_as_they_were(hostile):
    text = re.search(r'id="data">(.*?)</script>', render(hostile), re.DOTALL).group(1)
    assert json.loads(text)["rows"] == json.loads(json.dumps(hostile["rows"]))
    assert json.loads(text)["response"] == hostile["response"]
    assert not set("<>&\u2028\u2029") & set(text)


def test_ids_are_unique_and_references_lead_somewhere(hostile):
    reader = read(render(hostile))
    assert len(set(reader.ids)) == len(reader.ids)
    assert set(reader.refers) <= set(reader.ids)


def test_nothing_is_fetched(hostile):
    page = render(hostile)
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "@import" not in page
    assert "url(" not in page


def test_landmarks_language_and_headings_are_there(hostile):
    page = render(hostile)
    counts = read(page).counts
    assert counts["main"] == counts["header"] == counts["footer"] == counts["h1"] == 1
    assert '<html lang="en">' in page
    assert "<noscript>" in page


def test_essential_numbers_stand_in_the_text_without_script(hostile):
    page = re.sub(r"<script.*?</script>", "", render(hostile), flags=re.DOTALL)
    level = hostile["audit"]["levels"][0]
    assert f"{level['covered']} of 200 rows" in page
    assert f"{level['low']} to {level['high']}" in page
    assert page.count("<table") >= 6


def test_a_page_appears_whole_or_not_at_all(hostile, tmp_path):
    path = write_report(hostile, tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == render(hostile)
    with pytest.raises(KeyError):
        write_report({}, tmp_path / "other.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_data_cannot_end_their_element():
    assert json_text({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'


def test_nothing_is_put_into_a_page_unescaped_but_what_the_package_itself_wrote():
    """HTML is in the templates alone, and these have no way around escaping; style, script and data are the rest."""
    folder = Path(rendering.__file__).parent
    templates = [path.read_text() for path in folder.rglob("*.html")]
    assert len(templates) >= 10
    for text in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup|xmlattr|\son[a-z]+=|style=|javascript:", text)
    sources = [*folder.rglob("*.py"), Path(reproduction.__file__)]
    marked = {path.name: path.read_text().count("Markup(") for path in sources if "Markup" in path.read_text()}
    assert marked == {"rendering.py": 3}
    for path in sources:
        strings = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        assert not [text for text in strings if isinstance(text, str) and re.search(r"</?[a-z]", text)]
    script = page_script()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|[\"']style[\"']", script
    )
    assert not re.search(r"</script|<!--|</style", script + asset("page.css"), re.IGNORECASE)


def hash_of(text):
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_comes_first_and_names_the_style_and_the_script_by_what_they_are(hostile):
    page = render(hostile)
    first = re.search(r"<head>\s*<([^>]*)>", page).group(1)
    policy = unescape(re.fullmatch(r'meta http-equiv="Content-Security-Policy" content="([^"]*)"', first).group(1))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL).group(1)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hash_of(script)}",
        f"style-src {hash_of(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert page.encode().index(b"<meta charset") < 1024
    assert " style=" not in page


def test_templates_load_only_when_a_page_is_made():
    code = "import sys, guardband, guardband.cli; sys.exit(bool({'jinja2', 'msgspec'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_style_and_script_are_files_of_the_package():
    assert "prefers-color-scheme" in asset("page.css")
    assert "@media print" in asset("page.css")
    assert '"use strict"' in page_script()


def test_rows_that_were_used_before_are_noted_on_the_page(hostile):
    own = evidence_of(300)
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=0).fit(X, X.sum(1))
    page = render(document(model, Evidence.of(model, X, X.sum(1))))
    assert "225 of 300 rows equal rows that trained the model" in page
    assert "300 equal training or calibration rows (see the notes)" in page
    assert "none of them used for training or calibration" in render(document(model, own))
    one = np.concatenate([X[:1], rng.random((99, 2))])
    page = render(document(model, Evidence.of(model, one, one.sum(1))))
    assert "1 equals a training or calibration row (see the notes)" in page


STATUSES = [*get_args(VerdictKind), "unchecked"]


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_its_words_mark_and_colour(hostile, status):
    page = render(hostile | {"status": status, "sentence": f"{STATUS[status]}: why so. What to do."})
    hero = re.search(r'<div class="verdict ([a-z-]+)" id="verdict">(.*?)</div>', page, re.DOTALL)
    assert hero.group(1) == status.replace(" ", "-")
    assert f"<b>{STATUS[status]}</b><span>Why so. What to do.</span>" in hero.group(2)
    assert f".{hero.group(1)} {{ color: var(--" in asset("page.css")
    assert set(STATUS) == set(STATUSES)


def test_each_status_has_a_mark_of_its_own(hostile):
    pages = [render(hostile | {"status": status}) for status in STATUSES]
    marks = {re.search(r'id="verdict"><svg.*?</svg>', page, re.DOTALL).group(0) for page in pages}
    assert len(marks) == len(STATUSES)


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("status", STATUSES)
def test_the_status_can_be_read_in_light_and_in_dark(status):
    css = asset("page.css")
    (name,) = re.findall(rf"\.{status.replace(' ', '-')} {{ color: var\((--[a-z]+)\)", css)
    values = {key: re.findall(rf"{key}: (#[0-9a-f]{{6}})", css) for key in (name, "--paper")}
    assert len(values[name]) >= 3  # light, dark by the system, dark by the button
    for colour, paper in zip(values[name][:3], values["--paper"][:3], strict=True):
        light, dark = sorted([luminance(colour), luminance(paper)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2.2, 1.4.3


def test_the_range_beside_a_group_says_how_many_groups_it_allows_for(hostile):
    page = render(hostile)
    groups = {family["key"]: family["compared"] for family in hostile["audit"]["families"]}
    assert page.count(f"Expected ranges allow for {groups['width']} groups.</caption>") >= 1
    assert f"allowing for {groups['column-0']} groups in all columns together" in page
    assert "The promise is about all rows together. Groups are shown for information." in page
    assert "99% band" not in page


def test_the_region_is_not_called_the_worst(hostile):
    page, region = render(hostile), hostile["audit"]["searched_region"]
    assert "A region with low coverage, searched for" in page
    assert f"counted the other rows of that region: {region['covered']:,} of {region['n']:,} are inside" in page
    assert "worst" not in re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)


def test_a_model_writes_its_page_with_title_author_and_unit(tmp_path):
    X, y = rows_and_targets()
    path = fitted().report(
        tmp_path / "p.html", X[300:], y[300:], title="Sales & <b>", author='A. "Analyst"', unit="<u>€"
    )
    page = path.read_text(encoding="utf-8")
    assert '<h1 id="title">Sales &amp; &lt;b&gt;</h1>' in page
    assert "A. &#34;Analyst&#34;, 20" in page
    assert "\N{NO-BREAK SPACE}&lt;u&gt;€" in page
    assert read(page).counts.get("u") is None
