"""A bank in a vector database, for more rows than one machine holds. An optional extra:

    pip install pymilvus milvus-lite

Milvus runs embedded (a file, through milvus-lite), as one server, or distributed over a cluster,
all open source and behind the same client; only the address changes. That is why it is used here;
LanceDB is lighter on one machine, but its distributed form is a commercial service.

A database ranks stored vectors by one inner product, while every mix of layers asks for another.
One stored vector serves them all (mixing is linear): with the layers g_k of a row end to end, and
q the mixed query,

    <mix g, q>  =  <[g_0; g_1; ...], [s_0 q; s_1 q; ...]>.

That ranks by inner product, and cosine also divides by the length of the row's mix. A row may be
stored at any scale without changing its cosines: it is stored divided by its mix's typical length,
so that the two rankings nearly agree. Then more rows than asked for are fetched with their vectors,
scored exactly, and the best kept. What is lost is what was not among those fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmo.banks.bank import TokenBank
from elmo.banks.bank_tables import Means
from elmo.banks.neighbors import Found

ROWS_PER_INSERT = 1_000
FETCHED = 20  # times k rows are fetched and scored exactly
INDEXES = {
    "FLAT": ({}, {}),
    "IVF_SQ8": ({"nlist": 1024}, {"nprobe": 64}),
    "HNSW": ({"M": 16, "efConstruction": 200}, {"ef": 800}),
}


class MilvusBank:
    """The rows of a bank in one collection, as one view of them: see ``bank``.

    address: a file that ends in ``.db`` (embedded) or ``http://host:19530``. means: the bank's,
    which a query needs as well. Row numbers are the bank's.
    """

    def __init__(
        self,
        address: str | Path,
        collection: str,
        means: Means,
        unit: bool = True,
        centered: bool = True,
        index: str = "IVF_SQ8",
    ) -> None:
        try:
            from pymilvus import MilvusClient
        except ImportError as error:
            raise ImportError("needs: pip install pymilvus milvus-lite") from error
        if index not in INDEXES:
            raise ValueError(f"index must be one of {', '.join(INDEXES)}, got {index!r}")
        self.client = MilvusClient(str(address))
        self.collection = collection
        self.means, self.unit, self.centered, self.index = means, unit, centered, index
        self.n_layers, self.width = means.raw.shape

    def store(self, bank: TokenBank) -> Iterator[int]:
        """Writes all rows, replacing what the collection held; yields how many are written."""
        from pymilvus import DataType

        schema = self.client.create_schema(auto_id=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.n_layers * self.width)
        if self.client.has_collection(self.collection):
            self.client.drop_collection(self.collection)
        self.client.create_collection(self.collection, schema=schema)
        for start in range(0, len(bank), ROWS_PER_INSERT):
            part = self._view(np.asarray(bank.vectors[start : start + ROWS_PER_INSERT], np.float32))
            part /= np.maximum(_typical_length(part), 1e-12)[:, None, None]
            rows = [{"row": start + i, "vector": v.ravel()} for i, v in enumerate(part)]
            self.client.insert(self.collection, rows)
            yield start + len(rows)
        self.client.flush(self.collection)
        parameters = self.client.prepare_index_params()
        parameters.add_index(
            "vector", index_type=self.index, metric_type="IP", params=INDEXES[self.index][0]
        )
        self.client.create_index(self.collection, parameters)
        self.client.load_collection(self.collection)

    def search(self, vectors: np.ndarray, s: np.ndarray, k: int = 20) -> Found:
        """The k nearest by cosine, among those fetched; see ``TokenBank.search``."""
        s = np.asarray(s, dtype=np.float32)
        query = np.tensordot(s, self._view(vectors[None].astype(np.float32))[0], axes=1)
        hits = self.client.search(
            self.collection,
            data=[(s[:, None] * query).ravel().tolist()],
            limit=FETCHED * k,
            output_fields=["vector"],
            search_params={"metric_type": "IP", "params": INDEXES[self.index][1]},
        )[0]
        if not hits:
            return Found(np.zeros(0, np.int64), np.zeros(0, np.float32))
        rows = np.array([hit["row"] for hit in hits], dtype=np.int64)
        stored = np.array([hit["entity"]["vector"] for hit in hits], dtype=np.float32)
        mixed = np.tensordot(stored.reshape(-1, self.n_layers, self.width), s, axes=(1, 0))
        length = np.linalg.norm(mixed, axis=1) * np.linalg.norm(query)
        scores = np.divide(mixed @ query, length, out=np.zeros_like(length), where=length > 0)
        best = np.lexsort((rows, -scores))[:k]
        return Found(rows[best], scores[best])

    def close(self) -> None:
        self.client.close()

    def _view(self, vectors: np.ndarray) -> np.ndarray:
        """(N, L, D) as the chosen view has them."""
        if self.unit:
            length = np.linalg.norm(vectors, axis=-1, keepdims=True)
            vectors = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
        if self.centered:
            vectors = vectors - (self.means.unit if self.unit else self.means.raw)
        return vectors


def _typical_length(vectors: np.ndarray) -> np.ndarray:
    """(N,) mean length of a row's mix, over the single layers and the even mix: (N, L, D)."""
    corners = np.linalg.norm(vectors, axis=-1)  # (N, L)
    even = np.linalg.norm(vectors.mean(axis=1), axis=-1, keepdims=True)
    return np.concatenate([corners, even], axis=1).mean(axis=1)
