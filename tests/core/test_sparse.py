"""Our sparse matrices agree with scipy's, and with arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from privspec.core import sparse as ours
from privspec.core.sparse import SparseMatrix, beside, kron, sparse_of, stacked


@st.composite
def arrays(draw: st.DrawFn, rows: int | None = None, columns: int | None = None) -> np.ndarray:
    """Small whole numbers, many of them 0."""
    m = draw(st.integers(0, 5)) if rows is None else rows
    n = draw(st.integers(1, 5)) if columns is None else columns
    cells = draw(st.lists(st.sampled_from([0, 0, 0, 1, -2, 3]), min_size=m * n, max_size=m * n))
    return np.array(cells, dtype=float).reshape(m, n)


def well_formed(matrix: SparseMatrix) -> np.ndarray:
    """The entries, after a look at how they are held."""
    assert len(matrix.indptr) == matrix.shape[0] + 1 and matrix.indptr[-1] == len(matrix.data) == len(matrix.indices)
    assert np.all(matrix.data != 0)
    places = matrix.rows * matrix.shape[1] + matrix.indices
    assert np.all(np.diff(places) > 0)
    assert np.array_equal(matrix.csr.toarray(), matrix.toarray())
    return matrix.toarray()


@given(st.data())
def test_they_compute_as_arrays_do(data: st.DataObject) -> None:
    a = data.draw(arrays())
    b, c = data.draw(arrays(rows=a.shape[1])), data.draw(arrays(rows=a.shape[0], columns=a.shape[1]))
    own, other, alike = map(sparse_of, (a, b, c))
    assert np.array_equal(well_formed(own), a)
    assert np.array_equal(well_formed(own.T), a.T)
    assert np.array_equal(well_formed(own @ other), a @ b)
    assert np.array_equal(well_formed(own + alike), a + c)
    assert np.array_equal(own @ b, a @ b) and np.array_equal(a @ other, a @ b)
    assert np.array_equal(own @ b[:, 0], a @ b[:, 0])
    assert np.array_equal(own + c, a + c) and np.array_equal(c + own, a + c)
    assert np.array_equal((own * -2.0).toarray(), a * -2) and np.array_equal((-own).toarray(), -a)
    assert np.array_equal(well_formed(kron(own, b)), np.kron(a, b))
    assert np.array_equal(well_formed(stacked([own, alike, own])), np.vstack([a, c, a]))
    assert np.array_equal(well_formed(beside([own, alike])), np.hstack([a, c]))
    if len(a):
        some = data.draw(st.lists(st.integers(0, len(a) - 1)))
        assert np.array_equal(well_formed(own[np.array(some, dtype=np.intp)]), a[some])
        assert np.array_equal(own[:1].toarray(), a[:1])
        assert np.array_equal(own[np.arange(len(a)) % 2 == 0].toarray(), a[::2])
    some = data.draw(st.permutations(range(a.shape[1])))[:2]
    assert np.array_equal(well_formed(own.columns(np.array(some))), a[:, some])


def test_entries_at_one_place_are_added_up_and_may_cancel() -> None:
    found = SparseMatrix.of((2, 3), [0, 1, 0, 0], [2, 0, 2, 1], [1.5, 4.0, 1.0, 0.0])
    assert np.array_equal(well_formed(found), [[0, 0, 2.5], [4, 0, 0]])
    assert len(SparseMatrix.of((1, 1), [0, 0], [0, 0], [1.0, -1.0]).data) == 0


def test_large_products_are_made_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "CHUNK", 64)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, (40, 30)) * rng.normal(size=(40, 30))
    a[[0, 7, 39]] = 0
    b = rng.normal(size=(30, 17))
    assert np.allclose(sparse_of(a) @ b, sparse.csr_array(a) @ b, rtol=1e-14, atol=1e-14)
