"""Sub-solvers of the augmented Lagrangian: one protocol, one driver, one algorithm per file, each imported on first use."""

from typing import TYPE_CHECKING

from ..registry import exported as _exported
from .base import Solver as Solver, SubSolver as SubSolver
from .catalogue import get as get, names as names

if TYPE_CHECKING:
    from .auto import Auto as Auto
    from .natasha2 import Natasha2 as Natasha2
    from .newton_cg import NewtonCG as NewtonCG
    from .null_space import NullSpace as NullSpace
    from .paper.natasha2_paper import Natasha2Paper as Natasha2Paper
    from .paper.natasha2_theory import Natasha2Theory as Natasha2Theory
    from .paper.null_space_theory import NullSpaceTheory as NullSpaceTheory
    from .paper.scr_theory import ScrTheory as ScrTheory
    from .paper.sg_hv_nc_paper import SgHvNcPaper as SgHvNcPaper
    from .paper.sg_hv_nc_theory import SgHvNcTheory as SgHvNcTheory
    from .paper.spider_paper import SpiderPaper as SpiderPaper
    from .paper.spider_theory import SpiderTheory as SpiderTheory
    from .scr import Scr as Scr
    from .sg_hv_nc import SgHvNc as SgHvNc
    from .spider import Spider as Spider
else:
    __getattr__, __dir__ = _exported(__name__, Solver)
