"""The readouts that are compared: each works, and differs from what is shipped."""

import numpy as np
import pytest

from benchmarks.readout_variants import AS_IS, variants
from benchmarks.systems import CHOICES, with_faults

pytestmark = pytest.mark.slow

VARIANTS = variants("oslrau")


def _stream(name):
    """Return a system's records with faults, and a sudden change near the end."""
    rng = np.random.default_rng(0)
    x = with_faults(CHOICES[name](rng, 12_000), rng).x.copy()
    x[9_000:] += 40 * x.std(axis=0)
    return x


@pytest.fixture(scope="module")
def streams():
    return [_stream("heap"), _stream("retries")]  # the latter has records that are equal


def _readouts(name, streams):
    variant, found = VARIANTS[name], []
    for x in streams:
        with variant.changed():
            block = variant.make().process(x)
        assert np.nanmin(block.p_value) > 0 and np.nanmax(block.p_value) <= 1
        opened = [event.incident.start.number for event in block.incidents]
        found.append((block.p_value.tobytes(), opened))
    return found


@pytest.fixture(scope="module")
def shipped(streams):
    return _readouts(AS_IS, streams)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != AS_IS])
def test_a_readout_with_a_part_left_out_works_and_is_another_one(name, streams, shipped):
    assert _readouts(name, streams) != shipped
