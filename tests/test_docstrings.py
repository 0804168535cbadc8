"""Every parameter of every public name is documented by an entry of its own, in the order of the signature."""

import inspect
import warnings

import pytest

from voice import public_objects

docscrape = pytest.importorskip("numpydoc.docscrape", reason="needs numpydoc, of the extra dev")

MADE_BY_CALIBRATE = ("GuardedModel",)
"""Nobody calls these constructors but ``gb.calibrate``, which documents its own arguments."""

CALLABLES = {name: own for name, own in public_objects().items() if not isinstance(own, property)}


def section(own):
    """Return names, types and texts of the section Parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpydoc warns of sections that it does not know
        entries = docscrape.NumpyDocString(inspect.getdoc(own) or "")["Parameters"]
    return [(entry.name.lstrip("*"), entry.type, " ".join(entry.desc)) for entry in entries]


def bases_of(own):
    """Return the classes that a class, or the class of a method, comes from."""
    owner = own if inspect.isclass(own) else getattr(inspect.getmodule(own), own.__qualname__.split(".")[0])
    return owner.__mro__[1:] if inspect.isclass(owner) else ()


def is_told_elsewhere(own):
    """Return whether a method is that of a base class, in this package or in torch, which documents it.

    An exception is made by guardband alone; a class without arguments of its own has none to tell of.
    """
    if inspect.isclass(own):
        nothing_to_tell = issubclass(own, BaseException) or own.__init__ is object.__init__
        return nothing_to_tell or own.__name__ in MADE_BY_CALIBRATE
    return any(own.__name__ in vars(base) for base in bases_of(own) if base is not object)


def wanted(own):
    """Return the parameters that need an entry: fields of a base class have theirs in its docstring."""
    every = inspect.signature(own).parameters
    names = [name for name in every if name not in ("self", "cls")]
    if not inspect.isclass(own):
        return names
    if names == ["args", "kwargs"]:
        return []  # nothing of its own: the arguments of torch.nn.Module
    ours = [base for base in bases_of(own) if base.__module__.startswith("guardband.")]
    told = {name for base in ours for name, _, _ in section(base)}
    return [name for name in names if name not in told]


@pytest.mark.parametrize("name", [name for name, own in CALLABLES.items() if not is_told_elsewhere(own)])
def test_every_parameter_has_an_entry_of_its_own(name):
    own = CALLABLES[name]
    found = section(own)
    assert [entry for entry, _, _ in found] == wanted(own)
    for entry, _, text in found:
        assert text.endswith("."), f"{entry} has no sentence"
        assert not text.lower().startswith("see "), f"{entry} refers elsewhere"


@pytest.mark.parametrize("name", CALLABLES)
def test_every_public_name_begins_with_one_sentence(name):
    first = (inspect.getdoc(CALLABLES[name]) or "").split("\n\n")[0]
    assert first.rstrip().endswith((".", ":"))


def test_defaults_are_those_of_the_signature():
    wrong = []
    for name, own in CALLABLES.items():
        if is_told_elsewhere(own):
            continue
        every = inspect.signature(own).parameters
        for entry, kind, _ in section(own):
            default = every[entry].default
            told = kind.rpartition("default ")[2] if "default " in kind else None
            simple = isinstance(default, bool | int | float | str)
            if simple and told is not None and told not in (repr(default), f'"{default}"'):
                wrong.append(f"{name}.{entry}: {told}, not {default!r}")
    assert wrong == []
