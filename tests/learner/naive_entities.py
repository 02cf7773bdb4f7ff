"""Oracle of the entities' levels and scales: plain Python, one record and one field at a time."""

import math


class NaiveLevels:
    """Predicts and learns records (d,) of entities; numbers are in units of the stream."""

    def __init__(self, population):
        self.population = population  # of each field: m0, b0, nu, tau2, memory
        self.entities = {}

    def predict(self, key, v):
        """Return location, scale and degrees of freedom of the entity's next value."""
        m0, b0, nu, tau2, memory = self.population[v]
        count, mean, squares = self.entities.get((key, v), (0.0, 0.0, 0.0))
        n = min(count, memory)
        freedom = nu + max(count - 1, 0)
        variance = (nu * tau2 + squares) / freedom
        precision = 1 / b0 + n / variance  # of the entity's level, given its variance
        location = (m0 / b0 + n * mean / variance) / precision
        level_variance = 1 / precision
        # The total variance moves with the entity's own variance by this elasticity.
        step = 1e-6
        higher = variance * (1 + step)
        slope = higher + 1 / (1 / b0 + n / higher) - variance - level_variance
        elasticity = slope / step / (variance + level_variance)
        return location, math.sqrt(variance + level_variance), freedom / elasticity**2

    def learn(self, key, v, y):
        m0, _, _, _, memory = self.population[v]
        scale = self.predict(key, v)[1]
        count, mean, squares = self.entities.get((key, v), (0.0, m0, 0.0))
        limit = (20 if count < 4 else 6) * scale
        step = max(-limit, min(y - mean, limit))
        n, keep = min(count, memory), math.exp(-1 / 1000)
        self.entities[key, v] = (
            keep * count + 1,
            mean + step / (n + 1),
            keep * squares + step**2 * n / (n + 1),
        )

    def process(self, key, row):
        """Return the prediction of each field, then learn the values that are not missing."""
        found = [self.predict(key, v) for v in range(len(row))]
        for v, y in enumerate(row):
            if not math.isnan(y):
                self.learn(key, v, y)
        return found
