"""The name under which the package is published, the lines that install it, and the package that goes by its own name.

What is imported as `mescal` is published as `mescal-opt`: on the public index `mescal` is another package (energy systems
and life-cycle assessment). Both put a folder `mescal` into the same place, and `mescal/__init__.py` is that of whichever
was installed last. So an environment has room for one of them: `warn_of_namesake` says so where this one is imported
beside the other's metadata, and `displaced` tells the command line that the other one is what Python finds.
"""

import sys
import warnings
from pathlib import Path

NAME = "mescal-opt"


def install(*extras: str) -> str:
    """The line that installs the package with these extras."""
    wanted = f"'{NAME}[{','.join(extras)}]'" if extras else NAME
    return f"pip install {wanted}"


ONE_OF_THEM = f"pip uninstall mescal {NAME}, then {install()}; keep the other package in an environment of its own"


def namesakes(folder: Path) -> list[str]:
    """Metadata of other distributions named `mescal` in a folder of packages; ours begin with `mescal_opt-`."""
    return sorted(path.name for path in folder.glob("mescal-*.dist-info"))


def warn_of_namesake(folder: Path = Path(__file__).parents[1]) -> None:
    """Warn where another package named `mescal` is installed in the folder that this one was imported from."""
    if found := namesakes(folder):
        warnings.warn(
            f"another package is installed as mescal beside this one ({found[0].removesuffix('.dist-info')}).\n"
            f"  Expected: {NAME} alone; both have a file mescal/__init__.py, and removing or renewing the other one "
            f"breaks this one.\n  What to do: {ONE_OF_THEM}.",
            UserWarning,
            stacklevel=3,
        )


def displaced() -> str | None:
    """What to say where `import mescal` finds the other package although this one's files are there; else None."""
    if hasattr(sys.modules.get("mescal"), "minimize"):
        return None
    return (
        "What Python imports as mescal is another package.\n"
        f"  Expected: the package {NAME}, whose mescal/__init__.py was replaced by that of a package named mescal.\n"
        f"  What to do: {ONE_OF_THEM}."
    )
