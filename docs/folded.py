"""Pages whose sections are folded: a list of titles, each of which opens what stands below it."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

PAGES = ("faq",)


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


class Fold(SphinxPostTransform):
    """The title of each section below the page's own becomes the summary of its details."""

    default_priority = 800
    formats = ("html",)

    def run(self) -> None:
        """Put tags around the title and behind the rest; ids stay with the section, so that links lead there."""
        if self.env.docname not in PAGES:
            return
        for section in self.document[0].findall(nodes.section):
            if section.parent is self.document[0]:
                section.insert(0, _html("<details><summary>"))
                section.insert(2, _html("</summary>"))
                section.append(_html("</details>"))


def setup(app) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(Fold)
    return {"parallel_read_safe": True}
