"""What is to be solved: sources of samples, expectations, constraints, the problem, and its slack form."""

from .constraint import Constraint as Constraint
from .expectation import E as E, Expectation as Expectation
from .families import Data as Data, placed_families as placed_families
from .layout import Layout as Layout, Parameters as Parameters, flatten_parameters as flatten_parameters
from .over import Finite as Finite, RowStream as RowStream, Source as Source, stream as stream
from .problem import Problem as Problem
from .processes import agree as agree, speaks as speaks
from .program import Family as Family, Program as Program, Rows as Rows
from .sharding import Sharded as Sharded, ShardedRows as ShardedRows, shard as shard
from .slack import EqualityForm as EqualityForm, equality_form as equality_form
from .source import Population as Population, Sampler as Sampler
from .statements import (
    chance as chance,
    cvar as cvar,
    entropic as entropic,
    of as of,
    rate as rate,
    ratio as ratio,
    variance as variance,
    worst as worst,
)
from .stored import OnDisk as OnDisk, StoredRows as StoredRows, on_disk as on_disk
from .subsample import subsample as subsample
