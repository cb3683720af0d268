import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resid.corpus.triggers import AFTER, BEFORE, Candidates, Triggers, surroundings
from resid.corpus.windows import NONE

TOKEN = st.tuples(
    st.integers(0, 2), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 9), st.integers(0, 50)
)


def candidates(rows):
    neuron, activation, document, pos = (np.array(column) for column in zip(*rows, strict=True))
    context = np.repeat(pos[:, None], BEFORE + 1 + AFTER, 1).astype(np.int32)
    where = (document, document % 3, document + 7, pos)
    return Candidates(neuron, activation.astype(np.float32), *where, context)


@given(
    st.lists(TOKEN, min_size=1, max_size=40, unique_by=lambda row: (row[0], *row[2:])), st.data()
)
def test_the_strongest_are_kept_whatever_the_order(rows, data):
    """Held against a sort of everything; a third of all activations are equal."""
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    parts = [Triggers(3, 4), Triggers(3, 4)]
    for triggers, some in zip(parts, (shuffled[:cut], shuffled[cut:]), strict=True):
        for row in some:
            triggers.add(candidates([row]))
    parts[0].add_arrays(parts[1].arrays())
    found = parts[0]
    for neuron in range(3):
        mine = [(-a, d, p) for n, a, d, p in rows if n == neuron]
        expected = sorted(mine)[:4]
        kept = found.document[neuron] != NONE
        columns = (-found.activation[neuron], found.document[neuron], found.pos[neuron])
        assert list(zip(*(c[kept].tolist() for c in columns), strict=True)) == expected
        assert np.array_equal(found.context[neuron][kept][:, 0], found.pos[neuron][kept])
        assert np.array_equal(found.file[neuron][kept], found.document[neuron][kept] % 3)
        assert np.array_equal(found.line[neuron][kept], found.document[neuron][kept] + 7)


def test_surroundings_end_where_the_window_ends():
    around = surroundings([[1, 2, 3], [4]], [9, NONE])
    assert around.shape == (2, 3, BEFORE + 1 + AFTER)
    assert around[0, 1, BEFORE - 1 : BEFORE + 4].tolist() == [1, 2, 3, 9, NONE]
    assert around[1, 0, BEFORE - 1 : BEFORE + 2].tolist() == [NONE, 4, NONE]
