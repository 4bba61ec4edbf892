"""The page of the documentation that maps symbols to functions: every name on it exists, and none is missing."""

import dataclasses
import re
from pathlib import Path

from mescal import theory

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"theory((?:\.\w+)+)", PAGE))


def test_every_name_on_the_page_exists():
    assert len(NAMES) > 40
    for name in NAMES:
        found = theory
        for part in name.removeprefix(".").split("."):
            found = getattr(found, part)


def test_every_public_name_is_on_the_page():
    mentioned = {name.split(".")[1] for name in NAMES}
    assert set(theory.__all__) - mentioned == {"outer"}  # its functions are there by their own names


def test_every_constant_is_on_the_page():
    for record in (theory.ProblemConstants, theory.SubproblemConstants):
        for field in dataclasses.fields(record):
            assert f"`{field.name}`" in PAGE
