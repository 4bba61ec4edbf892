"""What the estimators share: the fit, the table of the constraints, and pickling."""

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ..certificate import Tolerance
from . import model as models
from .buckets import Scaling, bucket_columns, bucket_rows, pad
from .fit import by_name, looked_at_whole, report_failure, solve
from .groups import Groups, as_objects, check_groups, check_known
from .inputs import check_positive, check_weights
from .model import scores_of
from .rates import RateConstraint
from .start import penalties
from .statement import Kind, Labelled, NoRows, apart, make_problem


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: type) -> type:
    """A class whose annotated attributes are the parameters of its constructor, by keyword unless they say otherwise.

    scikit-learn reads them from the signature, so that what is declared here is all there is to get, set, clone and search.
    """
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


COLUMNS = "value", "bound", "met", "margin", "smooth_value", "smooth_bound"  # of a constraint on data
FITTED = (
    "feasible_",
    "certified_",
    "threshold_",
    "calibration_negatives_",
)  # what a fit that is refused must not leave


@parameters
class Constrained(BaseEstimator):
    """Abstract: an estimator that minimises a loss under constraints on means over rows.

    A final class has the parameters below and its own, and a `fit` that says which constraints.
    """

    ridge: float = 1e-4
    model: Any = None
    standardize: bool = True
    sharpness: float = 1.0
    solver: Any = "auto"
    tol: float = 1e-4
    feasibility: float | None = None
    max_outer: int = 100
    verbose: bool = False
    random_state: Any = None

    n_features_in_: int = field(init=False)
    _plane: tuple[np.ndarray, Any] | None = field(
        init=False
    )  # weights and intercept of the linear model, in units of X
    _outputs: int = field(init=False)  # numbers that the model has for a row

    def _check_rows(self, X: Any, sample_weight: Any, sensitive_features: Any) -> tuple[np.ndarray, Groups | None]:
        """Weights and groups of the rows of a fit, and the parameters that all estimators have, checked."""
        for name in FITTED:
            vars(self).pop(name, None)
        for name in ("tol", "sharpness"):
            check_positive(self, name)
        check_positive(self, "ridge", zero=True)
        groups = check_groups(sensitive_features, len(X))
        self.groups_ = None if groups is None else as_objects(groups.all)
        return check_weights(sample_weight, X), groups

    def _minimise(
        self, kind: Kind, rows: Any, data: Labelled, constraints: dict[str, RateConstraint], start: tuple[Any, float]
    ):
        """Scale, pad, solve, finish, judge; from a constant model and its loss."""
        count, width = bucket_rows(len(data.y)), data.features.shape[1]
        columns = bucket_columns(width) if self.model is None else width
        whole = looked_at_whole(self.solver, count, columns)
        dtype = "float64" if whole else "float32"
        self.scaling_ = Scaling.of(data.features, data.weights) if self.standardize else Scaling.none(width)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._outputs = max(1, np.size(start[0]))
        if self.model is None:
            begun = models.linear(columns, start[0], dtype)
        else:
            begun = models.make_model(self.model, width, seed, dtype, self._outputs)
        weighted = rows._replace(features=self.scaling_(data.features))
        sources = [pad(part, columns, dtype) for part in ([weighted] if whole else apart(weighted, data, constraints))]
        tol = Tolerance(self.tol, self.tol, feasibility=self.feasibility)
        solved = solve(
            make_problem(kind, sources, constraints, float(self.ridge)),
            begun,
            count,
            whole=whole,
            solver=self.solver,
            tol=tol,
            penalties=penalties(start[1], whole),
            max_outer=self.max_outer,
            seed=seed,
            progress=bool(self.verbose),
        )
        right = partial(self._right_sides, kind, data, constraints)
        self.result_ = by_name(solved.result, constraints, right(solved.result.x))
        self.certificate_, self.model_ = by_name(solved.certificate, constraints, right(solved.model)), solved.model
        self.constraints_ = dict(constraints)
        self.multipliers_ = dict(zip(constraints, solved.multipliers.tolist(), strict=True))
        self._plane = self._in_units_of_X(solved.model) if self.model is None else None
        for name in ("coef_", "intercept_"):  # an earlier fit of the linear model may have left them
            vars(self).pop(name, None)
        raw = self._raw(data.features)
        report_failure(solved, constraints, lambda subset: kind.smooth(subset, data, raw, self.sharpness), tol)
        self.feasible_, self.certified_ = solved.is_feasible(tol), solved.certificate.passes(tol)

    def _in_units_of_X(self, model: models.Linear | models.Planes) -> tuple[np.ndarray, Any]:
        weights = (np.asarray(model.weights, np.float64)[: self.n_features_in_].T / self.scaling_.scale).T
        return weights, np.asarray(model.bias, np.float64) - self.scaling_.mean @ weights

    def _right_sides(
        self, kind: Kind, data: Labelled, constraints: dict[str, RateConstraint], model: Any
    ) -> dict[str, float]:
        """What a model has on the right of every constraint: the number that was stated, or rates."""
        raw = self._scores(model, self._in_units_of_X(model) if self.model is None else None, data.features)
        return {
            name: each.right.value(lambda subset: kind.smooth(subset, data, raw, self.sharpness))
            for name, each in constraints.items()
        }

    def _scores(self, model: Any, plane: tuple[np.ndarray, Any] | None, X: np.ndarray) -> np.ndarray:
        return scores_of(model, self.scaling_(X)) if plane is None else X @ plane[0] + plane[1]

    def _raw(self, X: np.ndarray) -> np.ndarray:
        """The model's number for every row."""
        return self._scores(self.model_, self._plane, X)

    def _features(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _table(self, kind: Kind, data: Labelled, raw: np.ndarray, offset: float) -> Any:
        """The constraints on data as a pandas DataFrame; `raw` above `offset` is what is counted."""
        import pandas as pd

        check_known(data.groups, self.groups_)
        report, empty = {}, []
        for name, constraint in self.constraints_.items():
            try:
                told = self._told(kind, constraint, data, raw, offset)
            except NoRows as error:
                told = dict.fromkeys(COLUMNS, np.nan) | {"met": None}
                empty.append(error)
            report[name] = told | {"constraint": str(constraint), "multiplier": self.multipliers_[name]}
        if empty and len(empty) == len(report):
            raise empty[0]
        table = pd.DataFrame.from_dict(report, orient="index", columns=["constraint", *COLUMNS, "multiplier"])
        return table.astype({"met": "boolean"})

    def _told(self, kind: Kind, constraint: RateConstraint, data: Labelled, raw: np.ndarray, offset: float) -> dict:
        """Both sides of a constraint on data: as it happens, and as it was constrained."""
        sides = constraint.left, constraint.right
        value, bound = (side.value(lambda subset: kind.hard(subset, data, raw - offset)) for side in sides)
        smooth = [side.value(lambda subset: kind.smooth(subset, data, raw, self.sharpness)) for side in sides]
        met = value <= bound if constraint.sign == "<=" else value >= bound
        margin = kind.margin(constraint.body, data, raw - offset)
        return dict(zip(COLUMNS, (value, bound, met, margin, *smooth), strict=True))

    def _warn_of_counts(self, kind: Kind, data: Labelled, offset: float = 0.0):
        """A warning where smoothed rates meet constraints that what happens misses by more than chance would."""
        if not self.feasible_:
            return
        raw, missed = self._raw(data.features), []
        for name, constraint in self.constraints_.items():
            told = self._told(kind, constraint, data, raw, offset)
            if abs(told["value"] - told["bound"]) > told["margin"] and not told["met"]:
                side = "" if not constraint.right.terms else f", which is {told['bound']:.3g}"
                missed.append(f"{name!r} at {told['value']:.3g} (asked: {constraint}{side})")
        if missed:
            warnings.warn(
                f"The constraints are met by smoothed rates; counted on the rows of the fit, {'; '.join(missed)}. A larger "
                f"sharpness than {self.sharpness:g} brings the two closer; constraint_report shows both.",
                stacklevel=3,
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feasible_")

    def __getstate__(self) -> dict[str, Any]:
        """Of a model by argument the numbers alone: it may hold functions that cannot be pickled, and `model` makes them."""
        state: Any = super().__getstate__()
        if self.model is None or "model_" not in state:
            return state
        held = {"model_": models.numbers(state["model_"]), "result_": models.numbers(state["result_"].x)}
        return state | {"model_": None, "result_": replace(state["result_"], x=None), "_numbers": held}

    def __setstate__(self, state: dict[str, Any]):
        held = state.pop("_numbers", None)
        super().__setstate__(state)
        if held is not None:
            made = models.make_model(self.model, self.n_features_in_, 0, np.float64, self._outputs)
            self.model_ = models.with_numbers(made, held["model_"])
            self.result_ = replace(self.result_, x=models.with_numbers(made, held["result_"]))
