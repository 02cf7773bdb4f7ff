"""oSLRAU in plain Python, straight from the paper, to hold the compiled kernels against.

Shares no code with the package. A data row is a dict from variable to value; a missing value has
no entry. Slow and simple on purpose.

The node budget and pruning are not in the paper. Their rules are:

- Before a product merges two children into a mixture, it counts the nodes of the whole network.
  If they and the new nodes (a sum, two products and a leaf for each variable) exceed the budget,
  the product denies the merge. So the order in which nodes learn decides who gets the last of the
  budget: a sum's children from the first to the last, a product's from the last to the first.
- With a memory, all counts fade before each mini-batch. If the network then takes more than seven
  eighths of the budget, sums remove components with a count below 1, the oldest first, until it
  fits. The root goes first, then the sums below each product, from the root downward. A sum below
  a product that is left with one component is dissolved into the product. What comes out of it gets
  its turn as well.
"""

import itertools
import math
from collections import Counter

import numpy as np
from scipy.stats import multivariate_normal


class Moments:
    """Running mean and covariance, with counts per variable and per pair."""

    def __init__(self, scope):
        self.mean = {v: 0.0 for v in scope}
        self.cov = {(v, w): 0.0 for v in scope for w in scope if v <= w}
        self.seen = {pair: 0 for pair in self.cov}

    def update(self, rows):
        """Change mean and covariance; the caller adds to the counts."""
        before = dict(self.mean)
        for v in self.mean:
            new = [row[v] for row in rows if v in row]
            if new:
                n = self.seen[v, v]
                self.mean[v] = (n * self.mean[v] + sum(new)) / (n + len(new))
        for v, w in self.cov:
            both = [row for row in rows if v in row and w in row]
            n = self.seen[v, w]
            if n + len(both) == 0:
                self.cov[v, w] = 0.0
                continue
            old = self.cov[v, w] + (self.mean[v] - before[v]) * (self.mean[w] - before[w])
            new = sum((row[v] - self.mean[v]) * (row[w] - self.mean[w]) for row in both)
            self.cov[v, w] = (n * old + new) / (n + len(both))

    def count(self, rows):
        for v, w in self.seen:
            self.seen[v, w] += sum(v in row and w in row for row in rows)

    def restrict(self, scope):
        part = Moments(scope)
        part.mean = {v: self.mean[v] for v in scope}
        part.cov = {pair: self.cov[pair] for pair in part.cov}
        part.seen = {pair: self.seen[pair] for pair in part.seen}
        return part

    def matrix(self, scope):
        return np.array([[self.cov[min(v, w), max(v, w)] for w in scope] for v in scope])


class Leaf:
    kind = "leaf"

    def __init__(self, variable, mean, variance, model):
        self.scope, self.model = [variable], model
        self.mean, self.variance, self.observed = mean, variance, 0

    def log_density(self, row):
        (v,) = self.scope
        if v not in row:
            return 0.0
        variance = max(self.variance, self.model.variance_floor, 1e-30)
        dx = row[v] - self.mean
        return -0.5 * math.log(2 * math.pi * variance) - 0.5 * dx * dx / variance

    def update(self, rows, parent, grow):
        (v,) = self.scope
        values = [row[v] for row in rows if v in row]
        if not values:
            return
        n, m = max(self.observed, 1), len(values)
        mean = (n * self.mean + sum(values)) / (n + m)
        squares = sum((x - self.mean) ** 2 for x in values)
        self.variance = (n * self.variance + squares) / (n + m) - (mean - self.mean) ** 2
        self.mean = mean
        self.observed += m


class MultivariateLeaf:
    kind = "multivariate_leaf"

    def __init__(self, scope, moments, model):
        self.scope, self.moments, self.model = scope, moments, model
        self.mend()

    def mend(self):
        """A covariance that is singular even with the floor gets 1e-4 on its diagonal for good.

        Twice as much on each further try.
        """
        ridge = 1e-4
        floor = self.model.variance_floor * np.eye(len(self.scope))
        while True:
            covariance = self.moments.matrix(self.scope) + floor
            if smallest_pivot(covariance) > 2.2e-10 * covariance.diagonal().max():
                return
            for v in self.scope:
                self.moments.cov[v, v] += ridge
            ridge *= 2

    def log_density(self, row):
        scope = [v for v in self.scope if v in row]
        if not scope:
            return 0.0
        covariance = self.moments.matrix(scope) + self.model.variance_floor * np.eye(len(scope))
        mean = [self.moments.mean[v] for v in scope]
        x = [row[v] for v in scope]
        return float(multivariate_normal(mean, covariance, allow_singular=True).logpdf(x))

    def update(self, rows, parent, grow):
        self.moments.update(rows)
        self.moments.count(rows)
        self.mend()


def smallest_pivot(matrix):
    """Least conditional variance of a variable given the ones before it."""
    a = np.array(matrix)
    pivots = []
    for i in range(len(a)):
        pivots.append(a[i, i])
        if a[i, i] <= 0:
            break
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :]) / a[i, i]
    return min(pivots)


class Sum:
    kind = "sum"
    fewest = 1  # children that stay, however faded

    def __init__(self, scope, n):
        self.scope, self.n, self.children, self.counts = scope, n, [], []

    def add(self, child, count):
        self.children.append(child)
        self.counts.append(count)

    def replace(self, child, heir, share):
        """Put a share of the child's records and the heir in its place; return its records."""
        position = self.children.index(child)
        count = self.counts[position]
        self.children[position], self.counts[position] = heir, count * share
        return count

    def log_density(self, row):
        total = sum(self.counts) + len(self.children)  # less than n says once components are gone
        weights = [(n + 1) / total for n in self.counts]
        logs = [child.log_density(row) for child in self.children]
        top = max(logs)
        return top + math.log(
            sum(w * math.exp(x - top) for w, x in zip(weights, logs, strict=True))
        )

    def update(self, rows, parent, grow):
        shares = [[] for _ in self.children]
        for row in rows:
            logs = [child.log_density(row) for child in self.children]
            shares[winner(logs)].append(row)
        self.n += len(rows)
        self.counts = [n + len(share) for n, share in zip(self.counts, shares, strict=True)]
        for child, share in list(zip(self.children, shares, strict=True)):
            if share:
                child.update(share, self, grow)

    def remove_faded(self, model, most):
        """Remove components with a count below 1, the oldest first, until the network fits."""
        for child in self.removable():
            if len(self.children) == self.fewest or model.n_nodes() <= most:
                return
            position = self.children.index(child)
            if self.counts[position] < 1:
                del self.children[position], self.counts[position]
                model.events["removed"] += 1

    def removable(self):
        return list(self.children)


def winner(logs):
    """The first of the best, up to rounding."""
    best = 0
    for i, value in enumerate(logs):
        if value > logs[best] + 1e-9:
            best = i
    return best


class RootWithBackground(Sum):
    """A root whose first child takes every row, and weight where it is the best of all."""

    fewest = 2

    def removable(self):
        return self.children[1:]

    def __init__(self, scope, model):
        super().__init__(scope, 0)
        moments = Moments(scope)
        moments.cov = {(v, w): float(v == w) for v, w in moments.cov}
        moments.seen = dict.fromkeys(moments.seen, 1)
        self.add(MultivariateLeaf(scope, moments, model), 0)

    def update(self, rows, parent, grow):
        background, *components = self.children
        shares = [[] for _ in components]
        for row in rows:
            logs = [child.log_density(row) for child in components]
            best = winner(logs)
            shares[best].append(row)
            won = background.log_density(row) > logs[best] + 1e-9
            self.counts[0 if won else best + 1] += 1
        self.n += len(rows)
        background.update(rows, self, False)
        for child, share in zip(components, shares, strict=True):
            if share:
                child.update(share, self, grow)


class Product:
    kind = "product"

    def __init__(self, scope, moments, n, model):
        self.scope, self.moments, self.n, self.model = scope, moments, n, model
        self.children = []

    def log_density(self, row):
        return sum(child.log_density(row) for child in self.children)

    def update(self, rows, parent, grow):
        self.moments.update(rows)
        groups, pair = [], []
        if grow and self.n >= self.model.min_count:
            groups, pair = self.choose_merges()
        if pair and not self.model.affords(pair):
            pair = []
        heirs = [self.mixture(pair, rows)] if pair else []
        self.moments.count(rows)
        self.n += len(rows)
        heirs += [self.leaf(group) for group in groups]
        gone = pair + [child for group in groups for child in group]
        others = [child for child in self.children if child not in gone]
        self.settle(others, heirs, parent)
        for child in reversed(others):
            child.update(rows, self, grow)

    def leaf(self, group):
        self.model.events["multivariate_leaf"] += 1
        scope = sorted(variables(group))
        return MultivariateLeaf(scope, self.moments.restrict(scope), self.model)

    def choose_merges(self):
        """Groups of children for leaves, and the pair of a mixture: one of the two is empty."""
        groups = [[child] for child in self.children]
        for joined in range(self.model.merges_per_batch):
            found = self.strongest_pair(groups)
            if found is None:
                break
            both = found[0] + found[1]
            size = sum(len(child.scope) for child in both)
            if size > self.model.max_leaf_vars:
                return ([], both) if joined == 0 else (merged(groups), [])
            groups = [group for group in groups if group not in found] + [both]
        return merged(groups), []

    def strongest_pair(self, groups):
        best, pair = self.model.corr_threshold, None
        for i, first in enumerate(groups):
            for second in groups[i + 1 :]:
                for v in variables(first):
                    for w in variables(second):
                        var_v = max(self.moments.cov[v, v], 1e-4)
                        var_w = max(self.moments.cov[w, w], 1e-4)
                        r = abs(self.moments.cov[min(v, w), max(v, w)]) / math.sqrt(var_v * var_w)
                        if r > best or (r == best and pair is None):
                            best, pair = r, (first, second) if v < w else (second, first)
        return pair

    def mixture(self, pair, rows):
        self.model.events["mixture"] += 1
        scope = sorted(variables(pair))
        first = Product(scope, self.moments.restrict(scope), self.n, self.model)
        first.children = list(pair)
        second = Product(scope, Moments(scope), 0, self.model)
        for v in scope:
            values = [row[v] for row in rows if v in row]
            mean = sum(values) / len(values) if values else self.moments.mean[v]
            variance = max(self.moments.cov[v, v], 1e-4)
            second.children.append(Leaf(v, mean, variance, self.model))
        mixture = Sum(scope, self.n)
        mixture.add(first, self.n)
        mixture.add(second, 0)
        mixture.update(rows, None, False)
        return mixture

    def settle(self, others, heirs, parent):
        """Take the heirs in place of what was merged, and make way for one that is alone."""
        self.children = others + sorted(heirs, key=lambda heir: heir.scope)
        if len(self.children) > 1 or not heirs:
            return
        (heir,) = heirs
        if parent is None:
            self.model.root = heir
        elif parent.kind == "sum" and heir.kind == "sum":
            first, second = heir.children
            count = parent.replace(self, first, heir.counts[0] / heir.n)
            parent.add(second, count * heir.counts[1] / heir.n)
        else:
            parent.replace(self, heir, 1)

    def dissolve(self, mixture):
        """Put the only component of a sum into the sum's place; return the children that are new.

        A leaf takes the place itself. Of a product the children come behind all others.
        """
        self.model.events["dissolved"] += 1
        (heir,) = mixture.children
        position = self.children.index(mixture)
        if heir.kind != "product":
            self.children[position] = heir
            return []
        del self.children[position]
        self.children += heir.children
        return heir.children


def variables(group):
    return [v for child in group for v in child.scope]


def merged(groups):
    return [group for group in groups if len(group) > 1]


class NaiveOSLRAU:
    """Of d variables, with the parameters that an ``OSLRAU`` has, but without standardising."""

    def __init__(self, d, parameters):
        vars(self).update(parameters)
        self.max_nodes, self.memory = self.max_nodes or 10**9, self.memory or math.inf
        self.events, scope, products = Counter(), list(range(d)), []
        affordable = (self.max_nodes - 2) // (d + 1)
        for _ in range(max(1, min(self.n_init_components, affordable))):
            product = Product(scope, Moments(scope), 0, self)
            product.children = [Leaf(v, 0.0, 1.0, self) for v in scope]
            products.append(product)
        self.root = products[0]
        if self.background or len(products) > 1:
            self.root = RootWithBackground(scope, self) if self.background else Sum(scope, 0)
            for product in products:
                self.root.add(product, 0)

    def partial_fit(self, X, grow=True):
        if self.memory < math.inf:
            forget(self.root, math.exp(-len(X) / self.memory))
            self.prune(self.max_nodes - self.max_nodes // 8)
        self.root.update([as_row(x) for x in X], None, grow)

    def score_samples(self, X):
        return np.array([self.root.log_density(as_row(x)) for x in X])

    def n_nodes(self):
        return len(nodes_below(self.root))

    def affords(self, pair):
        """Whether the budget allows a mixture of two children; counts what it denies."""
        allowed = self.n_nodes() + len(variables(pair)) + 3 <= self.max_nodes
        self.events["denied"] += not allowed
        return allowed

    def prune(self, most):
        """Remove faded components until there are at most so many nodes."""
        if self.root.kind == "sum":
            self.root.remove_faded(self, most)
        for product in nodes_below(self.root):
            if product.kind != "product" or product not in nodes_below(self.root):
                continue
            waiting = list(product.children)
            while waiting:
                child = waiting.pop(0)
                if child.kind == "sum":
                    child.remove_faded(self, most)
                    if len(child.children) == 1:
                        waiting += product.dissolve(child)


def forget(node, keep):
    for name in ("n", "observed"):
        if hasattr(node, name):
            setattr(node, name, getattr(node, name) * keep)
    if hasattr(node, "counts"):
        node.counts = [n * keep for n in node.counts]
    if hasattr(node, "moments"):
        node.moments.seen = {pair: n * keep for pair, n in node.moments.seen.items()}
    for child in getattr(node, "children", []):
        forget(child, keep)


def nodes_below(node):
    """A node and all below it: parents before children, the last child first."""
    below = [nodes_below(child) for child in reversed(getattr(node, "children", []))]
    return [node, *itertools.chain(*below)]


def as_row(x):
    return {v: float(value) for v, value in enumerate(x) if not math.isnan(value)}
