"""The judge: proves or refutes second-order stationarity of any point. Knows no solver."""

from .certificate import Certificate as Certificate, Check as Check, Measured as Measured, compared as compared
from .certify import certify as certify
from .tolerance import Tolerance as Tolerance, as_tolerance as as_tolerance
