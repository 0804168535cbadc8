"""What guardband is made of: every package has a hash and a licence, and the tables say what is installed."""

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import bill
import licences
import packages

PERMISSIVE = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0"),
    *("ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Unlicense", "Zlib"),
}
BY_FILE = {"MPL-2.0"}
"""Only who changes their files must publish the change."""


def is_everything_installed():
    for name, version in packages.pinned().items():
        try:
            if packages.canonicalize_name(name) not in packages.SETTLED and own_version(name) != version:
                return False
        except metadata.PackageNotFoundError:
            return False
    return True


def own_version(name):
    return metadata.version(name).split("+")[0]


EVERYTHING = pytest.mark.skipif(
    not is_everything_installed(), reason="needs the packages of constraints.txt, and no others"
)


def test_every_pinned_package_but_torch_is_locked_by_its_hash():
    wanted = {packages.canonicalize_name(name): version for name, version in packages.pinned().items()}
    del wanted["torch"]
    locked = packages.pinned(packages.LOCKED)
    assert {packages.canonicalize_name(name): version for name, version in locked.items()} == wanted
    assert all(packages.hashes()[name] for name in wanted)


def test_no_registry_is_named():
    for path in (packages.CONSTRAINTS, packages.LOCKED, bill.FILE):
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host", path.read_text())


@EVERYTHING
def test_the_page_of_licences_is_current():
    assert licences.PAGE.read_text() == licences.page(), "packages have changed: python tools/licences.py"


@EVERYTHING
def test_the_bill_of_materials_is_current():
    assert json.loads(bill.FILE.read_text()) == bill.bill(), "packages have changed: python tools/bill.py"


@EVERYTHING
def test_every_licence_is_known_and_users_get_permissive_ones():
    for own in packages.packages():
        assert own.licence != "UNKNOWN", own
        if own.is_for_users:
            parts = set(re.split(r" AND | OR ", own.licence))
            assert parts <= PERMISSIVE | BY_FILE, own


@EVERYTHING
def test_what_every_user_needs_is_all_permissive():
    for own in packages.packages():
        if not own.used_for:
            assert set(re.split(r" AND | OR ", own.licence)) <= PERMISSIVE, own


def test_the_bill_names_each_package_once_with_its_hash():
    components = json.loads(bill.FILE.read_text())["components"]
    assert len({own["bom-ref"] for own in components}) == len(components)
    assert {own["name"] for own in components if "hashes" not in own} == {"torch"}
    assert {"torch", "numpy", "safetensors"} <= {own["name"] for own in components if own["scope"] == "required"}
    assert {"pandas", "cryptography"} <= {own["name"] for own in components if own["scope"] == "optional"}
    assert "pytest" not in {own["name"] for own in components}


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("Licensed under the Apache License, Version 2.0 (the", "Apache-2.0"),
        ("Redistributions in binary form must. Neither the name of X nor", "BSD-3-Clause"),
        ("Redistributions in binary form must reproduce", "BSD-2-Clause"),
        ("Permission is hereby granted, free of charge, to", "MIT"),
        ("All rights reserved.", None),
    ],
)
def test_the_text_of_a_licence_is_told_by_its_words(text, licence):
    assert next((short for pattern, short in packages.TEXTS if re.search(pattern, text)), None) == licence
