"""The density estimator by scikit-learn's own checks, and in its tools."""

import importlib
import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from streams import clusters

import faust_oslrau.learner.sklearn as adapter
from faust_oslrau.learner import (
    OSLRAU,
    CategoricalDensity,
    EntityDensity,
    InvalidInputError,
    InvalidParameterError,
)
from faust_oslrau.learner.sklearn import OSLRAUDensity

X = clusters(0, 600, 3)
X_test = clusters(0, 900, 3)[600:]


# None is expected to fail. scikit-learn itself skips its check of the array API, which needs
# SCIPY_ARRAY_API=1 in the environment.
@parametrize_with_checks(
    [
        OSLRAUDensity(OSLRAU(min_count=8, max_leaf_vars=2), batch_size=16),
        OSLRAUDensity(OSLRAU(mixtures=True)),
        OSLRAUDensity(EntityDensity()),
        OSLRAUDensity(CategoricalDensity()),
    ]
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_fit_forgets_and_learns_mini_batches_with_missing_values(missing):
    rows = clusters(1, 600, 3, missing)
    density = OSLRAUDensity(OSLRAU(min_count=20), batch_size=50).fit(X_test).fit(rows)
    model = OSLRAU(min_count=20).partial_fit(rows, batch_size=50)
    np.testing.assert_array_equal(density.score_samples(rows), model.score_samples(rows))
    assert density.learner_.n_records_ == len(rows)
    assert np.isfinite(density.score_samples(rows)).all()


def test_partial_fit_goes_on_by_one_mini_batch():
    density, model = OSLRAUDensity(), OSLRAU()
    for start in range(0, 600, 200):
        density.partial_fit(X[start : start + 200])
        model.partial_fit(X[start : start + 200])
    np.testing.assert_array_equal(density.score_samples(X_test), model.score_samples(X_test))


def test_the_learner_given_is_left_alone_and_what_it_learned_is_not_used():
    taught = OSLRAU(min_count=20).partial_fit(X_test)
    before = taught.to_bytes()
    density = OSLRAUDensity(taught).fit(X)
    assert density.learner_.n_records_ == len(X) and taught.to_bytes() == before
    assert clone(density).learner.n_records_ == 0
    assert clone(density).learner.min_count == 20


def test_score_is_the_mean_log_density():
    density = OSLRAUDensity().fit(X)
    assert density.score(X_test) == pytest.approx(density.score_samples(X_test).mean())
    assert density.score(X_test) > density.score(X_test + 20)


def test_samples_are_rows_that_a_seed_repeats():
    density = OSLRAUDensity().fit(X)
    rows = density.sample(500, random_state=1)
    np.testing.assert_array_equal(rows, density.sample(500, random_state=1))
    assert rows.shape == (500, 3) and density.score(rows) > density.score(X_test) - 2


def test_before_fit_queries_are_refused():
    for query in (lambda d: d.score_samples(X), lambda d: d.sample()):
        with pytest.raises(NotFittedError):
            query(OSLRAUDensity())


def test_names_of_columns_are_kept_and_checked():
    density = OSLRAUDensity().fit(pa.table(dict(zip("abc", X.T, strict=True))))
    assert density.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        density.score_samples(pa.table(dict(zip("abz", X.T, strict=True))))


def test_a_grid_search_in_a_pipeline_finds_the_better_hyper_parameters():
    pipeline = make_pipeline(StandardScaler(), OSLRAUDensity(OSLRAU(background=False)))
    grid = {
        "oslraudensity__learner__structure_until": [0, None],
        "oslraudensity__batch_size": np.array([50, 100]),
    }
    correlated = X[:, :1] + 0.01 * X
    search = GridSearchCV(pipeline, grid, cv=2).fit(correlated)
    assert search.best_params_["oslraudensity__learner__structure_until"] is None
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.score_samples(correlated).shape == (600,)


def test_texts_behind_an_encoder_are_the_categories_of_a_density():
    rng = np.random.default_rng(0)
    service = rng.choice(["search", "nightly"], 800)
    latency = np.where(service == "search", 1.0, 50.0) * rng.lognormal(0.0, 0.1, 800)
    rows = np.column_stack([service.astype(object), latency.astype(object)])
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99)
    columns = make_column_transformer(("passthrough", [1]), (encoder, [0]))
    pipeline = make_pipeline(columns, OSLRAUDensity(CategoricalDensity())).fit(rows)
    odd = np.array([["search", 1.0], ["search", 50.0], ["weekly", 1.0]], dtype=object)
    usual, slow, new = pipeline.score_samples(odd)
    assert usual > slow + 10 and usual > new + 1


def test_hyper_parameters_from_a_numpy_grid_can_be_written():
    model = OSLRAU(min_count=np.int64(20), corr_threshold=np.float64(0.2)).partial_fit(X)
    again = OSLRAU.from_bytes(model.to_bytes())
    assert again.get_params() == model.get_params()


def test_a_representation_names_what_differs_from_the_defaults():
    density = OSLRAUDensity(OSLRAU(min_count=20))
    assert repr(density) == "OSLRAUDensity(learner=OSLRAU(min_count=20))"


def test_pickling_keeps_every_bit():
    density = OSLRAUDensity().fit(X)
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.score_samples(X_test), density.score_samples(X_test))
    np.testing.assert_array_equal(
        again.partial_fit(X).score_samples(X_test), density.partial_fit(X).score_samples(X_test)
    )


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'faust-oslrau\[sklearn\]'"):
        importlib.reload(adapter)


ENTITY = np.arange(600) % 20
LEVELS = 10 * np.random.default_rng(1).normal(size=(20, 3))
X_OF = X + LEVELS[ENTITY]


def test_with_entities_rows_are_held_against_their_own():
    density = OSLRAUDensity(EntityDensity(), batch_size=50).fit(X_OF, entity=ENTITY)
    model = EntityDensity().partial_fit(X_OF, ENTITY, batch_size=50)
    found = density.score_samples(X_OF, entity=ENTITY)
    np.testing.assert_array_equal(found, model.score_samples(X_OF, ENTITY))
    assert density.score(X_OF, entity=ENTITY) > density.score(X_OF, entity=ENTITY[::-1]) + 5
    density.partial_fit(X_OF, entity=ENTITY)
    assert density.learner_.n_records_ == 1200


def test_entities_are_routed_to_folds_and_hyper_parameters_to_the_network():
    density = OSLRAUDensity(EntityDensity(OSLRAU()), batch_size=50)
    with config_context(enable_metadata_routing=True):
        density.set_fit_request(entity=True).set_score_request(entity=True)
        own = cross_val_score(density, X_OF, params={"entity": ENTITY}, cv=2)
        search = GridSearchCV(density, {"learner__learner__min_count": [20, 40]}, cv=2)
        search.fit(X_OF, entity=ENTITY)
    shared = cross_val_score(OSLRAUDensity(batch_size=50), X_OF, cv=2)
    assert (own > shared + 1).all()
    assert search.best_estimator_.learner_.learner_.min_count in (20, 40)


def test_entities_without_their_density_are_refused_and_nothing_is_drawn_from_it():
    with pytest.raises(InvalidInputError, match="learner is no EntityDensity"):
        OSLRAUDensity().fit(X, entity=ENTITY)
    density = OSLRAUDensity(EntityDensity()).fit(X_OF, entity=ENTITY)
    with pytest.raises(InvalidParameterError, match="expected no EntityDensity"):
        density.sample(3)
