"""`llms.txt`: what the documentation holds, for programs: every page with its first sentence, in the order of the menu.

Made by the build from the groups of the front page, so that it cannot miss a page or name one that is gone.
"""

import re
from pathlib import Path

GROUP = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.S | re.M)
CAPTION = re.compile(r"^:caption: (.+)$", re.M)


def groups(index: str) -> dict[str, list[str]]:
    """Caption and pages of every group of the front page."""
    found = {}
    for body in GROUP.findall(index):
        caption = CAPTION.search(body)
        assert caption, "every group has a caption"
        found[caption[1]] = [line for line in body.splitlines() if line and not line.startswith(":")]
    return found


def described(page: Path) -> tuple[str, str]:
    """Title and first sentence of a page; of one that includes a file, of that file."""
    text = page.read_text(encoding="utf-8")
    if included := re.match(r"```\{include\} (\S+)", text):
        return described(page.parent / included[1])
    title, _, rest = text.partition("\n")
    paragraphs = (part.strip() for part in re.sub(r"^```.*?^```$", "", rest, flags=re.S | re.M).split("\n\n"))
    first = next((part for part in paragraphs if re.match(r"[\w`*[]", part)), "")
    plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return title.removeprefix("# "), re.split(r"(?<=[.!?])\s", plain, maxsplit=1)[0].rstrip(":")


def llms(folder: Path) -> str:
    """The file as text."""
    readme = (folder.parent / "README.md").read_text(encoding="utf-8")
    summary = re.search(r"^\*\*(.+?)\*\*$", readme, re.S | re.M)
    assert summary, "the README says in bold what the project is"
    lines = ["# mescal", "", f"> {' '.join(summary[1].split())}"]
    for caption, pages in groups((folder / "index.md").read_text(encoding="utf-8")).items():
        lines += ["", f"## {caption}", ""]
        for page in pages:
            title, sentence = described(folder / f"{page}.md")
            lines.append(f"- [{title}]({page}.html)" + (f": {sentence}" if sentence else ""))
    return "\n".join(lines) + "\n"


def write(app, error) -> None:
    """Write the file beside the pages."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(llms(Path(app.srcdir)), encoding="utf-8")


def setup(app) -> dict[str, bool]:
    """Register the hook."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
