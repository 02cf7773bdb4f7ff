"""Densities by the library's functions, to hold those of the package against."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from faust_oslrau.learner.network.layout import LEAF, MULTIVARIATE_LEAF, PRODUCT


def given(mean, covariance, z):
    """A column with the mean of what it lacks given the others, and the covariance of that."""
    seen = ~np.isnan(z)
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen]).T
    rest = covariance - gain @ covariance[seen]
    rest[seen], rest[:, seen] = 0.0, 0.0
    return np.where(seen, z, mean + gain @ (z[seen] - mean[seen])), rest


def log_density(network, i, rows):
    """Return the log-density of a node for rows (m, d), missing values left out."""
    node, scope = network.nodes[i], network.scope(i)
    if node["kind"] == LEAF:
        values = norm(node["mean"], node["precision"] ** -0.5).logpdf(rows[:, scope[0]])
        return np.nan_to_num(values)
    if node["kind"] == MULTIVARIATE_LEAF:
        (mean, covariance), found = network.gaussian(i), np.zeros(len(rows))
        seen = ~np.isnan(rows[:, scope])
        for known in np.unique(seen[seen.any(axis=1)], axis=0):
            some = (seen == known).all(axis=1)
            own = multivariate_normal(mean[known], covariance[np.ix_(known, known)])
            found[some] = own.logpdf(rows[np.ix_(some, scope[known])])
        return found
    children, weights = zip(*network.children(i), strict=True)
    values = np.array([log_density(network, child, rows) for child in children])
    if node["kind"] == PRODUCT:
        return values.sum(axis=0)
    return logsumexp(values, axis=0, b=np.array(weights)[:, None] / sum(weights))
