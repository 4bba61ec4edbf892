"""Which runs are drawn together: seeds of one solver and nothing else; names that tell the others apart."""

import pytest

from mescal import InputError
from mescal.report.colours import FIXED, LOOKS, looks
from mescal.report.grouping import arrange


def test_a_sweep_is_problems_of_solvers_of_seeds(sweep):
    groups = arrange(sweep)
    assert [group.label for group in groups] == ["toy/one", "toy/two"]
    for group in groups:
        assert [series.label for series in group.series] == ["spider", "sg-hv-nc", "natasha2"]
        assert [series.look for series in group.series] == [0, 1, 2]
        assert all([view.seed for view in series.views] == [0, 1, 2] for series in group.series)


def test_tolerances_and_parameters_are_apart(make_run):
    runs = [make_run(tol=tol, config={"parameters": {"tau": tau, "rho": 1}}) for tol in (0.01, 0.001) for tau in (1, 2)]
    groups = arrange(runs)
    assert [group.label for group in groups] == ["toy/one (tau=1)", "toy/one (tau=2)"] * 2
    assert [group.tolerance_text for group in groups] == ["0.01", "0.01", "0.001", "0.001"]
    (group,) = arrange([make_run(tol={"gradient": 0.01, "curvature": 0.1, "relative": 0.05})])
    assert group.tolerance_text == "0.01, curvature 0.1, relative 0.05"


def test_settings_of_a_solver_make_a_series_of_their_own(make_run):
    runs = [make_run(config={"options": {"batch": 8}}), make_run(), make_run(config={"max_work": 1e6})]
    (group,) = arrange(runs)
    assert [series.label for series in group.series] == [
        "spider, batch=8",
        "spider (max_work=none)",
        "spider (max_work=1e+06)",
    ]
    assert len({series.look for series in group.series}) == 3


def test_no_runs_are_an_error():
    with pytest.raises(InputError, match="no runs"):
        arrange([])


def test_looks_are_told_apart_without_colour():
    assert len({look.dash for look in LOOKS}) == len({look.path for look in LOOKS}) == len(LOOKS)
    assert len({look.marker for look in LOOKS}) == len(LOOKS)
    given = looks(["mine", "spider", "theirs", "natasha2"])
    assert given["spider"] == FIXED["spider"] and given["natasha2"] == FIXED["natasha2"]
    assert len(set(given.values())) == 4
    assert set(looks(map(str, range(20))).values()) == set(range(len(LOOKS)))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("look", LOOKS)
def test_looks_stand_out_from_paper_and_dark_screen(look):
    assert contrast(look.colour, "#ffffff") >= 3 and contrast(look.dark, "#1d2126") >= 3


def test_what_is_no_stored_run_is_named():
    with pytest.raises(InputError, match=r"a str among the runs(?s:.*)load_run"):
        arrange(["runs/first"])  # pyright: ignore[reportArgumentType]
