"""Named problems: what the paper solved, saddles, classics with noise, and families for scaling studies.

`get(name, **parameters)` makes one; `names()` lists them and `about(name)` their parameters. To add problems, add one
file with a `PROBLEMS`; names, the command line and the tests find them by themselves.
"""

from .named import (
    Entry as Entry,
    Instance as Instance,
    NamedProblem as NamedProblem,
    Parameter as Parameter,
    about as about,
    get as get,
    names as names,
    parse as parse,
)
