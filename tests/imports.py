"""Who imports whom: the order of the layers, and what each module of the package imports."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Lower layers first; a module may import from its own layer and from those before it. A name is a folder of
# src/guardband or a module there. Nothing else states the order: tests and the picture in CONTRIBUTING.md read it here.
LAYERS = [
    ("exceptions", "words", "progress", "markup"),
    ("bands", "planning", "metrics", "pipelines"),
    ("data",),
    ("nn",),
    ("training",),
    ("images",),
    ("calibration",),
    ("methods",),
    ("learning", "extend"),
    ("audit",),
    ("monitor",),
    ("explain",),
    ("report",),
    ("doors",),
    ("experiments", "mlflow", "ray"),
    ("cli", "__main__"),
]


def part_of(name):
    """Return the folder or module at the top of the package that a module belongs to; for the package itself, ''."""
    return f"{name}.".split(".")[1]


class Package:
    """A package's modules by full name, and what each imports."""

    def __init__(self, folder=ROOT / "src" / "guardband"):
        found = {path.relative_to(folder.parent).with_suffix(""): path for path in folder.rglob("*.py")}
        self.name = folder.name
        self.files = {".".join(path.parts).removesuffix(".__init__"): found[path] for path in sorted(found)}
        # Public names of the package that load when they are used, and the module that each is from.
        root = [node for node, _ in statements(self._tree(self.name)) if isinstance(node, ast.ImportFrom)]
        self._homes = {f"{self.name}.{alias.name}": node.module for node in root for alias in node.names}

    @cache  # noqa: B019
    def _tree(self, name):
        return ast.parse(self.files[name].read_text())

    @cache  # noqa: B019
    def imports(self, name, *, loading=False):
        """Return the full names of the modules that a module imports; ``loading``: while it is itself imported.

        ``from a import b`` is ``a.b`` where that is a module, and ``a`` otherwise.
        """
        found = set()
        for node, is_late in statements(self._tree(name)):
            if not (loading and is_late):
                found |= self._targets(name, node)
        return found if loading else found | self._used_through_the_package(name)

    def inside(self, name, *, loading=False):
        """Return those of the imports that are modules of the package."""
        return {other for other in self.imports(name, loading=loading) if other.split(".")[0] == self.name}

    def loads(self, name):
        """Return the modules that must have been loaded before a module is: also the packages around those."""
        found = self.inside(name, loading=True)
        return found | {outer for other in found for outer in around(other)} - {name, *around(name)}

    def _targets(self, name, node):
        if isinstance(node, ast.Import):
            return {alias.name for alias in node.names}
        base = node.module or ""
        if node.level:
            here = name.split(".") + ["__init__"] * (self.files[name].stem == "__init__")
            base = ".".join([*here[: -node.level], *filter(None, [base])])
        return {self._module(f"{base}.{alias.name}") for alias in node.names}

    def _module(self, name):
        return name if name in self.files else self._homes.get(name, name.rpartition(".")[0])

    def _used_through_the_package(self, name):
        """Return the modules behind ``guardband.calibrate`` and the like, which load what they name."""
        tree = self._tree(name)
        plain = [node for node, _ in statements(tree) if isinstance(node, ast.Import)]
        bound = {alias.asname or self.name for node in plain for alias in node.names if alias.name == self.name}
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
        return {self._module(f"{self.name}.{node.attr}") for node in used if node.value.id in bound}


def around(name):
    """Return the packages around a module: a.b.c lies in a.b and in a."""
    parts = name.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def statements(node, is_late=False):
    """Yield the import statements below a node, and whether each is in a function or for a type checker only."""
    for_types = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    for child in ast.iter_child_nodes(node):
        late = (
            is_late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (for_types and child in node.body)
        )
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        else:
            yield from statements(child, late)
