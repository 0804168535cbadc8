"""HTML of a notebook's output, read by a parser: its elements, its words, and whether it keeps to itself."""

from html.parser import HTMLParser

MEAN = '<script>alert(1)</script><img src=x onerror="alert(2)">'
"""A name that would run if it were not escaped."""
ELEMENTS = {
    *("style", "div", "p", "span", "strong", "code", "ul", "li", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "path", "line"),
}


class Read(HTMLParser):
    """The elements of some HTML, and all that a reader sees of it."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self.open = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS, tag
        assert not [name for name, value in attrs if name.startswith("on") or name in ("href", "src", "style")]
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            assert "url(" not in data
            assert "@import" not in data
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def count(self, tag, **attributes):
        return sum(own == tag and attributes.items() <= found.items() for own, found in self.elements)


def shown(value):
    """Return what a notebook shows of an object; whatever could run or fetch something fails."""
    found = Read(value._repr_html_())
    assert found.count("div", tabindex="0") == 1  # where it is wider than a phone, a keyboard can scroll it
    return found
