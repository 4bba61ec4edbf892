"""Pieces of HTML: text that cannot break out of its place, attributes, and JSON inside a page."""

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any


def text(value: Any) -> str:
    """Any value as text of a page or of a quoted attribute."""
    return html.escape(str(value), quote=True)


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """An element around markup; `class_` is `class`, `data_value` is `data-value`; None leaves an attribute out."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{inside}>{content}</{name}>"


def script_json(content: Any, **attributes: Any) -> str:
    """Data for the page's script, in an element that the browser does not run and that no text can close."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        body = body.replace(character, f"\\u{ord(character):04x}")
    return tag("script", body, type="application/json", **attributes)


def definitions(pairs: Mapping[str, str] | Iterable[tuple[str, str]], **attributes: Any) -> str:
    """A list of terms and what stands for them, both already markup."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return tag("dl", "".join(f"<div><dt>{term}</dt><dd>{what}</dd></div>" for term, what in items), **attributes)
