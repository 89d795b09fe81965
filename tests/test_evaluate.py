"""Held-out scores against sums done by hand."""

import json

import numpy as np
import pytest
import torch

from elmo.__main__ import main
from elmo.checkpoint import save_model
from elmo.config import AttentionConfig, BiLMConfig, CharConfig, ModelConfig
from elmo.language_model import build
from elmo.text import char_ids
from elmo.training import evaluate, gaps
from elmo.training.corpus import build_vocabulary, load

SENTENCES = [["the", "cat", "sat"], ["a", "dog"], ["the", "dog", "saw", "the", "bird"], ["unseen"]]
CHAR = CharConfig(16, filters=((1, 8), (2, 8)))


def make(kind):
    stacks = {
        "bilm": BiLMConfig(16, 24),
        "attention": AttentionConfig(16, 2, 2, 32, max_tokens=16),
        "attention_concat": AttentionConfig(16, 2, 2, 32, max_tokens=16, concatenate=True),
    }
    corpus = load(SENTENCES)
    vocabulary = build_vocabulary(corpus, 9)  # one word of the text is left out
    config = ModelConfig(kind, CHAR, stacks[kind], len(vocabulary), d_head=16)
    return build(config, 0).requires_grad_(False), vocabulary, corpus


def top(model, sentence):
    """The top layer of one sentence alone, boundaries included."""
    tokens = ["<S>", *sentence, "</S>"]
    ids = torch.from_numpy(np.stack([char_ids(t) for t in tokens]))
    layers, _ = model.layers(model.token_encoder(ids)[None], torch.tensor([len(tokens)]))
    return layers[-1, 0]


def log_p(model, sentence, direction):
    """log-probabilities (T + 2, V) that each position gives to its neighbor."""
    half = top(model, sentence).chunk(2, dim=-1)[direction == "backward"]
    return torch.log_softmax(model.head(model.read(half, direction)), dim=-1)


@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_perplexity_counts_words_and_one_boundary_a_sentence(kind):
    model, vocabulary, corpus = make(kind)
    words = {w: i for i, w in enumerate(vocabulary)}
    total, n = np.zeros(2), 0
    for sentence in SENTENCES:
        ids = [0, *(words.get(w, 2) for w in sentence), 1]
        forward, backward = log_p(model, sentence, "forward"), log_p(model, sentence, "backward")
        for k in range(len(sentence) + 1):
            total += [float(forward[k, ids[k + 1]]), float(backward[k + 1, ids[k]])]
            n += 1
    found = evaluate.perplexity(model, vocabulary, corpus)
    expected = np.exp(-total / n)
    assert found.forward == pytest.approx(expected[0], rel=1e-4)
    assert found.backward == pytest.approx(expected[1], rel=1e-4)
    assert found.mean == pytest.approx(np.sqrt(expected.prod()), rel=1e-4)


def test_a_masked_model_has_no_perplexity():
    model, vocabulary, corpus = make("attention")
    with pytest.raises(ValueError, match="no perplexity"):
        evaluate.perplexity(model, vocabulary, corpus)


def test_unigram_sums_to_one_with_unknown_words_as_one_class():
    _, vocabulary, corpus = make("bilm")
    p = np.exp(evaluate.unigram(corpus, vocabulary))
    assert p[2:].sum() == pytest.approx(1)
    assert p[vocabulary.index("the")] == pytest.approx(3 / 11)


def test_random_gaps_are_distinct_and_the_same_again():
    corpus = load(SENTENCES)
    chosen = gaps.random_gaps(corpus, 6)
    assert len({tuple(gap) for gap in chosen}) == 6
    assert all(position < len(SENTENCES[s]) for s, position in chosen)
    np.testing.assert_array_equal(chosen, gaps.random_gaps(corpus, 6))
    assert len(gaps.random_gaps(corpus, 1_000)) == corpus.n_tokens


@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_one_sided_scores_and_their_product(kind):
    model, vocabulary, corpus = make(kind)
    words = {w: i for i, w in enumerate(vocabulary)}
    log_u = evaluate.unigram(corpus, vocabulary)
    chosen = gaps.random_gaps(corpus, 100)
    exponents = gaps.Exponents(0.8, 0.6)
    sums = {"forward": 0.0, "backward": 0.0, "product": 0.0, "tuned_product": 0.0}
    for s, position in chosen:
        target = words.get(SENTENCES[s][position], 2)
        left = log_p(model, SENTENCES[s], "forward")[position].numpy()
        right = log_p(model, SENTENCES[s], "backward")[position + 2].numpy()
        for name, side in {"forward": left, "backward": right}.items():  # no boundary is a word
            sums[name] += side[target] - np.log(np.exp(side[2:]).sum())
        for name, (a, b) in {"product": (1, 1), "tuned_product": (0.8, 0.6)}.items():
            score = np.exp(a * (left + right) - b * log_u)[2:]
            sums[name] += np.log(score[target - 2] / score.sum())
    found = gaps.one_sided_scores(model, vocabulary, log_u, corpus, chosen, exponents)
    for name, value in sums.items():
        assert found[name].log_probability == pytest.approx(value / len(chosen), rel=1e-4)
        assert 0 <= found[name].accuracy <= 1


def test_tuned_exponents_are_no_worse_than_the_plain_product():
    model, vocabulary, corpus = make("bilm")
    log_u, chosen = evaluate.unigram(corpus, vocabulary), gaps.random_gaps(corpus, 100)
    best = gaps.tune_exponents(model, vocabulary, log_u, corpus, chosen)
    found = gaps.one_sided_scores(model, vocabulary, log_u, corpus, chosen, best)
    assert found["tuned_product"].log_probability >= found["product"].log_probability


def test_joint_score_sees_the_gap_and_nothing_of_the_word():
    model, vocabulary, corpus = make("attention")
    words = {w: i for i, w in enumerate(vocabulary)}
    chosen = gaps.random_gaps(corpus, 100)
    total = 0.0
    for s, position in chosen:
        filled = [*SENTENCES[s]]
        target, filled[position] = words.get(filled[position], 2), "<MASK>"
        hidden = model.read(top(model, filled)[position + 1], "joint")
        total += float(torch.log_softmax(model.head(hidden)[2:], dim=-1)[target - 2])
    found = gaps.joint_score(model, vocabulary, corpus, chosen)
    assert found.log_probability == pytest.approx(total / len(chosen), rel=1e-4)


@pytest.mark.parametrize("kind", ["bilm", "attention"])
def test_the_command_writes_scores_on_the_card(kind, tmp_path, capsys):
    model, vocabulary, corpus = make(kind)
    folder = tmp_path / "model"
    save_model(folder, model, vocabulary, {"name": kind}, evaluate.unigram(corpus, vocabulary))
    text = tmp_path / "test.txt"
    text.write_text("".join(" ".join(s) + "\n" for s in SENTENCES))
    arguments = ["--model", str(folder), "--text", str(text), "--threads", "1", "--write"]
    assert main(["evaluate", *arguments, "--tune", str(text)]) == 0
    card = json.loads((folder / "card.json").read_text())
    assert json.loads(capsys.readouterr().out) == {k: card[k] for k in card if k != "name"}
    assert card["n_gaps"] == corpus.n_tokens
    names = (
        {"joint"} if kind == "attention" else {"forward", "backward", "product", "tuned_product"}
    )
    assert set(card["gap_logprob"]) == names
    assert ("test_perplexity" in card) == (kind == "bilm")


def test_the_command_refuses_before_it_computes(tmp_path, capsys):
    model, vocabulary, corpus = make("attention")
    log_u = evaluate.unigram(corpus, vocabulary)
    save_model(tmp_path / "joint", model, vocabulary, {}, log_u)
    save_model(tmp_path / "bilm", make("bilm")[0], vocabulary, {}, log_u)
    (tmp_path / "long.txt").write_text("the cat\n\n" + "the " * 17 + "\na dog\n")
    (tmp_path / "short.txt").write_text("the cat\n")
    (tmp_path / "run.pt").write_bytes(b"")

    def said(model, text, *more):
        names = ["--model", str(tmp_path / model), "--text", str(tmp_path / text)]
        assert main(["evaluate", *names, "--threads", "1", *more]) == 2
        return capsys.readouterr().err

    assert "sentence 2 has 17 tokens, and this model reads 16" in said("joint", "long.txt")
    assert "run.pt is none" in said("run.pt", "short.txt", "--write")
    assert "--write needs --tune" in said("bilm", "short.txt", "--write")


def test_nothing_is_called_tuned_that_was_not(tmp_path, capsys):
    model, vocabulary, corpus = make("bilm")
    save_model(tmp_path / "m", model, vocabulary, {}, evaluate.unigram(corpus, vocabulary))
    (tmp_path / "text.txt").write_text("the cat\na dog\n")
    names = ["--model", str(tmp_path / "m"), "--text", str(tmp_path / "text.txt")]
    assert main(["evaluate", *names, "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["gap_logprob"]) == {"forward", "backward", "product"}
    assert "gap_exponents" not in found
