"""Helpers for the people who bring their own: Taylor checks of functions, call counts, a conformance suite for sets."""

from .counting import Calls as Calls, count_calls as count_calls
from .set_conformance import check_set as check_set
from .taylor import Slopes as Slopes, check_derivatives as check_derivatives, taylor_slopes as taylor_slopes
