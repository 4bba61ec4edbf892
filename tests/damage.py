"""Contents of files with an entry replaced or taken out, wherever it is."""

import json
from collections.abc import Iterator
from typing import Any


def paths(content: Any, inside: tuple = ()) -> Iterator[tuple]:
    """Where its entries are, at any depth."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*inside, key)
        if isinstance(value, (dict, list)):
            yield from paths(value, (*inside, key))


def changed(content: Any, path: tuple, *value: Any) -> Any:
    """A copy with the entry at a path replaced, or taken out."""
    content = json.loads(json.dumps(content))
    inside = content
    for key in path[:-1]:
        inside = inside[key]
    if value:
        inside[path[-1]] = value[0]
    else:
        del inside[path[-1]]
    return content
