import h5py
import numpy as np
import pytest
import reference
from small_models import small_encoder, small_model

from elmo.checkpoint import save_model
from elmo.encoders import load_elmo, load_encoder
from elmo.sentence_scores import perplexity, score_sentences

VOCABULARY = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "."]
SENTENCES = [["the", "cat", "sat", "."], ["the", "zebra"], []]


@pytest.fixture
def official(tmp_path):
    options = reference.options_with()
    arrays = reference.random_model(options)
    paths = reference.write_files(tmp_path, options, arrays)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(len(VOCABULARY), 8)).astype(np.float32)
    bias = rng.normal(size=len(VOCABULARY)).astype(np.float32)
    with h5py.File(tmp_path / "softmax.hdf5", "w") as file:
        file["softmax/W"], file["softmax/b"] = weight, bias
    (tmp_path / "words.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return options, arrays, paths, weight, bias, tmp_path


def expected_scores(options, arrays, weight, bias, tokens):
    top = reference.encode(options, arrays, tokens)[-1]
    forward, backward = np.split(top, 2, axis=-1)
    framed = ["<S>", *tokens, "</S>"]
    ids = [VOCABULARY.index(t) if t in VOCABULARY else 2 for t in framed]

    def log_p(state, word):
        logits = weight.astype(np.float64) @ state + bias
        return logits[word] - np.log(np.exp(logits).sum())

    return (
        [log_p(forward[t], ids[t + 1]) for t in range(len(tokens) + 1)],
        [log_p(backward[t + 1], ids[t]) for t in range(len(tokens) + 1)],
    )


def test_probabilities_equal_the_reference(official):
    options, arrays, paths, weight, bias, folder = official
    encoder = load_elmo(*paths, softmax=folder / "softmax.hdf5", vocabulary=folder / "words.txt")
    scores = score_sentences(encoder, SENTENCES)
    total = [0.0, 0.0]
    for score, tokens in zip(scores, SENTENCES, strict=True):
        forward, backward = expected_scores(options, arrays, weight, bias, tokens)
        assert score.tokens == tuple(tokens)
        np.testing.assert_allclose(score.forward, forward, atol=1e-4)
        np.testing.assert_allclose(score.backward, backward, atol=1e-4)
        total = [total[0] - sum(forward), total[1] - sum(backward)]
    n = sum(len(s) + 1 for s in SENTENCES)
    result = perplexity(scores)
    assert result.forward == pytest.approx(np.exp(total[0] / n), rel=1e-4)
    assert result.backward == pytest.approx(np.exp(total[1] / n), rel=1e-4)
    assert result.mean == pytest.approx(np.sqrt(result.forward * result.backward))
    vectors = load_elmo(*paths).encode(SENTENCES)
    for a, b in zip(encoder.encode(SENTENCES), vectors, strict=True):
        assert np.array_equal(a.hidden, b.hidden)


def test_the_chunk_size_changes_nothing(official, monkeypatch):
    *_, paths, _, _, folder = official
    encoder = load_elmo(*paths, softmax=folder / "softmax.hdf5", vocabulary=folder / "words.txt")
    whole = score_sentences(encoder, SENTENCES)
    monkeypatch.setattr("elmo.sentence_scores.MAX_LOGITS", 1)
    for a, b in zip(score_sentences(encoder, SENTENCES), whole, strict=True):
        np.testing.assert_allclose(a.forward, b.forward, atol=1e-6)


def test_our_own_models_have_a_head(tmp_path):
    for kind in ("bilm", "attention_concat"):
        save_model(tmp_path / kind, small_model(kind, 7), VOCABULARY, {"name": kind})
        scores = score_sentences(load_encoder(tmp_path / kind), SENTENCES)
        assert all((s.forward < 0).all() and (s.backward < 0).all() for s in scores)
    save_model(tmp_path / "joint", small_model("attention", 7), VOCABULARY, {"name": "joint"})
    with pytest.raises(ValueError, match="both ways at once"):
        score_sentences(load_encoder(tmp_path / "joint"), SENTENCES)


def test_what_is_missing_is_said(official):
    *_, paths, _, _, folder = official
    with pytest.raises(ValueError, match="has no softmax"):
        score_sentences(small_encoder("bilm"), SENTENCES)
    with pytest.raises(ValueError, match="belong together"):
        load_elmo(*paths, softmax=folder / "softmax.hdf5")
    short = folder / "short.txt"
    short.write_text("the\ncat\n", encoding="utf-8")
    with pytest.raises(ValueError, match="2 words for 7 rows, no <S>, no </S>, no <UNK>"):
        load_elmo(*paths, softmax=folder / "softmax.hdf5", vocabulary=short)
    with pytest.raises(ValueError, match="no sentences"):
        perplexity([])
