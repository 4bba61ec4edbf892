"""What is to be solved: sources of samples, expectations, constraints, the problem, and its slack form."""

from .constraint import Constraint as Constraint
from .expectation import E as E, Expectation as Expectation
from .layout import Layout as Layout
from .parameters import Parameters as Parameters, flatten_parameters as flatten_parameters
from .problem import Problem as Problem
from .program import Program as Program, Rows as Rows
from .slack import EqualityForm as EqualityForm, equality_form as equality_form
from .source import Population as Population, Sampler as Sampler
