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
