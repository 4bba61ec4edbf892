"""`mescal tune`: its table, its JSON, and its refusals."""

import json


def test_a_grid_is_tried(mescal, tiny):
    result = mescal("tune", *tiny, "--grid", "batch=16,64", "-q")
    assert result.exit_code == 0, result.output
    assert "batch=16" in result.stdout and "batch=64" in result.stdout
    assert (
        "Least work" in result.stdout and "mescal solve saddles/circle --solver spider --option batch=" in result.stdout
    )


def test_json_has_every_trial_and_the_cost(mescal, tiny):
    found = json.loads(mescal("tune", *tiny, "--grid", "batch=16,64", "--json").stdout)
    assert [trial["options"] for trial in found["trials"]] == [{"batch": 16}, {"batch": 64}]
    assert found["best"] in ({"batch": 16}, {"batch": 64})
    assert found["work"] == sum(trial["work"] for trial in found["trials"])


def test_what_is_not_certified_is_said(mescal, tiny):
    result = mescal("tune", *tiny, "--grid", "batch=16", "--max-work", "10", "-q")
    assert result.exit_code == 1 and "No trial was certified" in result.stdout


def test_wrong_grids_are_refused(mescal, tiny):
    assert "no grid for the solver spider" in mescal("tune", *tiny).stderr
    wrong = mescal("tune", *tiny, "--grid", "batch=many")
    assert wrong.exit_code == 2 and "batch" in wrong.stderr
