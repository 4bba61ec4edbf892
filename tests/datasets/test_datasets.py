"""The data sets: their counts as documented, their encodings recomputed independently, and how they are asked for."""

import csv
import io
import lzma
import re
import subprocess
import sys
import zipfile
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from mescal import datasets
from mescal.datasets import breast_cancer, places
from mescal.datasets.dataset import DEFAULT_ENCODING
from mescal.distribution import install
from mescal.errors import InputError
from mescal.registry import by_name, declared

IN_FILES = ["spambase", "madelon", "bank", "loan"]
BUNDLED = ["breast-cancer", "diabetes"]


# --- counts -----------------------------------------------------------------------------------------------------------


def test_every_data_set_is_known():
    assert set(IN_FILES + BUNDLED) <= set(datasets.names())


@pytest.mark.parametrize(
    ("name", "rows", "d", "positives"),
    [
        ("spambase", 4_601, 57, 1_813),
        ("madelon", 2_600, 500, 1_300),
        ("bank", 45_211, 81, 5_289),
        ("loan", 128_375, 250, None),
    ],
)
def test_counts(data_folder, name, rows, d, positives):
    data = datasets.load(name)
    assert data.features.shape == (rows, d) == (rows, len(set(data.columns)))
    if positives is not None:
        assert len(data.positives) == positives
        assert len(data.negatives) == rows - positives


def test_counts_of_the_bundled_sets():
    cancer, diabetes = datasets.load("breast-cancer"), datasets.load("diabetes")
    assert (cancer.features.shape, len(cancer.positives), len(cancer.negatives)) == ((569, 30), 212, 357)
    assert (diabetes.features.shape, len(diabetes.positives), len(diabetes.negatives)) == ((442, 10), 221, 221)
    assert [diabetes.in_group(f"sex={level}").sum() for level in "12"] == [235, 207]


def test_group_sizes_of_bank(data_folder):
    data = datasets.load("bank")
    single = data.in_group("marital=single")
    assert len(data.features[data.labelled]) == 22_605
    assert len(data.features[data.population]) == 22_605
    assert single[data.population].sum() == 6_320


def test_group_sizes_of_loan(data_folder):
    """The paper's target group has 31,966 rows; these are other rows of the same sizes, and it has 31,356."""
    data = datasets.load("loan")
    mortgage = data.in_group("home_ownership=MORTGAGE")
    assert len(data.features[data.population]) == 64_485
    assert len(data.features[data.labelled]) == 63_890
    assert mortgage[data.population].sum() == 31_356


@pytest.mark.parametrize(
    ("name", "rows", "d"), [("bank", 45_211, 51), pytest.param("loan", 128_375, 43, marks=pytest.mark.slow)]
)
def test_compact_encodings(data_folder, name, rows, d):
    data = datasets.load(name, encoding="compact")
    assert data.features.shape == (rows, d) == (rows, len(set(data.columns)))


# --- the encodings, recomputed ----------------------------------------------------------------------------------------


def test_spambase_is_standardised_with_unit_rows(data_folder):
    table = np.genfromtxt(data_folder / "spambase.data", delimiter=",")
    expected = normalize(StandardScaler().fit_transform(table[:, :57]))
    data = datasets.load("spambase", dtype="float64")
    np.testing.assert_allclose(data.features, expected, atol=1e-12)
    np.testing.assert_array_equal(data.labels > 0, table[:, 57] == 1)


def test_madelon_has_train_rows_before_validation_rows(data_folder):
    text = [(data_folder / f"madelon_{part}.data").read_text().split() for part in ("train", "valid")]
    table = np.array([*text[0], *text[1]], float).reshape(2600, 500)
    labels = "".join((data_folder / f"madelon_{part}.labels").read_text() for part in ("train", "valid")).split()
    data = datasets.load("madelon")
    expected = normalize(StandardScaler().fit_transform(table))
    np.testing.assert_allclose(data.features, expected, atol=1e-7)
    assert [f"{label:.0f}" for label in data.labels] == labels


def test_bank_row_by_row(data_folder):
    """Three rows of A and D, built from the file by hand."""
    with zipfile.ZipFile(data_folder / "bank.zip") as archive:
        rows = list(csv.DictReader(io.TextIOWrapper(archive.open("bank-full.csv"), "utf-8"), delimiter=";"))
    data = datasets.load("bank", dtype="float64")
    order = np.random.RandomState(2023).permutation(45_211)
    numerics = ["age", "balance", "duration", "campaign", "pdays", "previous"]
    categories = ["job", "marital", "education", "default", "housing", "loan", "contact", "month", "poutcome", "day"]
    levels = [f"{column}={level}" for column in categories for level in sorted({row[column] for row in rows})]
    assert data.columns == (*numerics, *levels)
    columns = {name: np.array([float(row[name]) for row in rows]) for name in numerics}
    for place in (0, 22_605, 45_209):
        row = rows[order[place]]
        vector = [(float(row[n]) - columns[n].mean()) / columns[n].std() for n in numerics]
        present = {f"{column}={row[column]}" for column in categories}
        vector = np.array([*vector, *(float(level in present) for level in levels)])
        np.testing.assert_allclose(data.features[place], vector / np.linalg.norm(vector), atol=1e-12)
        assert data.labels[place] == (1 if row["y"] == "yes" else -1)


def test_loan_row_by_row(data_folder):
    """Three rows of A and D, built from the file by hand."""
    with lzma.open(data_folder / "lc_pooled_real.csv.xz", "rt") as file:
        header, *rows = (line.rstrip("\n").split(",") for line in file)
    used = np.random.RandomState(0).permutation(148_514)[:128_375]
    table = {name: [rows[i][k] for i in used] for k, name in enumerate(header)}
    numerics = ["loan_amnt", "annual_inc", "dti", "revol_bal", "revol_util", "open_acc", "payment_inc_ratio"]
    categories = ["term", "purpose", "home_ownership", "emp_length", "delinq_2yrs_zero", "pub_rec_zero"]
    levels = [f"{column}={level}" for column in categories for level in sorted(set(table[column]))]
    columns, bins = {}, []
    for name in numerics:
        v = np.array([float(text or "nan") for text in table[name]])
        columns[name] = v = np.where(np.isnan(v), np.nanmedian(v), v)
        share = np.linspace(0, 1, 42 if name == "payment_inc_ratio" else 31)[1:-1]  # 41 bins bring d to 250
        bin_of = np.searchsorted(np.unique(np.quantile(v, share)), v, side="right")
        bins.append((bin_of, sorted(set(bin_of))))
    data = datasets.load("loan")
    assert data.columns[: 7 + len(levels)] == (*numerics, *levels)
    for place in (0, 64_485, 128_374):
        vector = [(columns[n][place] - columns[n].mean()) / columns[n].std() for n in numerics]
        present = {f"{column}={table[column][place]}" for column in categories}
        vector += [float(level in present) for level in levels]
        vector += [float(bin_of[place] == k) for bin_of, kept in bins for k in kept]
        np.testing.assert_allclose(data.features[place], vector / np.linalg.norm(vector), atol=1e-7)
        assert data.labels[place] == (1 if table["status"][place] == "Fully Paid" else -1)


@pytest.mark.parametrize("name", IN_FILES + BUNDLED)
def test_rows_have_unit_length(name, request):
    if name in IN_FILES:
        request.getfixturevalue("data_folder")
    data = datasets.load(name)
    np.testing.assert_allclose(np.einsum("ij,ij->i", data.features, data.features), 1, atol=1e-5)
    assert set(np.unique(data.labels)) == {-1, 1}


def test_diabetes_is_labelled_by_the_median():
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes()
    data = datasets.load("diabetes", encoding="standardised", dtype="float64")
    # scikit-learn's scaled columns have length 1; ours have mean square 1.
    np.testing.assert_allclose(data.features, bunch.data * 442**0.5, atol=1e-6)
    np.testing.assert_array_equal(data.labels > 0, bunch.target > 140.5)


def test_breast_cancer_is_what_scikit_learn_loads(monkeypatch):
    from sklearn.datasets import load_breast_cancer

    bunch: Any = load_breast_cancer()
    values, malignant = breast_cancer.read()
    np.testing.assert_array_equal(values, bunch.data)
    np.testing.assert_array_equal(malignant, bunch.target == 0)
    assert list(breast_cancer.COLUMNS) == list(bunch.feature_names)
    # where the file is not the one that is known, scikit-learn is asked
    monkeypatch.setattr(breast_cancer, "FILE", (breast_cancer.FILE[0], "another"))
    assert places.bundled_file(*breast_cancer.FILE) is None
    for mine, theirs in zip(breast_cancer.read(), (values, malignant), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_reading_breast_cancer_does_not_import_scikit_learn():
    code = "import sys, mescal; mescal.problems.get('neyman-pearson/breast-cancer'); sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_scikit_learn_there_is_no_file(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert places.bundled_file(*breast_cancer.FILE) is None


# --- how they are asked for -------------------------------------------------------------------------------------------


def test_loading_is_remembered_and_read_only():
    data = datasets.load("breast-cancer")
    assert datasets.load("breast-cancer") is data
    assert data.features.dtype == np.float32
    for array in (data.features, data.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_float32_is_float64_rounded_once():
    single, double = (datasets.load("breast-cancer", dtype=dtype) for dtype in ("float32", "float64"))
    np.testing.assert_array_equal(single.features, double.features.astype(np.float32))


@pytest.mark.parametrize("name", datasets.names())
def test_every_data_set_has_rows_and_labels_that_fit(name, request):
    """Also one that somebody puts into the folder."""
    if name in IN_FILES:
        request.getfixturevalue("data_folder")
    data = datasets.load(name)
    rows, d = data.features.shape
    assert data.labels.shape == (rows,) and len(set(data.columns)) == len(data.columns) == d
    assert np.isfinite(data.features).all() and set(np.unique(data.labels)) <= {-1, 1}
    assert data.features.dtype == data.labels.dtype == np.float32 and not data.features.flags.writeable
    assert all(level.shape == (rows,) for level in data.groups.values())


@pytest.mark.parametrize("name", datasets.names())
def test_every_declaration_informs(name):
    about = datasets.about(name)
    assert next(iter(about.encodings)) == DEFAULT_ENCODING
    assert about.description and about.citation and about.licence


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'spambase'"):
        datasets.load("spam-base")
    with pytest.raises(InputError, match="did you mean 'standardised'"):
        datasets.load("breast-cancer", encoding="standardized")
    with pytest.raises(InputError, match="float16"):
        datasets.load("breast-cancer", dtype="float16")


def test_unknown_groups():
    data = datasets.load("diabetes")
    with pytest.raises(InputError, match="column=level"):
        data.in_group("sex")
    with pytest.raises(InputError, match=r"no column for groups of diabetes named 'sx'.*\n.*\n.*'sex'"):
        data.in_group("sx=1")
    with pytest.raises(InputError, match="one of 1, 2"):
        data.in_group("sex=3")


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=re.escape(install("sklearn"))):
        datasets.about("diabetes").load("paper", np.dtype("float32"))


def test_a_file_is_enough_to_declare(tmp_path, monkeypatch):
    package = ModuleType("tmp_declarations")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    (tmp_path / "iris.py").write_text("THING = 'iris'\n")
    (tmp_path / "adult.py").write_text("THING = 'adult'\n")
    assert list(declared(package.__name__, "THING")) == ["adult", "iris"]


def test_two_declarations_of_one_name_are_refused():
    declaration = datasets.about("bank")
    with pytest.raises(InputError, match="declared twice"):
        by_name([declaration, declaration])
