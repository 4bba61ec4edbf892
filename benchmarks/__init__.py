"""Benchmarks: `python -m benchmarks` runs all, `python -m benchmarks oracle_gradient` one; `--list` names them.

A benchmark is one file of this folder whose name does not start with an underscore: its first line says what it measures,
and its function `run(quick)` returns a `Report`. Results go to `results/<name>.json`; sources cite them by file name.
"""
