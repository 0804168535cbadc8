"""The page of a run that somebody else made: what stands in its folder is text."""

import json

import pytest

from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.report import report

SCRIPT = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>"
SETTINGS = {"seed": 0, "quick": True, "repetitions": 2}


def folder_with(path, about):
    path.mkdir(exist_ok=True)
    (path / "run.json").write_text(about if isinstance(about, str) else json.dumps(about))
    return Folder(path)


def test_script_in_what_is_known_of_a_run_is_text(tmp_path):
    about = {"settings": SETTINGS | {"repetitions": SCRIPT}, "runs": [{SCRIPT: SCRIPT}]}
    page, _ = report(folder_with(tmp_path / "run", about))
    text = page.read_text(encoding="utf-8")
    assert text.count("&lt;script&gt;alert(1)") == 3
    assert "<script" not in text
    assert "<img" not in text
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in text


@pytest.mark.parametrize(
    "about",
    [
        {"settings": {}, "runs": []},
        {"settings": SETTINGS | {"quick": "<b>"}, "runs": []},
        {"settings": SETTINGS, "runs": ["x"]},
        {"settings": SETTINGS, "runs": {"a": 1}},
        {"settings": SETTINGS, "runs": [{"a": {"b": []}}]},
        {"settings": SETTINGS, "runs": [{"a": "\ud800"}]},
        [1],
        "{",
        "[" * 100_000,
        "\x00",
    ],
    ids=lambda about: f"{about!r:.40}",
)
def test_what_no_run_has_written_is_refused_in_a_line(tmp_path, about):
    with pytest.raises(ValueError, match=r"run\.json is damaged .*: choose another folder by -o\.$") as error:
        report(folder_with(tmp_path / "run", about))
    assert len(str(error.value)) < 600
    assert str(error.value).isprintable()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]
