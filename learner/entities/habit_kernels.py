"""Kernels of what is usual for an entity beyond its levels: how its fields go together.

Three densities of a record in units of its entity are mixed:

- that of the network, which all entities share;
- *kinds*: Gaussians that all entities share, with weights of each entity's own;
- *own*: Student's t with the entity's own covariance, drawn to that of its kinds.

The own covariance is the posterior predictive of a Gaussian with mean 0 whose covariance has an
inverse Wishart prior around (sum over kinds of weight times second moment).
The densities weigh by what predicted best, for all entities and for the entity itself. An entity's
statistics are context and change with each record, after it was predicted. What all share changes
at learning boundaries only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .levels import KEEP
from .student import chi_square, factorise, log_student, observed_first

NETWORK, KINDS, OWN = range(3)
"""The densities that are mixed."""

DENSITIES = 3

KIND_STRENGTH = 1.0
"""Records that the common weights of the kinds stand for in an entity's own."""

OWN_STRENGTH = 0.5
"""Records for each field that the covariance of its kinds stands for in an entity's own."""

LEAST_FREEDOM = 5.0
"""Added to the degrees of freedom: more than a Gaussian sample has, as the kinds are known."""

FARTHEST = 5.0
"""Usual deviations by which a field may be off in an entity's covariance at the most."""

YOUNG = 2.0
"""Records up to which an entity's levels are not known well enough to tell a covariance."""

FAR = 3.0
"""Deviations of a squared distance by which a record may be off and still count fully."""

LEAST_COMMON, COMMON_RECORDS = 0.05, 4.0
"""Least share of the weights of all entities in those of an entity, and the records that they stand
for."""


class Shared(NamedTuple):
    """What all entities share: changes at learning boundaries only.

    Attributes
    ----------
    weight
        Of the K kinds (K,).
    second_moment
        Of each kind, around 0, lower triangles (K, d (d + 1) / 2).
    common
        Weights of the densities for all entities (densities,).
    """

    weight: Array
    second_moment: Array
    common: Array


class Own(NamedTuple):
    """What is known of each entity: context, which changes with each of its records.

    Attributes
    ----------
    age
        Its records (slots,).
    known
        Those that its covariance is made of (slots,); they fade.
    weight
        Of the densities (slots, densities).
    kinds
        Its records of each kind (slots, kinds at the most); they fade.
    products
        Mean products of its fields (slots, d (d + 1) / 2).
    """

    age: Array
    known: Array
    weight: Array
    kinds: Array
    products: Array


class Predicted(NamedTuple):
    """The density of m rows that was mixed, before the rows were added to their entities.

    Attributes
    ----------
    log_density
        Of each row (m,), in nats.
    weight
        Weights of the densities (m, densities).
    kind_weight
        Weights of the kinds (m, K).
    covariance
        Squared scales of Student's t of the entity (m, d (d + 1) / 2), lower triangles.
    freedom
        Its degrees of freedom (m,).
    distance
        How far the row is from what its entity's Student's t expects (m,): a squared distance that
        is about chi-square, with as many degrees of freedom as there are values.
    shares
        The kinds' probabilities given the row (m, K).
    """

    log_density: Array
    weight: Array
    kind_weight: Array
    covariance: Array
    freedom: Array
    distance: Array
    shares: Array


@kernel
def mix(
    U: Array,
    slots: Array,
    fresh: Array,
    network: Array,
    log_kinds: Array,
    own: Own,
    shared: Shared,
    votes: Array,
    predicted: Predicted,
) -> None:
    """Fill ``predicted`` for rows ``U`` (m, d), and add the rows to their entities one by one.

    ``slots`` (m,) are the entities, ``fresh`` (m,) says which begin anew there. ``network`` (m,)
    has the network's log-densities, ``log_kinds`` (m, K) those of the kinds. Adds the densities'
    probabilities given the rows to ``votes`` (densities,).
    """
    m, d = U.shape
    K = len(shared.weight)
    logs, posterior = np.empty(DENSITIES), np.empty(DENSITIES)
    order, factor = np.empty(d, np.int64), np.zeros((d, d + 1))
    new_products, strength = np.empty(own.products.shape[1]), OWN_STRENGTH * d
    for r in range(m):
        slot = slots[r]
        counts, weights, products = own.kinds[slot, :K], own.weight[slot], own.products[slot]
        if fresh[r]:
            own.age[slot], own.known[slot] = 0.0, 0.0
            counts[:], weights[:], products[:] = 0.0, 0.0, 0.0
        age, known = own.age[slot], own.known[slot]
        n = observed_first(U[r], order)
        kinds, shares = predicted.kind_weight[r], predicted.shares[r]
        weigh_kinds(counts, shared.weight, kinds)
        logs[NETWORK] = network[r]
        logs[KINDS] = log_mixture(log_kinds[r], kinds, shares)
        covariance = predicted.covariance[r]
        own_covariance(products, known, kinds, shared, strength, covariance)
        freedom = max(strength + known - d, 0.0) + LEAST_FREEDOM
        predicted.freedom[r] = freedom
        square, log_scale = factorise(covariance, U[r], order, n, factor)
        predicted.distance[r] = chi_square(square, freedom, n)
        logs[OWN] = log_student(square, log_scale, freedom, n)
        blend(weights, shared.common, age, predicted.weight[r])
        predicted.log_density[r] = log_mixture(logs, predicted.weight[r], posterior)
        for j in range(DENSITIES):
            weights[j] = posterior[j]
            votes[j] += posterior[j]
        for k in range(K):
            counts[k] = KEEP * counts[k] + shares[k]
        own.age[slot] = age + 1.0
        if age >= YOUNG:
            limit = n + FAR * math.sqrt(2.0 * n)
            weight = min(1.0, limit / max(square, 1e-9)) if known > 2.0 * d else 1.0
            own.known[slot] = KEEP * known + weight
            fill_products(U[r], order, n, factor, new_products)
            share = weight / own.known[slot]
            for t in range(len(new_products)):
                products[t] += share * (new_products[t] - products[t])


@kernel
def weigh_kinds(counts: Array, weight: Array, result: Array) -> None:
    """Fill ``result`` with an entity's weights of the kinds (K,), drawn to those of all."""
    total = KIND_STRENGTH + counts.sum()
    for k in range(len(counts)):
        result[k] = (KIND_STRENGTH * weight[k] + counts[k]) / total


@kernel
def log_mixture(logs: Array, weight: Array, shares: Array) -> float:
    """Return the logarithm of a weighted sum of densities by their logarithms ``logs`` (K,).

    Fills ``shares`` with their shares of it.
    """
    top, total = float(logs.max()), 0.0
    for k in range(len(logs)):
        shares[k] = weight[k] * math.exp(logs[k] - top)
        total += shares[k]
    for k in range(len(logs)):
        shares[k] /= total
    return top + math.log(total)


@kernel
def own_covariance(
    products: Array, count: float, kinds: Array, shared: Shared, strength: float, result: Array
) -> None:
    """Fill a lower triangle with an entity's covariance, drawn to that of its kinds."""
    result[:] = 0.0
    for k in range(len(kinds)):
        part, moment = strength * kinds[k], shared.second_moment[k]
        for t in range(len(result)):
            result[t] += part * moment[t]
    scale = 1.0 / (strength + count)
    for t in range(len(result)):
        result[t] = (result[t] + count * products[t]) * scale


@kernel
def blend(own: Array, common: Array, age: float, result: Array) -> None:
    """Fill ``result`` with weights of the densities: an entity's own, and those of all."""
    share = 1.0
    if age > 0.0:
        share = max(LEAST_COMMON, min(1.0, COMMON_RECORDS / age))
    for j in range(len(common)):
        result[j] = share * common[j] + (1.0 - share) * own[j]


@kernel
def fill_products(u: Array, order: Array, n: int, factor: Array, products: Array) -> None:
    """Fill a lower triangle with the products of a row's values.

    Missing values count with their conditional mean and covariance: the rows of ``factor`` after
    the ``n`` observed ones.
    """
    d = len(u)
    x = np.empty(d)
    for v in range(d):
        x[v] = u[v]
    for a in range(n, d):
        x[order[a]] = -factor[a, d]
    for v in range(d):
        x[v] = min(max(x[v], -FARTHEST), FARTHEST)
    t = 0
    for i in range(d):
        for j in range(i + 1):
            products[t] = x[i] * x[j]
            t += 1
    for a in range(n, d):
        for b in range(a, d):
            high, low = max(order[a], order[b]), min(order[a], order[b])
            products[high * (high + 1) // 2 + low] += factor[a, b]
