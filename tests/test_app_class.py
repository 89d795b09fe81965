"""Many visitors at once: what is shared between them, and that it changes nobody's numbers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
import pytest
from gradio.blocks import BlocksConfig
from gradio.state_holder import SessionState

from app.encoding import encode_what_fits
from app.query_cache import QueryCache
from app.services import Services
from app.together import Together


class Slow:
    """Answers each text with its length, and holds the first batch until it is let go."""

    def __init__(self):
        self.batches, self.go, self.started = [], threading.Event(), threading.Event()

    def __call__(self, batch):
        self.batches.append(list(batch))
        self.started.set()
        assert self.go.wait(30)
        if "bad" in batch:
            raise ValueError("no")
        return [len(text) for text in batch]


def ask(together, slow, texts):
    """The answers of one thread a text; the first text is at work while the others come."""
    with ThreadPoolExecutor(len(texts)) as pool:
        first = pool.submit(together, texts[0])
        assert slow.started.wait(30)
        rest = [pool.submit(together, text) for text in texts[1:]]
        while len(together._asked) < len(set(texts)):
            threading.Event().wait(0.01)
        slow.go.set()
        return [answer.exception() or answer.result() for answer in (first, *rest)]


def test_what_is_asked_meanwhile_is_one_batch_and_equal_things_are_asked_once():
    slow = Slow()
    together = Together(slow, len, 100)
    answers = ask(together, slow, ["a", "bb", "ccc", "bb", "a"])
    assert answers == [1, 2, 3, 2, 1]
    assert slow.batches[0] == ["a"] and sorted(slow.batches[1]) == ["bb", "ccc"]
    assert len(slow.batches) == 2
    assert not together._asked  # nothing is kept
    assert together("a") == 1 and slow.batches[2] == ["a"]


def test_batches_are_bounded_and_a_large_thing_goes_alone():
    slow = Slow()
    answers = ask(Together(slow, len, 4), slow, ["a", "bb", "cc", "d" * 9, "ee"])
    assert answers == [1, 2, 2, 9, 2]
    assert all(len(b) == 1 or sum(map(len, b)) <= 4 for b in slow.batches)


def test_a_failure_reaches_those_who_asked_and_nobody_later():
    slow = Slow()
    together = Together(slow, len, 100)
    first, second, third = ask(together, slow, ["a", "bad", "cc"])
    assert first == 1 and isinstance(second, ValueError) and isinstance(third, ValueError)
    assert together("cc") == 2


def texts_of(n):
    rng = np.random.default_rng(3)
    words = ["bank", "river", "the", "old", "A", "play", ".", "unread"]
    return [
        tuple(
            (*rng.choice(words, rng.integers(1, 20)).tolist(), f"v{i}")
            for _ in range(rng.integers(1, 4))
        )
        for i in range(n)
    ]


def test_vectors_are_those_of_the_text_alone_to_the_last_bit_in_any_batch(services):
    texts = texts_of(24)
    fresh = Services(services.settings, services.examples, list(services.models.values()))
    for kind, model in services.models.items():
        with ThreadPoolExecutor(12) as pool:
            banks = list(pool.map(lambda text, kind=kind: fresh.encode(kind, text), texts))
        for text, bank in zip(texts, banks, strict=True):
            assert bank.sentences == text
            alone = encode_what_fits(model.encoder, text)
            vectors = np.concatenate([e.hidden.transpose(1, 0, 2) for e in alone])
            np.testing.assert_array_equal(bank.vectors, vectors)


def test_products_of_several_tokens_in_one_pass_are_those_of_each(services):
    bank = services.model("bilm").bank
    cache, vectors = QueryCache(10**8), bank.vectors[:40:3]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda v: cache.query(bank, v), vectors))
    for query, own in zip(found, vectors, strict=True):
        expected = bank.query(own)
        np.testing.assert_allclose(query.table, expected.table, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(query.norm, expected.norm, rtol=1e-6)
    assert cache.query(bank, vectors[0]) is found[0]


def test_a_bank_that_is_gone_leaves_nothing_in_the_cache(services):
    cache = QueryCache(1)
    for text in texts_of(3):
        bank = copy(services.encode("bilm", text))
        cache.query(bank, bank.vectors[0])
        del bank
    assert not cache._together


def test_a_new_visitor_gets_what_gradio_would_describe(demo):
    """Described once for all; a visitor's own values stay the visitor's."""
    ours = SessionState(demo)
    described = {k: BlocksConfig.config_for_block(k, [], v) for k, v in demo.blocks.items()}
    assert ours.config_values == described
    (text,) = (k for k, v in demo.blocks.items() if v.elem_id == "text")
    ours._update_value_in_config(text, "mine")
    assert SessionState(demo).config_values == described
    changed = copy(demo.blocks[text])
    changed.label = "another"
    ours[text] = changed
    ours._update_config(text)
    assert ours.config_values[text]["props"]["label"] == "another"


@pytest.mark.parametrize("kind", ["attention", "attention_concat"])
def test_attention_of_one_sentence_and_of_many_is_the_same_to_the_last_bit(kind):
    from elmo.encoders import untrained_encoder

    encoder = untrained_encoder(kind)
    rng = np.random.default_rng(0)
    sentences = [[f"w{w}" for w in rng.integers(0, 30, rng.integers(0, 40))] for _ in range(60)]
    together = encoder.encode(sentences, attention=True)
    for sentence, one in zip(sentences, together, strict=True):
        alone = encoder.encode([sentence], attention=True)[0]
        np.testing.assert_array_equal(alone.hidden, one.hidden)
        np.testing.assert_array_equal(alone.attention, one.attention)
