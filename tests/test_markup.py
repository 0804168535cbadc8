import re

import pytest

from guardband.markup import environment, rendered

PAGES = {"white": "#ffffff", "JupyterLab, dark": "#111111", "VS Code, dark": "#1f1f1f"}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def style():
    found = rendered("model.html", title="", settings=[], binding=False, next_step="Do it.")
    return re.search("<style>(.*?)</style>", found, re.DOTALL)[1]


def test_colours_can_be_seen_in_light_and_dark_notebooks(style):
    """WCAG 2.2: 3 for graphics, 4.5 for text. A notebook's theme is not known, so each colour suits every page."""
    colours = set(re.findall(r"#[0-9a-f]{6}", style))
    assert len(colours) >= 5
    assert not [(colour, page) for colour in colours for page in PAGES.values() if contrast(colour, page) < 3]
    assert "ellipsis" not in style
    badges = re.findall(r"badge \{[^}]*?background: (#[0-9a-f]{6})", style)
    assert len(badges) == 5
    assert not [badge for badge in badges if contrast(badge, "#ffffff") < 4.5]


def test_a_style_touches_nothing_else_of_a_notebook(style):
    style = re.sub(r"@media [^{]*\{(.*?\})\s*\}", r"\1", style, flags=re.DOTALL)
    selectors = [one.strip() for rule in style.split("}")[:-1] for one in rule.split("{")[0].split(",")]
    assert all(selector.startswith(".guardband") for selector in selectors)


def test_whatever_is_put_into_a_template_is_escaped():
    made = environment("guardband").from_string("{{ name }}").render(name="<b>")
    assert made == "&lt;b&gt;"
    assert "<b>" not in rendered("model.html", title="<b>", settings=[("<b>", "<b>")], binding=False, next_step="<b>")
