"""What people state beside expectations: ratios, worst groups, functions of rates, risk; each lowers to plain expectations."""

from .algebra import Combined as Combined, Stated as Stated, Statement as Statement
from .nonlinear import of as of
from .ratio import Ratio as Ratio, rate as rate, ratio as ratio
from .risk import chance as chance, cvar as cvar, entropic as entropic, variance as variance
from .worst import worst as worst
