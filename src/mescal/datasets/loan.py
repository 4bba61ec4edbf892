"""LendingClub loans: 128,375 x 250; +1 where the loan was fully paid; rows ordered A (64,485), then D (63,890).

The paper's extract is not public in full. These are as many closed loans, with as many features, drawn from 148,514
other rows that three public extracts hold between them: the paper's size on other LendingClub rows. The target group
is `home_ownership=MORTGAGE`: 31,356 rows of A here, where the paper's data had 31,966.
"""

import lzma

import numpy as np

from .dataset import Declaration, Encoded
from .places import Files
from .preprocess import (
    Indicators,
    design,
    fill_missing,
    levels,
    numbers,
    one_hot,
    quantile_bins,
    read_columns,
    signs,
    standardise,
)

FILES = Files(
    {"lc_pooled_real.csv.xz": "681aaa44d185782fbf03f2207d84e32c54fa96bf8cb2e3f70ccc4bed294b6035"},
    unpublished="it was pooled from three public extracts and has no single public source",
)
NUMERIC = ("loan_amnt", "annual_inc", "dti", "revol_bal", "revol_util", "open_acc", "payment_inc_ratio")
CATEGORIES = ("term", "purpose", "home_ownership", "emp_length", "delinq_2yrs_zero", "pub_rec_zero")
SEED = 0
POPULATION, USED = 64_485, 128_375  # |A|, |A| + |D|
BINS, DIMENSION = 30, 250


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """7 standardised numerics, indicators of the categories, and bins of the numerics; statistics over used rows."""
    with lzma.open(FILES.find()["lc_pooled_real.csv.xz"], "rt", encoding="utf-8", newline="") as file:
        table = read_columns(file)
    order = np.random.RandomState(SEED).permutation(len(table["status"]))[:USED]
    values = fill_missing(np.stack([numbers(table[name]) for name in NUMERIC], axis=1)[order])
    groups = {name: levels(table[name]).at(order) for name in CATEGORIES}
    indicators = [one_hot(name, groups[name]) for name in CATEGORIES]
    if encoding == "paper":
        indicators += _bins(values, DIMENSION - len(NUMERIC) - sum(len(group.names) for group in indicators))
    return Encoded(
        design(standardise(values), indicators, dtype),
        signs(levels(table["status"]).at(order).texts == "Fully Paid", dtype),
        (*NUMERIC, *(name for group in indicators for name in group.names)),
        groups={name: group.texts for name, group in groups.items()},
        population=slice(0, POPULATION),
        labelled=slice(POPULATION, USED),
    )


def _bins(values: np.ndarray, total: int) -> list[Indicators]:
    """Quantile bins of every numeric; the last one gets the number of bins that makes `total` indicators in all."""
    groups = [quantile_bins(name, column, BINS) for name, column in zip(NUMERIC[:-1], values.T[:-1], strict=True)]
    wanted = total - sum(len(group.names) for group in groups)
    # Merged edges can only lose bins, so the search starts at the number wanted.
    attempts = (quantile_bins(NUMERIC[-1], values[:, -1], bins) for bins in range(wanted, 4 * wanted))
    return [*groups, next(group for group in attempts if len(group.names) == wanted)]


DATASET = Declaration(
    name="loan",
    encode=encode,
    encodings={
        "paper": "7 standardised numerics, 36 indicators, 207 quantile-bin indicators; rows of length 1; d = 250",
        "compact": "7 standardised numerics, 36 indicators; rows of length 1; d = 43",
    },
    description="128,375 closed LendingClub loans: fully paid (+1), or charged off or in default (-1). The paper's "
    "size, on other rows than the paper's, which are not public in full",
    citation="LendingClub loan data 2007-2014, pooled from three public extracts",
    licence="LendingClub's public loan data; not redistributed here",
)
