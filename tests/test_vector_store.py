"""The database's neighbors against the exact bank's. Needs the optional packages."""

import numpy as np
import pytest

pytest.importorskip("pymilvus", reason="optional: pip install pymilvus milvus-lite")
pytest.importorskip("milvus_lite", reason="optional: pip install pymilvus milvus-lite")

from elmo.banks.bank import build_bank  # noqa: E402
from elmo.banks.vector_store import MilvusBank  # noqa: E402
from elmo.results import Encoding  # noqa: E402


def test_one_stored_vector_serves_every_mix(tmp_path):
    rng = np.random.default_rng(0)
    word = rng.integers(0, 40, 600)
    hidden = rng.normal(size=(3, 40, 16))[:, word] + rng.normal(size=(3, 600, 16)) + 1
    tokens = tuple(f"w{w}" for w in word)
    bank = build_bank([tokens], [Encoding(tokens, hidden.astype(np.float32))])
    store = MilvusBank(tmp_path / "bank.db", "tokens", bank.means, index="FLAT")
    try:
        assert list(store.store(bank))[-1] == 600
        for s in rng.dirichlet(np.ones(3), 5):
            found = store.search(bank.vectors[5], s, 10)
            exact = bank.search(bank.vectors[5], s, 10, unit=True)
            assert found.rows[0] == 5
            assert len(set(found.rows) & set(exact.rows)) >= 9
            np.testing.assert_allclose(found.scores[0], 1, atol=1e-5)
    finally:
        store.close()


def test_unknown_index_is_refused(tmp_path):
    with pytest.raises(ValueError, match="index must be one of FLAT, IVF_SQ8, HNSW"):
        MilvusBank(tmp_path / "bank.db", "tokens", None, index="PQ")
