"""Scores of any JAX model in float64, in chunks of few shapes: predictions on new numbers of rows compile nothing."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .model import logits
from .rows import POWERS, bucket_rows


def scores_of(model: Any, features: np.ndarray) -> np.ndarray:
    """The model's number for every row, or its numbers where it has one per class."""
    parts = []
    with jax.enable_x64(True):
        for start in range(0, len(features), POWERS):
            rows = features[start : start + POWERS]
            padded = np.concatenate([rows, np.repeat(rows[:1], bucket_rows(len(rows)) - len(rows), axis=0)])
            parts.append(np.asarray(logits(model, jnp.asarray(padded)), np.float64)[: len(rows)])
    scores = np.concatenate(parts)
    return scores[:, 0] if scores.shape[1] == 1 else scores
