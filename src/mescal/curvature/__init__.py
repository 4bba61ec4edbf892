"""Negative-curvature searches behind one contract, one per file: `Search.named("oja")` finds one by its name."""

from typing import TYPE_CHECKING

from ..registry import exported as _exported
from .cone_search import ConeSearch as ConeSearch
from .contract import Found as Found, Search as Search
from .critical import CriticalCone as CriticalCone
from .lanczos import Lanczos as Lanczos
from .neon2 import Neon2 as Neon2
from .oja import Oja as Oja, TheoryOja as TheoryOja

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exported(__name__, Search)
