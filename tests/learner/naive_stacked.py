"""What a StackedSPN answers, in plain numpy, one row, one network and one part at a time."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from scipy.special import logsumexp

WIDTHS = [1.0, 3.0, 15.0, 150.0]


def parts(network, z):
    """Logarithmic weight, mean and covariance of each part of the network given a row (d,).

    In the moments, wide leaves do not count, and a wide Gaussian counts as the one it widens.
    """
    tied, weight = network.products, network.weight
    shares = [weight[0], *(weight[1] * tied.weight)]
    found = [product(tied, k, np.log(share), z) for k, share in enumerate(shares)]
    if network.mixture is not None:
        mixture = network.mixture
        covariances = mixture.gaussians.covariance()
        for k, share in enumerate(weight[2] * mixture.weight):
            found.append(gaussian(mixture.gaussians.mean[k], covariances[k], np.log(share), z))
    blocks = network.background.gaussians
    mean = np.concatenate([each.mean[0] for each in blocks])
    covariance = block_diag(*(each.covariance()[0] for each in blocks))
    first = 2 if network.mixture is None else 3
    for share, width in zip(weight[first:], WIDTHS, strict=True):
        own = gaussian(mean, covariance * width**2, np.log(share), z)
        found.append((*own[:2], own[2] / width**2))
    return found


def product(tied, k, log_weight, z):
    mean, variance = z.copy(), np.zeros(len(z))
    for v, x in enumerate(z):
        own = slice(*tied.leaves.first[v : v + 2])
        share, centre, spread = tied.W[own, k], tied.leaves.mean[own], tied.leaves.variance[own]
        if np.isnan(x):
            narrow = share[4:] / share[4:].sum()
            mean[v] = narrow @ centre[4:]
            variance[v] = narrow @ (spread[4:] + (centre[4:] - mean[v]) ** 2)
        else:
            log_weight += logsumexp(leaves(x, centre, spread), b=share)
    return log_weight, mean, np.diag(variance)


def leaves(x, mean, variance):
    """Log-density of a value in each leaf; distributions of scipy are slow to make."""
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))


def gaussian(mean, covariance, log_weight, z):
    seen = ~np.isnan(z)
    if not seen.any():
        return log_weight, mean, covariance
    known = covariance[np.ix_(seen, seen)]
    shift = z[seen] - mean[seen]
    squares = shift @ np.linalg.solve(known, shift)
    log_weight -= 0.5 * (squares + np.linalg.slogdet(2 * np.pi * known)[1])
    gain = np.linalg.solve(known, covariance[seen]).T
    rest = covariance - gain @ covariance[seen]
    rest[seen], rest[:, seen] = 0.0, 0.0
    return log_weight, np.where(seen, z, mean + gain @ shift), rest


def mixture(model, row):
    """Log-density of a row, and mean and covariance given it, from every network's parts."""
    log_weights, means, covariances = [], [], []
    for share, network, scaling in model._members():
        z = (row - scaling.location) / scaling.scale
        jacobian = np.log(scaling.scale)[~np.isnan(row)].sum()
        for log_weight, mean, covariance in parts(network, z):
            log_weights.append(np.log(share) + log_weight - jacobian)
            means.append(np.where(np.isnan(row), mean * scaling.scale + scaling.location, row))
            covariances.append(covariance * np.outer(scaling.scale, scaling.scale))
    total = logsumexp(log_weights)
    share = np.exp(np.array(log_weights) - total)
    mean = share @ np.array(means)
    shift = np.array(means) - mean
    return total, mean, np.einsum("c,cij->ij", share, covariances) + (shift.T * share) @ shift


def assert_answers(model, rows, units):
    """Every answer about rows agrees with that of the oracle, up to rounding in these units."""
    found, contributions = model.score_samples(rows), model.contributions(rows)
    mean, deviation = model.expected(rows)
    for r, row in enumerate(rows):
        log_density, centre, covariance = mixture(model, row)
        assert_allclose(found[r], log_density, atol=1e-6)
        told = model.conditional_moments(row)
        assert_allclose(told[0] / units, centre / units, rtol=1e-5, atol=1e-9)
        scale = np.outer(units, units)
        assert_allclose(told[1] / scale, covariance / scale, rtol=1e-4, atol=1e-7)
        for v in range(len(row)):
            rest = row.copy()
            rest[v] = np.nan
            others, centre, covariance = mixture(model, rest)
            if not np.isnan(row[v]):
                assert_allclose(contributions[r, v], others - log_density, atol=1e-5)
            assert_allclose(mean[r, v] / units[v], centre[v] / units[v], rtol=1e-5, atol=1e-9)
            assert_allclose(deviation[r, v], covariance[v, v] ** 0.5, rtol=1e-4)


def expected_counts(tied, Z, shares):
    """Expected records (n, K) of each product by leaf, and of each leaf alone (n,)."""
    counts, alone = np.zeros_like(tied.leaf_count), np.zeros(len(tied.W))
    for z, share in zip(Z.T, shares, strict=True):
        for v in np.flatnonzero(~np.isnan(z)):
            own = slice(*tied.leaves.first[v : v + 2])
            density = np.exp(leaves(z[v], tied.leaves.mean[own], tied.leaves.variance[own]))
            weighed = density[:, None] * tied.W[own]
            weighed /= weighed.sum(axis=0)
            counts[own] += share * weighed[:, 1:]
            alone[own] += weighed[:, 0]
    return counts, alone
