"""The picture of the first page: intervals beside true values, for rows that neither trained nor calibrated.

python docs/front_picture.py    draws docs/intervals-light.svg and -dark.svg anew
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

DOCS = Path(__file__).parent
ROWS, WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 40, 560, 330, 40, 30, 300
COLOURS = {
    "light": {
        "text": "#48566b",
        "grid": "#d1d5da",
        "band": "#8ea2ee",
        "point": "#3b4cb8",
        "in": "#222832",
        "out": "#c2410c",
    },
    "dark": {
        "text": "#a9b5c3",
        "grid": "#48566b",
        "band": "#4d5fc4",
        "point": "#7fe0c8",
        "in": "#f3f4f5",
        "out": "#ff9a5c",
    },
}


def rows() -> np.ndarray:
    """Return lower bound, prediction, upper bound and true value of the rows, by prediction: ``(ROWS, 4)``."""
    from sklearn.datasets import load_diabetes

    import guardband as gb

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = gb.IntervalRegressor(confidence_level=0.9, preset="fast", random_state=0).fit(X[ROWS:], y[ROWS:])
    bands = model.predict_interval(X[:ROWS])
    found = np.column_stack([bands.lower, bands.point, bands.upper, y[:ROWS]])
    return found[np.argsort(bands.point, kind="stable")]


def svg(found: np.ndarray, colour: dict[str, str]) -> str:
    """Return the drawing: a bar from bound to bound, a dash at the prediction, a dot at the true value."""
    top = 50 * np.ceil(found.max() / 50)
    inside = (found[:, 0] <= found[:, 3]) & (found[:, 3] <= found[:, 2])
    step = (WIDTH - LEFT - 8) / len(found)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * value / top, 1)

    parts = []
    for value in np.arange(0, top + 1, 100):
        parts.append(f'<path stroke="{colour["grid"]}" d="M{LEFT} {y(value)}H{WIDTH}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{value:.0f}</text>')
    for place, ((lower, point, upper, true), is_in) in enumerate(zip(found, inside, strict=True)):
        x = round(LEFT + 8 + step * (place + 0.5), 1)
        parts.append(f'<path stroke="{colour["band"]}" stroke-width="6" d="M{x} {y(lower)}V{y(upper)}"/>')
        parts.append(f'<path stroke="{colour["point"]}" stroke-width="2" d="M{x - 5} {y(point)}h10"/>')
        parts.append(f'<circle cx="{x}" cy="{y(true)}" r="3" fill="{colour["in" if is_in else "out"]}"/>')
    legend = [("band", "90% interval"), ("point", "prediction"), ("in", "true value inside"), ("out", "outside")]
    for (name, words), x in zip(legend, (LEFT, 168, 272, 410), strict=True):
        parts.append(
            f'<circle cx="{x + 6}" cy="12" r="5" fill="{colour[name]}"/><text x="{x + 16}" y="16">{words}</text>'
        )
    under = f"{len(found)} test rows, in order of their prediction: {inside.sum()} of them fall inside"
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{under}</text>')
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    return f'{start} font-size="13" fill="{colour["text"]}">\n' + "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    drawn = rows()
    for name, colour in COLOURS.items():
        (DOCS / f"intervals-{name}.svg").write_text(svg(drawn, colour), encoding="utf-8")
