"""Sub-solvers of the augmented Lagrangian: one protocol, one compiled driver, one algorithm per file."""

from .base import Solver as Solver
from .natasha2 import Natasha2 as Natasha2
from .registry import get as get, names as names
from .sg_hv_nc import SgHvNc as SgHvNc
from .spider import Spider as Spider
