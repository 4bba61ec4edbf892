"""Negative-curvature searches behind one contract."""

from .base import Found as Found, Search as Search
from .cone import ConeSearch as ConeSearch
from .critical import CriticalCone as CriticalCone
from .lanczos import Lanczos as Lanczos
from .neon2 import Neon2 as Neon2
from .oja import Oja as Oja, TheoryOja as TheoryOja
