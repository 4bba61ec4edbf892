"""All randomness and all derivatives: the augmented Lagrangian as an oracle whose estimates carry their price."""

from .lagrangian import Exact as Exact, Lagrangian as Lagrangian
from .surrogates import Surrogate as Surrogate, surrogate as surrogate, surrogates as surrogates
from .work import Tally as Tally, Work as Work
