"""What visitors share: limits, caches, and that nothing in them depends on who came before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.examples import load_examples
from app.services import TextCache, encode_what_fits, load_services
from app.settings import ROOT, Settings
from elmo.banks.bank import build_bank
from elmo.results import Encoding


def bank_of(n_tokens):
    tokens = tuple(f"t{i}" for i in range(n_tokens))
    return (tokens,), build_bank(
        [tokens], [Encoding(tokens, np.ones((3, n_tokens, 4), np.float32))]
    )


def test_the_cache_is_bounded_and_keeps_what_was_used_last():
    (first, bank), (second, other), (third, last) = (bank_of(n) for n in (10, 11, 12))
    cache = TextCache(max_bytes=bank.vectors.nbytes + last.vectors.nbytes)
    cache.put(first, bank)
    cache.put(second, other)
    assert cache.get(first) is bank
    cache.put(third, last)
    assert cache.get(second) is None
    assert cache.get(first) is bank and cache.get(third) is last
    big, whole = bank_of(1000)
    cache.put(big, whole)  # larger than the bound: alone, but kept
    assert cache.get(big) is whole and cache.get(first) is None


def test_equal_texts_are_encoded_once_and_bit_equal_later(services):
    text = (("The", "bank", "closed", "."), ("A", "bat", "flew", "."))
    for kind in services.models:
        bank = services.encode(kind, text)
        assert services.encode(kind, text) is bank
        services.encode(kind, (("Something", "else", "."), *text))
        again = build_bank(text, encode_what_fits(services.model(kind).encoder, text))
        np.testing.assert_array_equal(again.vectors, bank.vectors)


def test_many_threads_get_their_own_answers(services):
    texts = [((f"word{i}", "is", "here"),) for i in range(16)]
    with ThreadPoolExecutor(8) as pool:
        banks = list(pool.map(lambda text: services.encode("bilm", text), texts))
    for text, bank in zip(texts, banks, strict=True):
        assert bank.sentences == text
        alone = services.model("bilm").encoder.encode([list(text[0])])[0]
        np.testing.assert_array_equal(bank.vectors[0], alone.hidden[:, 0])


def test_unknown_encoders_are_refused(services):
    with pytest.raises(ValueError, match="encoder must be one of bilm, attention, got 'gpt'"):
        services.encode("gpt", (("a",),))


def test_missing_weights_are_stood_in_for_and_said_so(services):
    assert not any(model.trained for model in services.models.values())


def test_all_examples_can_be_shown(services):
    examples = load_examples(ROOT / "assets" / "examples.json")
    assert len(examples) >= 25
    for example in examples:
        assert example.question and example.title
        assert services.parse(example.text, False) == example.tokens
        if example.word:
            sentence, token = example.focus
            assert example.tokens[sentence][token].casefold() == example.word.casefold()


def test_broken_examples_are_named(tmp_path):
    path = tmp_path / "examples.json"
    path.write_text(
        '{"examples": [{"id": "x", "title": "x", "question": "?", "sentences": ["A b ."],'
        ' "focus": {"sentence": 0, "token": 9}}]}'
    )
    with pytest.raises(ValueError, match="example 'x' has no token at"):
        load_examples(path)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="max_tokens must be 1 or more"):
        Settings(max_tokens=0)


def test_shipped_weights_are_used_where_they_are(tmp_path, services):
    from elmo.checkpoint import save_model

    model = services.model("attention").encoder.model
    folder = tmp_path / "attention"
    save_model(folder, model, [], {"name": "attention"})
    found = load_services(Settings(models=tmp_path, examples=services.settings.examples))
    assert found.model("attention").trained and not found.model("bilm").trained
