"""Every search of the folder that works on its own: `TheoryOja` needs a plan, since all its parameters are those of a theorem."""

from mescal.curvature import Search, TheoryOja
from mescal.registry import classes

SEARCHES = {cls.name: cls() for cls in classes("mescal.curvature", Search) if cls is not TheoryOja}
