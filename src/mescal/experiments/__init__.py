"""Runs that are kept: one run and its folder, sweeps over many, the paper's experiments, tables of what came out."""

from .store import (
    SCHEMA as SCHEMA,
    StoredRun as StoredRun,
    load_run as load_run,
    load_runs as load_runs,
    write_config as write_config,
    write_result as write_result,
)
