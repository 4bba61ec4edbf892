"""What people find around the code: addresses in one place, workflows with least permissions, a check before every release."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
URLS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
TEXTS = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml"), ROOT / "docs" / "conf.py"]
OURS = re.compile(r"https?://[^\s)>\"']*/mescal(?:-opt)?\b[^\s)>\"']*|https?://mescal[\w-]*\.[^\s)>\"']*", re.I)
PINNED = re.compile(r"\s+(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
check = runpy.run_path(str(ROOT / ".github" / "release_check.py"))["complaints"]


def strange_addresses(text: str, known: dict[str, str]) -> list[str]:
    """Addresses of this project in a text that `[project.urls]` does not begin with."""
    return [found for found in OURS.findall(text) if not found.startswith(tuple(known.values()))]


def test_addresses_of_the_project_are_those_of_project_urls():
    found = {path.name: strange_addresses(path.read_text(encoding="utf-8"), URLS) for path in TEXTS}
    assert len(found) > 10 and {name: strange for name, strange in found.items() if strange} == {}
    assert set(URLS) <= {"Repository", "Documentation", "Changelog", "Issues"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation.get("repository-code") == URLS.get("Repository")


def test_an_address_from_elsewhere_is_found():
    address = "https://example.org/somebody/" + "mescal"
    assert strange_addresses(f"see [it]({address}/issues)", {}) == [f"{address}/issues"]
    assert strange_addresses(f"see {address}/issues", {"Repository": address}) == []


def test_the_citation_is_complete():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "type", "title", "abstract", "authors", "version", "license"} <= set(citation)
    (paper,) = citation["references"]
    assert paper["type"] == "article" and paper["title"] and paper["authors"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_no_more_than_it_must(path):
    """Nothing or reading by default; jobs name what they write; actions by hash, with its version behind it; no secret anywhere."""
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        granted = job.get("permissions", {})
        assert isinstance(granted, dict) and not {"contents", "packages", "actions"} & {
            name for name, level in granted.items() if level == "write"
        }
        assert all(
            step["with"]["persist-credentials"] is False for step in job["steps"] if "checkout" in step.get("uses", "")
        )
    assert [line for line in text.splitlines() if "uses:" in line and not PINNED.fullmatch(line)] == []
    assert "secrets." not in text and "pull_request_target" not in text


def test_every_python_that_the_package_names_is_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert jobs["test"]["strategy"]["matrix"]["python"] == named


def test_only_the_job_that_publishes_can():
    """The right to publish is not in the job that builds, which runs other people's code."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["environment"] == "release"
    assert not any("run" in step for step in jobs["publish"]["steps"])


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_is_a_form(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert asked and all(field["id"] and field["attributes"]["label"] for field in asked)


class TestReleaseCheck:
    CITATION = "type: software\nversion: 0.2.0\ndate-released: 2030-01-31\n"
    CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2030-01-31\n\n### Added\n\n- Something.\n"
    URLS: ClassVar = {"Repository": "https://example.org/it"}

    def test_a_tree_that_is_ready(self):
        assert check("v0.2.0", "0.2.0", self.CITATION, self.CHANGELOG, self.URLS) == []

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"tag": "v0.3.0"}, "the tag is v0.3.0"),
            ({"citation": CITATION.replace("0.2.0", "0.1.0")}, "CITATION.cff is not about 0.2.0"),
            ({"citation": "\nversion: 0.2.0\n"}, "no date-released"),
            ({"changelog": CHANGELOG.replace(" - 2030-01-31", "")}, r"no section \[0.2.0\]"),
            ({"changelog": CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n")}, "under Unreleased"),
            ({"addresses": {}}, "project.urls"),
        ],
    )
    def test_what_was_forgotten_is_said(self, changed, said):
        ready = {"tag": "v0.2.0", "version": "0.2.0", "citation": self.CITATION, "changelog": self.CHANGELOG}
        (sentence,) = check(**({**ready, "addresses": self.URLS} | changed))
        assert re.search(said, sentence)


def test_what_a_template_asks_to_be_run_runs(capsys):
    codes = {code for path in TEMPLATES for code in re.findall(r'python -c "(.+?)"`', path.read_text(encoding="utf-8"))}
    assert codes
    for code in codes:
        exec(code, {})
        assert "jax" in capsys.readouterr().out
