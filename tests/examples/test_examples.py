"""Every script of the gallery runs offline in a process of its own, holds what it asserts, and leaves its picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "style")
PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"


def test_every_script_has_a_picture_and_a_place_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 8
    for name in SCRIPTS:
        assert (EXAMPLES / "pictures" / f"{name}.png").is_file(), name
        assert f"examples/pictures/{name}.png" in page and f"examples/{name}.py" in page, name


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_holds_what_it_asserts(name, tmp_path):
    """Offline: proxies that lead nowhere make every attempt to reach a network fail."""
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed")
    nowhere = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "http://127.0.0.1:9")
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), str(tmp_path)]
    run = subprocess.run(command, env=os.environ | nowhere, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout + run.stderr
    picture = (tmp_path / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
