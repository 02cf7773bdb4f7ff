"""The page that compares is the one that the results give."""

import pytest
from doc_pages import ROOT, read

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[bench]'")

from benchmarks import comparison


def test_the_page_is_written_from_the_results():
    page = comparison.page(ROOT / "benchmarks" / "results")
    assert page == read("docs/comparison.md"), "run python -m benchmarks comparison"


def test_the_best_method_of_a_set_is_bold_and_missing_figures_are_dashes():
    figures = {
        ("quake", "one"): {"honest": {"mean": -1.5}},
        ("quake", "two"): {"honest": {"mean": 2.25}},
    }
    one, two = comparison.today_rows(figures)
    assert (one["quake"], two["quake"], one["ca"]) == ("-1.50", "**2.25**", "-")
    assert "two on 1 of 1 sets" in comparison.best(figures)


def test_means_that_few_records_decide_and_training_that_ends_early_are_named():
    def figure(mean, learned=1_000.0):
        return {"native": {"mean": mean}, "learn_rate": learned, "learn_seconds": 1.0}

    figures = {
        ("ca", "online EM, mixture"): figure(-2_000.0),
        ("sensorless", "online EM, mixture"): figure(-5_000.0),
        ("quake", "online EM, mixture"): figure(-999.0),
    }
    (said,) = comparison.far(figures)
    assert said.endswith(
        "oEM (GMM) on ca; oEM (GMM) on sensorless. The paper has no figure for oEM (GMM) on "
        "sensorless."
    )
    assert not [*comparison.far({("ca", "online EM, mixture"): figure(-1.0)})]
    long = {("quake", comparison.FLOW): figure(0.0), ("ca", comparison.FLOW): figure(0.0, 6.2e5)}
    (said,) = comparison.capped(long)
    assert said.endswith("600,000 rows: on ca the first.")
