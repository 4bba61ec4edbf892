"""Checks of what is passed to the classifiers, in scikit-learn's conventions: every error is a ValueError."""

import numbers
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from ..errors import InputError


def check_positive(estimator: Any, name: str, zero: bool = False):
    """A parameter that must be a positive number (or zero, where that is allowed)."""
    value = getattr(estimator, name)
    if not _is_number(value) or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(
            f"{name}={value!r}", f"a {'non-negative' if zero else 'positive'} number", "leave it out for the default"
        )


def check_fraction(name: str, value: Any, one: bool = False):
    """A parameter that must lie strictly between 0 and 1 (or be 1, where that is allowed)."""
    if not _is_number(value) or not (0 < value < 1 or (one and value == 1)):
        raise InputError(
            f"{name}={value!r}",
            f"a number above 0 and {'at most' if one else 'below'} 1",
            "rates and probabilities are fractions, not percentages",
        )


def check_target(
    y: Any, kept: np.ndarray, pos_label: Any = None, only_two: str | None = None
) -> tuple[np.ndarray, Any, np.ndarray]:
    """The classes in sorted order, the positive one, and the codes of the labels; `kept` are the rows of positive weight.

    Of two classes the positive one has the code 1. Of more, where those are allowed, the code is the place, and none is
    positive unless it is named. `only_two` is what to do with more, where those are not allowed.
    """
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    if kind != "binary" and len(classes) != 1 and not (only_two is None and kind == "multiclass"):
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}",
            f"two classes; there are {', '.join(map(repr, classes.tolist()[:4]))}{', ...' if len(classes) > 4 else ''}",
            only_two
            or "one column of labels; sklearn.multioutput.MultiOutputClassifier fits one classifier per column",
        )
    present = np.unique(codes[kept])
    if len(present) < 2:
        shown = classes[present[0] : present[0] + 1].tolist()[0] if len(present) else "none"
        raise InputError(
            f"y holds one class alone among rows of positive weight: {shown!r}",
            "two classes: rates of positives and negatives need both",
            "check how the rows were filtered or split; train_test_split(..., stratify=y) keeps both classes",
        )
    place = len(classes) - 1
    if pos_label is not None:
        places = [at for at, value in enumerate(classes.tolist()) if value == pos_label]
        if not places:
            raise InputError(
                f"pos_label={pos_label!r}", f"one of the classes of y, {classes.tolist()}", "check its type"
            )
        place = places[0]
    if len(classes) > 2:
        return classes, None if pos_label is None else classes[place], codes
    return classes, classes[place], (codes == place).astype(int)


def labels_of(y: np.ndarray, classes: np.ndarray, positive: Any) -> np.ndarray:
    """Codes of labels after the fit."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise InputError(
            f"y holds classes that were not there in fit: {unknown[:4].tolist()}",
            f"the classes {classes.tolist()}",
            "encode y as it was encoded for fit",
        )
    return np.searchsorted(classes, y) if len(classes) > 2 else (y == positive).astype(int)


def check_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray:
    """Weights of the rows, non-negative."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any() or not weights.sum() > 0:
        raise InputError(
            f"sample_weight holds {weights.min():g}, and sums to {weights.sum():g}",
            "non-negative weights with a positive sum",
            "check how the weights were made",
        )
    return weights


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)
