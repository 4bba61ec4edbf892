"""Before a release: the tag, the version of the package, CITATION.cff and the changelog say the same, and nothing is unreleased.

    python .github/release_check.py v0.2.0

Prints what is wrong, a line each; the exit code is 1 where anything is.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def complaints(tag: str, version: str, citation: str, changelog: str, addresses: dict[str, str]) -> list[str]:
    """What keeps this tag from being released: a sentence each, with what to do."""
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag} and src/mescal/version.py says {version}: change one of them")
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff is not about {version}: change its version")
    if not re.search(r"^date-released: \d{4}-\d\d-\d\d$", citation, re.M):
        found.append("CITATION.cff has no date-released: give the day of the release")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        found.append(f"CHANGELOG.md has no section [{version}] with a date: make one of what is under Unreleased")
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if unreleased and unreleased[1].strip():
        found.append("CHANGELOG.md has entries under Unreleased: move them to the section of the release")
    if not addresses:
        found.append("[project.urls] in pyproject.toml is empty: say where the project is")
    return found


def main(tag: str) -> int:
    """Check the tree that this file is in."""
    namespace: dict[str, str] = {}
    exec((ROOT / "src/mescal/version.py").read_text(encoding="utf-8"), namespace)
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md"))
    addresses = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    found = complaints(tag, namespace["__version__"], *texts, addresses)
    print("\n".join(found) or f"{tag} can be released")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
