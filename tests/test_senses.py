"""The senses measurement on vectors whose answer is known."""

import argparse
import json

import numpy as np
import pytest
from small_models import small_encoder

from elmo.banks import senses
from elmo.banks.bank import build_bank
from elmo.banks.senses import read_sense_examples, score_senses, summarize
from elmo.banks.tagged import Tag
from elmo.results import Encoding


def bank_where_layer_1_knows_the_sense(noise=0.1, n=8):
    rng = np.random.default_rng(2)
    sentences, encodings, tags = [], [], []
    centers = rng.normal(size=(4, 12))
    for i in range(4 * n):
        sense = i % 4  # two words of two senses
        word = f"w{sense // 2}"
        hidden = np.zeros((2, 2, 12))
        hidden[0, 1] = 1 + sense // 2  # layer 0: copies are equal
        hidden[1, 1] = centers[sense] + noise * rng.normal(size=12)
        hidden[:, 0] = rng.normal(size=(2, 12))
        sentences.append((f"x{i}", word))
        encodings.append(Encoding(sentences[-1], hidden.astype(np.float32)))
        tags.append([Tag(1, word, sense=f"{word}: s{sense}")])
    return build_bank(sentences, encodings, tags=tags)


def test_the_layer_that_knows_finds_all_and_ties_count_as_chance():
    scores = score_senses(bank_where_layer_1_knows_the_sense())
    assert [s.word for s in scores] == ["w0", "w0", "w1", "w1"]
    for score in scores:
        assert score.n == 8 and score.found
        assert score.layers[1] == pytest.approx(5)
        assert score.chance == pytest.approx(5 * 7 / 15)
        assert score.layers[0] == pytest.approx(score.chance)
    summary = summarize(scores)
    assert summary["n_found"] == 4 and summary["layers"][1] == 1 and summary["not_found"] == []


def test_noise_is_not_found():
    scores = score_senses(bank_where_layer_1_knows_the_sense(noise=300))
    summary = summarize(scores)
    assert summary["n_found"] < 3 and len(summary["not_found"]) == 4 - summary["n_found"]


def test_our_examples_are_read():
    sentences = read_sense_examples()
    words = {s.tags[0].lemma for s in sentences}
    assert len(words) >= 18
    for sentence in sentences:
        tag = sentence.tags[0]
        assert sentence.tokens[tag.position] == tag.lemma


def test_the_command_lists_every_sense(capsys, monkeypatch):
    monkeypatch.setattr(senses, "encoder_from", lambda _: small_encoder("attention"))
    senses.run(argparse.Namespace(examples=senses.EXAMPLES, view="mean removed"))
    lines = capsys.readouterr().out.splitlines()
    summary = json.loads(lines[-1])
    assert len(lines) == summary["n_senses"] + 3
    assert summary["layers"][0] == pytest.approx(summary["chance"], abs=1e-3)
    assert set(summary["mix_by_view"]) == set(senses.VIEWS)
    marked = sum(line.startswith("- ") for line in lines)
    assert marked == len(summary["not_found"]) == summary["n_senses"] - summary["n_found"]
