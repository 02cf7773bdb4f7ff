"""What a stacked network answers, in plain numpy, one row and one part at a time."""

import numpy as np
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


def log_density(network, z):
    return logsumexp([log_weight for log_weight, _, _ in parts(network, z)])


def moments(network, z):
    log_weight, means, covariances = zip(*parts(network, z), strict=True)
    share = np.exp(log_weight - logsumexp(log_weight))
    mean = share @ np.array(means)
    shift = np.array(means) - mean
    return mean, np.einsum("c,cij->ij", share, covariances) + (shift.T * share) @ shift


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
