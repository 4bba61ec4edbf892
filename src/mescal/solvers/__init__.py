"""Sub-solvers of the augmented Lagrangian: one protocol, one compiled driver, one algorithm per file."""

from .auto import Auto as Auto
from .base import Solver as Solver
from .natasha2 import Natasha2 as Natasha2
from .natasha2_theory import Natasha2Theory as Natasha2Theory
from .newton_cg import NewtonCG as NewtonCG
from .registry import get as get, names as names
from .scr import Scr as Scr
from .scr_theory import ScrTheory as ScrTheory
from .sg_hv_nc import SgHvNc as SgHvNc
from .sg_hv_nc_theory import SgHvNcTheory as SgHvNcTheory
from .spider import Spider as Spider
from .spider_theory import SpiderTheory as SpiderTheory
