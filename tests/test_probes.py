"""Probes on made-up layers whose answer is known; the command on a handful of made-up files."""

import json
import lzma
import shutil

import numpy as np
import pytest
import torch

from elmo.__main__ import main
from elmo.banks.bank import build_bank
from elmo.banks.tagged import Tag
from elmo.encoders import untrained_encoder
from elmo.probing.geometry import read_geometry
from elmo.probing.labeled import bank_features, labeled_features, parse_labeled
from elmo.probing.linear_probe import Scaling, center_of_gravity, fit_probe
from elmo.probing.mix_training import train_mix
from elmo.probing.probe import Plan, Settings
from elmo.probing.probe_cells import (
    Cell,
    Grader,
    Split,
    choose_alphas,
    draw,
    run_baselines,
    run_cell,
)
from elmo.probing.probe_features import encode_spans
from elmo.probing.probe_report import build_table, read_table
from elmo.probing.probe_scores import entity_counts, entity_spans, interval, ratio, resample
from elmo.probing.probe_tasks import LabeledText, plain_token, read_dataset
from elmo.probing.probes import (
    layer_accuracies,
    probe_steps,
    split_groups,
    train_probe,
    word_groups,
)
from elmo.probing.sense_neighbors import Usages, learn_mix, pair_usages, run_sense_cell

torch.set_num_threads(1)
WIDTH = 12


def made_up(n=600, n_labels=4, informative=1, seed=0):
    """Layers (n, 3, WIDTH) of noise; labels are linear in one layer alone."""
    rng = np.random.default_rng(seed)
    layers = rng.normal(size=(n, 3, WIDTH)).astype(np.float32)
    directions = rng.normal(size=(WIDTH, n_labels))
    labels = [f"label {i}" for i in (layers[:, informative] @ directions).argmax(axis=1)]
    return layers, labels


def features_of(layers):
    """As the solver wants them: scaled (L, F, n)."""
    x = torch.from_numpy(layers.transpose(1, 2, 0).copy())
    scaling = Scaling.fit(x)
    return scaling.apply(x), scaling


def indices(labels):
    return torch.tensor([int(label.split()[1]) for label in labels])


# ------------------------------------------------------------------------- the solver


def learned_weights(layers, labels, equalize=True, **options):
    x, scaling = features_of(layers)
    rows = (x * scaling.factors(equalize)[:, None, None]).permute(2, 0, 1).contiguous()
    return train_mix(rows, indices(labels), 4, **options).mix.weights.detach()


@pytest.mark.parametrize("informative", [0, 1, 2])
def test_learned_mix_listens_to_the_layer_that_knows(informative):
    layers, labels = made_up(informative=informative)
    weights = learned_weights(layers, labels, strength=0.0, steps=200)
    assert int(weights.argmax()) == informative
    assert float(weights[informative]) > 0.8
    assert float(weights.sum()) == pytest.approx(1)
    assert center_of_gravity(weights) == pytest.approx(informative, abs=0.4)


def test_a_strong_penalty_on_raw_weights_keeps_the_plain_average():
    layers, labels = made_up()
    weights = learned_weights(layers, labels, strength=100.0, steps=200)
    np.testing.assert_allclose(weights, [1 / 3] * 3, atol=0.01)


def test_learned_weights_follow_norms_unless_layers_are_scaled_to_equal_size():
    layers, labels = made_up()
    layers[:, 2] = layers[:, 1]  # two layers know the same,
    layers[:, 1] *= 0.1  # but one of them whispers
    equal = learned_weights(layers, labels, steps=200)
    raw = learned_weights(layers, labels, equalize=False, steps=200)
    assert float(equal[1]) == pytest.approx(float(equal[2]), abs=0.1)
    assert float(raw[2]) > 2 * float(raw[1])


def test_the_mix_learns_the_same_again():
    layers, labels = made_up()
    one, two, other = (learned_weights(layers, labels, steps=40, seed=s) for s in (1, 1, 2))
    assert one.tolist() == two.tolist() != other.tolist()


def test_probe_agrees_with_scikit_learn_on_the_same_features():
    linear_model = pytest.importorskip("sklearn.linear_model")
    layers, labels = made_up(n=900, n_labels=6)
    x, _ = features_of(layers)
    x, y = (
        x + 0.5 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0)),
        indices(labels),
    )
    train, test = x[:, :, :600], x[:, :, 600:]
    alpha = 1e-2
    ours = fit_probe(
        train, y[:600], 6, torch.tensor([0.0, 1.0, 0.0]), alpha, tolerance=1e-7, max_steps=300
    )
    model = linear_model.LogisticRegression(C=1 / (alpha * 600), tol=1e-8, max_iter=5000)
    model.fit(train[1].t().numpy(), y[:600].numpy())
    np.testing.assert_allclose(ours.matrix, model.coef_, atol=5e-3)
    accuracy = float((ours.logits(test).argmax(1) == y[600:]).float().mean())
    assert accuracy == pytest.approx(model.score(test[1].t().numpy(), y[600:].numpy()), abs=0.005)


def test_a_path_of_penalties_ends_where_a_cold_start_does():
    layers, labels = made_up()
    x, _ = features_of(layers)
    y, c = indices(labels), torch.tensor([0.0, 1.0, 0.0])
    first = fit_probe(x, y, 4, c, 1e-1)
    options = {"tolerance": 1e-7, "max_steps": 200}
    warm = fit_probe(x, y, 4, c, 1e-2, start=first, **options)
    cold = fit_probe(x, y, 4, c, 1e-2, **options)
    assert warm.loss == pytest.approx(cold.loss, abs=1e-5)
    np.testing.assert_allclose(warm.matrix, cold.matrix, atol=2e-2)


def test_without_anything_to_learn_the_bias_is_the_frequency_of_labels():
    x = torch.zeros(1, 3, 8)
    probe = fit_probe(x, torch.tensor([0, 0, 0, 0, 0, 0, 1, 1]), 2, torch.ones(1), 1e-2)
    probabilities = torch.softmax(probe.logits(x), 1)
    np.testing.assert_allclose(probabilities, [[0.75, 0.25]] * 8, atol=0.01)


def test_pairs_that_only_their_product_tells_apart():
    rng = np.random.default_rng(0)
    a, b = rng.choice([-1.0, 1.0], size=(2, 400))
    x = torch.tensor(np.stack([a, b])[None], dtype=torch.float32)
    y = torch.tensor((a * b > 0).astype(int))
    plain = fit_probe(x, y, 2, torch.ones(1), 1e-3)
    product = fit_probe(x, y, 2, torch.ones(1), 1e-3, product=True)
    assert float((product.logits(x).argmax(1) == y).float().mean()) == 1.0
    assert float((plain.logits(x).argmax(1) == y).float().mean()) < 0.7


def test_center_of_gravity_by_hand():
    assert center_of_gravity([1, 0, 0]) == 0
    assert center_of_gravity([0.25, 0.5, 0.25]) == 1
    assert center_of_gravity([0.2, 0.2, 0.6]) == pytest.approx(1.4)


# ------------------------------------------------------------------------- scores


def test_entities_of_bio_labels():
    assert entity_spans(["B-PER", "I-PER", "O", "B-LOC", "B-LOC"]) == {
        (0, 2, "PER"),
        (3, 4, "LOC"),
        (4, 5, "LOC"),
    }
    assert entity_spans(["I-PER", "I-ORG", "O"]) == {(0, 1, "PER"), (1, 2, "ORG")}
    assert entity_spans(["O", "O"]) == set()


def test_f1_counts_exact_spans_a_sentence():
    gold = ["B-PER", "I-PER", "O", "B-LOC"]
    predicted = ["B-PER", "O", "O", "B-LOC"]
    counts = entity_counts(gold, predicted, np.array([0, 0, 0, 1]), 2)
    assert counts.tolist() == [[0, 2], [2, 2]]
    assert ratio(counts) == 50.0


def test_paired_interval_of_a_difference_is_narrower_than_its_parts():
    rng = np.random.default_rng(0)
    hard = rng.random(400)  # sentences differ much in difficulty, the two probes little
    one = (hard > 0.5).astype(float)
    two = np.where(rng.random(400) < 0.05, 1.0, one)
    draws = resample(400, 1)
    scores = [draws.scores(np.stack([x, np.ones(400)], 1)[None]) for x in (one, two)]
    gap, part = interval(scores[1] - scores[0]), interval(scores[0])
    assert gap.mean == pytest.approx(100 * (two - one).mean())
    assert gap.low > 0
    assert gap.high - gap.low < 0.5 * (part.high - part.low)


def test_interval_of_a_constant_is_a_point():
    draws = resample(50, 3)
    found = interval(draws.scores(np.ones((3, 50, 2))))
    assert (found.mean, found.low, found.high) == (100.0, 100.0, 100.0)


# ------------------------------------------------------------------------- tasks and cells


def toy_text(n_sentences=60):
    """Sentences of four made-up words; tag X for words in x, Y for others; heads to the left."""
    rng = np.random.default_rng(0)
    text = LabeledText()
    for _ in range(n_sentences):
        words = [f"{rng.choice(['x', 'y'])}{rng.integers(9)}" for _ in range(4)]
        sentence = text.add_sentence(words)
        for i, word in enumerate(words):
            text.add("upos", (text.add_span(sentence, (i,)),), word[0].upper())
            if i:
                spans = (text.add_span(sentence, (i,)), text.add_span(sentence, (i - 1,)))
                text.add("deprel", spans, word[0] + words[i - 1][0])
    return text


def toy_rows(text, knows=1):
    """One layer knows the first letter, the others only noise."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(len(text.spans), 3, 8))
    letters = np.array([text.word(i)[0] == "x" for i in range(len(text.spans))])
    rows[:, knows, 0] = np.where(letters, 3.0, -3.0)
    return rows.astype(np.float16)


@pytest.mark.parametrize("task", ["upos", "deprel"])
def test_a_cell_finds_the_layer_that_knows_and_repeats_exactly(task):
    text = toy_text()
    split = Split(text, toy_rows(text))
    alphas = choose_alphas(task, split, split, 150)
    options = {"seed": 1, "n_train": 150, "mix_steps": 150}
    cell = run_cell(task, split, split, alphas, **options)
    scores = {name: ratio(counts) for name, counts in cell.counts.items()}
    assert scores["layer_1/score"] > 99
    assert scores["layer_0/score"] < 80
    assert scores["mix_0.001/score"] > 97
    weights = cell.facts["mix_equal_0"]["scalar_weights"]
    assert int(np.argmax(weights)) == 1
    assert weights[1] > 0.5
    assert sum(weights) == pytest.approx(1)
    again = run_cell(task, split, split, alphas, **options)
    assert all((again.counts[name] == counts).all() for name, counts in cell.counts.items())
    assert again.facts == cell.facts


def test_the_control_task_can_only_be_memorized():
    text = toy_text(200)
    split = Split(text, toy_rows(text))
    cell = run_cell("upos", split, split, dict.fromkeys(NAMES, 0.01), 0, 500, mix_steps=5)
    assert ratio(cell.counts["layer_1/score"]) > 99
    assert ratio(cell.counts["layer_1/control"]) < 75  # 18 words at random, one useful feature


NAMES = ("layer_0", "layer_1", "layer_2", "mean", "mean_equal")


def test_seeds_draw_other_sentences_and_whole_ones():
    examples = toy_text().examples["upos"]
    one, two = draw(examples, 100, seed=0), draw(examples, 100, seed=1)
    assert one == draw(examples, 100, seed=0) != two
    for drawn in (one, two):
        sentences = [e.sentence for e in drawn]
        assert all(sentences.count(s) == 4 for s in set(sentences))
    assert len(draw(examples, 10_000, seed=0)) <= 0.9 * len(examples) + 4


def test_new_words_are_scored_apart():
    text = toy_text()
    examples = [e for e in text.examples["upos"] if e.word != "x3"]
    grader = Grader("upos", text, examples, vocabulary=frozenset(["x1"]))
    gold = np.array([e.label for e in text.examples["upos"]])
    counts = grader.grade(gold)
    n = sum(e.word == "x3" for e in text.examples["upos"])
    assert counts["unseen"].sum(axis=0).tolist() == [n, n]
    assert counts["outside_vocabulary"][:, 1].sum() == sum(
        e.word != "x1" for e in text.examples["upos"]
    )


def test_baselines_without_vectors():
    text = toy_text()
    cell = run_baselines("upos", text, text, seed=0, n_train=10_000)
    assert ratio(cell.counts["word_majority/score"]) > 95
    assert 40 < ratio(cell.counts["majority/score"]) < 65


def test_spans_are_averages_and_encodings_fit_float16():
    text = LabeledText()
    sentence = text.add_sentence(["New", "York", "sleeps"])
    for positions in ((0,), (1,), (0, 1), (0, 2)):
        text.add_span(sentence, positions)
    rows = encode_spans(untrained_encoder("bilm"), text).astype(np.float32)
    assert rows.shape == (4, 3, 512)
    np.testing.assert_allclose(rows[2], (rows[0] + rows[1]) / 2, atol=2e-3)


def test_tokens_are_spelled_as_the_encoders_know_them():
    assert plain_token("``") == plain_token("''") == plain_token("\u201c") == '"'
    assert plain_token("\u2019s") == "'s"
    assert plain_token("\u2014") == "--"
    assert plain_token("") == ""


def test_long_sentences_are_left_out_and_counted():
    text = LabeledText()
    assert text.add_sentence(["a"] * 65) is None
    assert text.add_sentence([]) is None
    assert text.add_sentence(["a"] * 64) == 0
    assert text.n_left_out == 2


# ------------------------------------------------------------------------- word senses


def usages(layer_knows=1, n=40, clear=3.0):
    rng = np.random.default_rng(0)
    senses = tuple(np.where(rng.random(n) < 0.5, "bank%river", "bank%money"))
    vectors = rng.normal(size=(n, 3, 6)).astype(np.float32)
    vectors[:, layer_knows] += np.where(np.array(senses) == "bank%river", clear, -clear)[:, None]
    vectors[:, 0] = vectors[0, 0]  # context-free: the same vector everywhere
    return Usages(vectors, ("bank",) * n, senses)


def test_nearest_sense_needs_the_layer_that_knows():
    train = usages()
    test = usages()
    pairs = pair_usages(test, train)
    assert pairs.correct(np.array([0.0, 1.0, 0.0])).mean() == 1.0
    # identical vectors tie between both senses: half right, not all or nothing
    assert pairs.correct(np.array([1.0, 0.0, 0.0])).tolist() == [0.5] * 40


def test_learned_mix_for_senses():
    train = usages(layer_knows=2, n=200, clear=0.5)
    w, gamma, _ = learn_mix(pair_usages(train, train, leave_out=True), np.ones(3), 0.0)
    assert np.argmax(w) == 2
    assert gamma > 0
    tied, _, _ = learn_mix(pair_usages(train, train, leave_out=True), np.ones(3), 100.0)
    assert np.ptp(tied) < 0.05


def test_leaving_a_usage_out_of_its_own_average():
    vectors = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]], dtype=np.float32)
    train = Usages(vectors, ("go",) * 3, ("a", "a", "b"))
    pairs = pair_usages(train, train, leave_out=True)
    assert set(pairs.usage.tolist()) == {0, 1}  # sense b has one usage only
    own = pairs.cosines(np.ones(1))[(pairs.usage == 0) & pairs.is_gold]
    assert own == pytest.approx([0.0])  # the average without it is the second usage


def test_mix_of_senses_without_pairs_says_so():
    train = Usages(np.ones((2, 1, 2), np.float32), ("a", "b"), ("a1", "b1"))
    with pytest.raises(ValueError, match="two training usages"):
        learn_mix(pair_usages(train, train, leave_out=True), np.ones(1), 0.0)


def test_sense_cell_has_the_same_representations():
    text = LabeledText()
    rng = np.random.default_rng(0)
    for i in range(60):
        sentence = text.add_sentence(["bank"])
        text.add("word_sense", (text.add_span(sentence, (0,)),), f"s{i % 2}", "bank")
    rows = rng.normal(size=(60, 3, 6)).astype(np.float16)
    rows[::2, 2] += 3
    rows[1::2, 2] -= 3
    split = Split(text, rows)
    cell = run_sense_cell("word_sense", split, split, seed=0, n_train=1000)
    assert ratio(cell.counts["layer_2/score"]) > 95
    assert ratio(cell.counts["layer_2/control"]) < 80
    assert {"layer_0", "mean", "mean_equal", "mix_0", "mix_equal_0.001"} <= set(cell.facts)


# ------------------------------------------------------------------------- live


def test_live_probe_moves_its_weights_to_the_layer_that_knows():
    layers, labels = made_up(n=900, informative=2)
    seen = []
    run = train_probe(layers, labels, range(900), seed=3, steps=300, on_step=seen.append)
    first, last = run.steps[0], run.steps[-1]
    assert seen == list(run.steps)
    assert first.scalar_weights == pytest.approx((1 / 3,) * 3)
    assert first.gamma == 1.0
    assert last.step == 300
    assert int(np.argmax(last.scalar_weights)) == 2
    assert last.scalar_weights[2] > 0.6
    assert last.held_out_accuracy > run.majority_accuracy + 0.2
    assert last.loss < first.loss
    assert run.n_train + run.n_held_out == 900
    again = train_probe(layers, labels, range(900), seed=3, steps=300)
    assert again.steps == run.steps


def test_layers_are_compared_on_the_same_split():
    layers, labels = made_up(n=900, informative=2)
    found = layer_accuracies(layers, labels, range(900), seed=3)
    assert list(found) == ["layer_0", "layer_1", "layer_2", "mean_equal"]
    assert found["layer_2"] > 0.85
    assert found["layer_2"] > found["mean_equal"] > found["layer_0"]


def test_live_probe_can_be_cancelled():
    layers, labels = made_up()
    run = train_probe(layers, labels, range(600), steps=300, on_step=lambda s: s.step >= 30)
    assert run.cancelled
    assert run.steps[-1].step < 60
    steps = probe_steps(layers, labels, range(600))
    next(steps)
    steps.close()


def test_no_word_form_and_no_sentence_is_on_both_sides():
    tokens = ["The", "the", "cat", "Cat", "sat", "on", "a", "mat", "THE", "dog"] * 5
    train, held_out = split_groups(word_groups(tokens), seed=0)
    assert not {tokens[i].lower() for i in train} & {tokens[i].lower() for i in held_out}
    assert len(train) + len(held_out) == 50
    assert len(held_out) >= 10
    sentences = np.repeat(np.arange(10), 5)
    train, held_out = split_groups(sentences, seed=1)
    assert not set(sentences[train]) & set(sentences[held_out])


def test_live_probe_says_what_it_cannot_learn_from():
    layers, labels = made_up(n=40)
    with pytest.raises(ValueError, match="2 to 100 labels"):
        train_probe(layers, ["same"] * 40, range(40))
    with pytest.raises(ValueError, match="at least two groups"):
        train_probe(layers, labels, ["one"] * 40)
    with pytest.raises(ValueError, match="10 to 5,000 tokens"):
        train_probe(layers[:4], labels[:4], range(4))
    with pytest.raises(ValueError, match="39 labels"):
        train_probe(layers, labels[:-1], range(40))
    with pytest.raises(ValueError, match="not finite"):
        train_probe(layers * np.nan, labels, range(40))
    with pytest.raises(ValueError, match="steps must be"):
        train_probe(layers, labels, range(40), steps=0)


# ------------------------------------------------------------------------- visitors' data

CONLLU = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\t_\t_\t_\t_\t_\t_\t_\t_

1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
"""


def test_token_tab_label_lines():
    read = parse_labeled("# a comment\nThe\tDET\ncat\tNOUN\n\n\nsat\tVERB\nquietly\n")
    assert read.sentences == (("The", "cat"), ("sat", "quietly"))
    assert read.labels == (("DET", "NOUN"), ("VERB", ""))
    assert read.n_labeled == 3


def test_conllu_lines():
    read = parse_labeled(CONLLU)
    assert read.sentences == (("do", "n't"), ("Go",))
    assert read.labels == (("AUX", "PART"), ("VERB",))
    assert parse_labeled(CONLLU, "deprel").labels == (("root", "advmod"), ("root",))
    windows = parse_labeled("\ufeff" + CONLLU.replace("\n", "\r\n"))
    assert windows.sentences == read.sentences


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no labeled token found"),
        ("the cat sat on the mat\n", "no tab in 'the cat sat"),
        ("the\tDET\nthe cat\tNOUN\n", "line 2: the token must be one word"),
        ("the\tDET\na\tb\tc\n", "line 2 has 3 columns"),
        ("\tDET\n", "line 1: the token must be one word"),
        ("1\tdo\tdo\tAUX\t_\t_\t_\t_\t_\t_\nbad line\n", "line 2 has 1 columns"),
        ("x\tdo\tdo\tAUX\t_\t_\t_\t_\t_\t_\n", "line 1: the first column must be a number"),
        ("a\tX\n" * 70, "no labeled token found.*1 sentences are longer than 64"),
        ("a\tX\n\n" * 5_100, "at most 5,000 tokens"),
        ("a" * 1_000_001, "at most 1,000,000 characters"),
    ],
)
def test_errors_of_labeled_text_say_where(text, message):
    with pytest.raises(ValueError, match=message):
        parse_labeled(text)


def test_labeled_text_to_features():
    read = parse_labeled("The\tDET\ncat\tNOUN\n\nsat\tVERB\nquietly\n")
    features, labels, words, sentences = labeled_features(untrained_encoder("bilm"), read)
    assert features.shape == (3, 3, 512)
    assert labels == ["DET", "NOUN", "VERB"]
    assert words == ["The", "cat", "sat"]
    assert sentences == [0, 0, 1]


def test_what_a_bank_knows_of_its_tokens():
    sentences = [("a", "dog", "runs"), ("red", "dogs")]
    encodings = untrained_encoder("bilm").encode(sentences)
    tags = [
        [
            Tag(1, pos="NOUN", supersense="noun.animal"),
            Tag(2, pos="VERB", supersense="verb.motion"),
        ],
        [Tag(0, pos="ADJ", supersense="adj.all")],
    ]
    bank = build_bank(sentences, encodings, tags=tags)
    features, labels, words, sentence = bank_features(bank, "pos")
    assert (labels, words) == (["NOUN", "VERB", "ADJ"], ["dog", "runs", "red"])
    assert sentence == [0, 0, 1]
    np.testing.assert_allclose(features[2], encodings[1].hidden[:, 0], atol=1e-2)
    assert bank_features(bank, "supersense")[1] == ["noun.animal", "verb.motion"]
    assert len(bank_features(bank, "pos", n_tokens=2)[1]) == 2
    with pytest.raises(ValueError, match="what must be one of pos, supersense"):
        bank_features(bank, "lemma")
    with pytest.raises(ValueError, match="no token of this bank has a known pos"):
        bank_features(build_bank(sentences, encodings), "pos")


# ------------------------------------------------------------------------- the command


def write_tasks(folder):
    """Treebank files of made-up sentences, in the format of the probe data."""
    rng = np.random.default_rng(0)
    for split, n in (("train", 40), ("dev", 8), ("test", 10)):
        lines = []
        for i in range(n):
            tags = [str(rng.choice(["NOUN", "VERB"])) for _ in range(5)]
            tokens = [("n" if t == "NOUN" else "v") + "abcd"[rng.integers(4)] for t in tags]
            lines.append(
                {
                    "id": f"{split}-{i}",
                    "tokens": tokens,
                    "upos": tags,
                    "xpos": tags,
                    "head": [0, 1, 1, 1, 1],
                    "deprel": ["root", *["dep", "obj"] * 2],
                }
            )
        path = folder / "pos_dep_ewt" / f"{split}.jsonl.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(path, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    write_tasks(folder / "tasks")
    arguments = ["probe", "--tasks", str(folder / "tasks"), "--models", "--only", "upos"]
    arguments += ["--seeds", "2", "--n-train", "100", "--mix-steps", "20", "--workers", "1"]
    arguments += ["--cache", str(folder / "cache"), "--out", str(folder / "out")]
    assert main(arguments) == 0
    return folder, arguments


def test_command_writes_a_table_that_reads_back(probed):
    folder, _ = probed
    table = read_table(folder / "out" / "table.json")
    layer = table.score("upos", "untrained", "layer_0")
    assert layer.low <= layer.mean <= layer.high
    assert layer.mean > 95  # the first letter tells, and characters are read
    assert layer.n_seeds == 2
    assert layer.n_test == 50
    assert table.score("upos", "none", "majority").mean < 75
    assert table.score("upos", "untrained", "layer_1", "selectivity") is not None
    assert table.score("upos", "untrained", "layer_7") is None
    mix = table.mix("upos", "untrained", "mix_equal_0.001")
    assert sum(mix.scalar_weights) == pytest.approx(1, abs=1e-3)
    assert sum(mix.on_raw_layers) == pytest.approx(1, abs=1e-3)
    assert "python -m elmo probe" in table.about["command"]


def test_command_measures_how_contextual_layers_are(probed):
    folder, _ = probed
    geometries, differences = read_geometry(folder / "out" / "geometry.json")
    geometry = geometries["untrained"]
    assert geometry.self_similarity[0, 0] == 1.0  # also after half precision
    assert geometry.self_similarity[0, 1] < 1.0
    assert set(geometry.words) <= {letter + other for letter in "nv" for other in "abcd"}
    assert np.isnan(geometry.explained[0, 0])
    raw = {d.key: d for d in differences}["self_similarity_raw.untrained.0-1"]
    assert raw.mean == pytest.approx(1 - geometry.self_similarity[0, 1], abs=1e-4)
    assert 0 < raw.low < raw.high


def test_command_resumes_and_repeats(probed):
    folder, arguments = probed
    path = folder / "out" / "table.json"
    first = read_table(path)
    cells = sorted((folder / "cache" / "cells").rglob("*.npz"))
    lost, kept = cells[0], cells[1]
    before = kept.stat().st_mtime_ns
    lost.unlink()
    assert main(arguments) == 0
    assert kept.stat().st_mtime_ns == before
    second = read_table(path)
    assert second.scores == first.scores
    assert second.mixes == first.mixes


def test_other_data_and_another_vocabulary_are_other_cells(probed, tmp_path):
    folder, _ = probed
    words = tmp_path / "vocabulary.txt"
    words.write_text("a\nb")

    def names(tasks, vocabulary):
        plan = Plan(tasks, tmp_path, Settings(), (0,), vocabulary)
        return plan.folder("upos", "e"), plan.table_name("pos_dep_ewt", "test")

    first = names(folder / "tasks", None)
    assert names(folder / "tasks", words)[0] != first[0]
    write_tasks(tmp_path / "same")
    assert names(tmp_path / "same", None) == first
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "same", other)
    file = other / "pos_dep_ewt/test.jsonl.xz"
    text = lzma.decompress(file.read_bytes()).replace(b"NOUN", b"PROPN", 1)
    file.write_bytes(lzma.compress(text))
    assert all(a != b for a, b in zip(names(other, None), first, strict=True))


def test_entities_are_counted_as_tokens_whatever_was_guessed():
    def cell(n_guessed):
        f1 = np.array([[2.0, 4.0 + n_guessed]])
        return Cell(100, 9, 3, {"layer_0/score": f1, "layer_0/accuracy": np.array([[8.0, 9.0]])})

    cells = {("ner_wikigold", name): [cell(n)] for name, n in (("a", 3), ("b", 5))}
    table = build_table(cells, [], {})
    assert {score.n_test for score in table.scores} == {9}


def test_command_names_a_missing_file(tmp_path, capsys):
    arguments = ["probe", "--tasks", str(tmp_path), "--models", "--only", "upos", "--workers", "1"]
    assert main([*arguments, "--cache", str(tmp_path)]) == 2
    assert "train.jsonl.xz is missing" in capsys.readouterr().err


def test_data_sets_have_names(tmp_path):
    with pytest.raises(ValueError, match="data set must be one of pos_dep_ewt"):
        read_dataset(tmp_path, "ptb", "train")
    with pytest.raises(FileNotFoundError, match="point --tasks at"):
        read_dataset(tmp_path, "pos_dep_ewt", "train")
