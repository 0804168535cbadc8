"""Forged reports at full size: every wrong value and script at every place of four kinds of documents.

Counts what is refused with a sentence and what becomes a page, in which no element or attribute may come from the
document. Anything else is an error. Takes some minutes:

    PYTHONPATH=tests python benchmarks/attacks/page.py
"""

import math
from html.parser import HTMLParser

import guardband as gb
from guardband.report.page import render
from guardband.report.schema import checked
from reported import documents, places, put

SCRIPT = "\"'><img src=x onerror=alert(1)><script>alert(1)</script><style>*{background:url(//x)}</style>"
WRONG = [None, True, -1, 0, 10**400, 2**53 + 1, 1e308, -0.5, math.nan, -math.inf]
WRONG += ["", "\ud800", "x" * 20_001, [], {}, [[]], SCRIPT, "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)", "__proto__"]


KINDS = ("unchecked", "infinite", "pav", "entities")


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, ...]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        self.found.add((tag, *(name for name, _ in attrs)))


def main() -> None:
    """Try everything, and say how many were refused."""
    everything = {found for own in documents().values() for found in Elements(render(own)).found}
    for name in KINDS:
        own = documents()[name]
        tried = refused = 0
        for at in places(own):
            for wrong in WRONG:
                tried += 1
                try:
                    page = render(checked(put(own, at, wrong)))
                    page.encode()
                except gb.ModelFileError:
                    refused += 1
                    continue
                if wrong == SCRIPT:
                    assert Elements(page).found <= everything, at
                assert "{{ 49" not in page
        print(f"{name}: {tried:,} tried, {refused:,} refused, {tried - refused:,} pages", flush=True)


if __name__ == "__main__":
    main()
