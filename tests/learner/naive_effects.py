"""What categories do to one number, with lists: an oracle for `categories.effects`.

Without a memory, for values that all have a slot, and numbers so near that none is clipped.
"""

import math

SINGLES, PAIR, PRIOR = 3, 3, 4.0


def mean(numbers):
    return sum(numbers) / len(numbers)


def square(numbers):
    return sum((x - mean(numbers)) ** 2 for x in numbers)


class Effect:
    """The numbers that were learned, each with the categories of its record."""

    def __init__(self):
        self.seen, self.fields = [], None

    def groups(self, fields):
        found = {}
        for x, row in self.seen:
            found.setdefault(tuple(row[f] for f in fields), []).append(x)
        return found

    def variances(self, groups):
        """Return those within and between values."""
        n = len(self.seen)
        within = sum(square(of) for of in groups.values()) / n
        between = square([mean(of) for of in groups.values() for _ in of]) / n
        return within, max(between - within * (len(groups) - 1) / n, 0.0)

    def gain(self, fields):
        if not self.seen or len(groups := self.groups(fields)) < 2:
            return 0.0
        within, between = self.variances(groups)
        nats = 0.0
        for of in groups.values():
            variance = (square(of) + PRIOR * within) / (len(of) + PRIOR)
            nats += 0.5 * len(of) * math.log((within + between) / variance)
        return nats - (len(groups) - 1) * math.log(len(self.seen))

    def units(self):
        """Return what gives shift and ratio of a record's categories."""
        if self.fields is None:
            return lambda row: (0.0, 1.0)
        fields, groups = self.fields, self.groups(self.fields)
        within, between = self.variances(groups)
        centre = mean([x for x, _ in self.seen])

        def unit(row):
            of = groups.get(tuple(row[f] for f in fields), [])
            share = len(of) * between / (len(of) * between + within)
            variance = ((square(of) if of else 0.0) + PRIOR * within) / (len(of) + PRIOR)
            ratio = math.sqrt((variance + (1.0 - share) * between) / within)
            level = centre + share * (mean(of) - centre if of else 0.0)
            return level - ratio * centre, ratio

        return unit


class NaiveEffects:
    """Those of single categories, then one of the first two together."""

    def __init__(self, c):
        self.c, self.n, self.fitted, self.pair = c, 0, 0, None
        self.effects = [Effect() for _ in range(SINGLES + 1)]
        self.derive()

    @property
    def used(self):
        has = [effect.fields is not None for effect in self.effects]
        return [0, *(k for k in range(1, SINGLES) if has[k - 1]), *[PAIR] * has[1]]

    def derive(self):
        self.own = {k: self.effects[k].units() for k in self.used}

    def unit(self, row):
        shift, ratio = 0.0, 1.0
        for k in self.own:
            own = self.own[k](row)
            shift, ratio = shift + ratio * own[0], ratio * own[1]
        return shift, ratio, math.log(ratio)

    def learn(self, numbers, rows):
        for k in self.own:
            self.effects[k].seen += zip(numbers, rows, strict=True)
            units = [self.own[k](row) for row in rows]
            numbers = [(x - s) / r for x, (s, r) in zip(numbers, units, strict=True)]
        self.n += len(rows)
        if self.n - self.fitted >= min(self.fitted // 4, 4096):
            self.fitted = self.n
            self.choose()
        self.derive()

    def choose(self):
        taken = []
        for k in range(SINGLES):
            effect = self.effects[k]
            gains = {(f,): effect.gain((f,)) for f in range(self.c) if f not in taken}
            best = max(gains, key=gains.get)
            before, effect.fields = effect.fields, best if gains[best] > 0.0 else None
            taken += effect.fields or ()
            if effect.fields != before:
                self.effects[k + 1 :] = [Effect() for _ in self.effects[k + 1 :]]
            elif effect.fields is None:
                self.effects[k + 1 : PAIR] = [Effect() for _ in self.effects[k + 1 : PAIR]]
        last = self.effects[PAIR]
        if self.effects[1].fields is not None:
            pair = tuple(sorted(taken[:2]))
            if pair != self.pair:
                self.pair, last.seen = pair, []
            last.fields = pair if last.gain(pair) > 0.0 else None
