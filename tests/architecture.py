"""The picture of the imports in CONTRIBUTING.md.

python tests/architecture.py            prints it
python tests/architecture.py --write    draws it anew
"""

import re
import sys
from graphlib import TopologicalSorter

from imports import LAYERS, ROOT, Package, part_of

PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- architecture: begin -->\n).*?(?=<!-- architecture: end -->)", re.DOTALL)


def parts(package):
    """Return what each folder or module at the top of the package imports of the others, lower layers first."""
    found = {part: set() for layer in LAYERS for part in layer}
    for name in package.files:
        if part := part_of(name):
            found[part] |= {part_of(other) for other in package.inside(name)} - {part, ""}
    return found


def reduced(graph):
    """Return the graph without the arrows that follow from others: no a -> c where a -> b -> c."""
    below: dict = {}
    for part in TopologicalSorter(graph).static_order():
        below[part] = graph[part].union(*(below[other] for other in graph[part]))
    return {part: others - set().union(*(below[other] for other in others)) for part, others in graph.items()}


def drawn(package):
    """Return the picture in Mermaid, upper layers first."""
    graph = reduced(parts(package))
    order = list(graph)
    arrows = [
        f"    {part} --> {' & '.join(sorted(graph[part], key=order.index))}" for part in order[::-1] if graph[part]
    ]
    return "\n".join(["```mermaid", "flowchart TB", *arrows, "```", ""])


if __name__ == "__main__":
    picture = drawn(Package())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(BLOCK.sub(lambda _: picture, PAGE.read_text()))
    else:
        print(picture, end="")
