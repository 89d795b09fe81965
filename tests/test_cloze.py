import dataclasses
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import KINDS, small_encoder, small_model

from elmo.__main__ import main
from elmo.both_ways.cloze import (
    Exponents,
    fill_gap,
    gap_log_probabilities,
    log_unigram,
    predictor_log_probabilities,
    product,
    tune_exponents,
)
from elmo.both_ways.cloze_items import (
    Item,
    own_sentences,
    random_items,
    read_minimal_pairs,
    read_own_gaps,
)
from elmo.both_ways.cloze_table import (
    Scores,
    balanced_strata,
    known_items,
    make_row,
    read_table,
    score,
    table_rows,
)
from elmo.both_ways.gap_check import CheckedGap, check_gaps, clearest, find_gaps, judge
from elmo.checkpoint import load_model, save_model
from elmo.encoders import load_encoder
from elmo.results import GapGuess
from elmo.text import BOS, EOS, MASK, UNK

WORDS = ["the", "cat", "saw", "a", "dog", "is", "are", "dogs", "cats", "here", "."]
VOCABULARY = [BOS, EOS, UNK, *WORDS]
SENTENCE = ["the", "cat", "saw", "a", "dog"]
COUNTS = np.arange(20, 20 - len(VOCABULARY), -1.0)
UNIGRAM = np.log(COUNTS / COUNTS.sum())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One small model a kind on disk, in the order of ``KINDS``."""
    root = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        model = small_model(kind, len(VOCABULARY))
        with torch.no_grad():
            model.head.weight.mul_(6)  # opinions
        save_model(root / kind, model, VOCABULARY, {"name": kind}, UNIGRAM)
    return [root / kind for kind in KINDS]


@pytest.fixture(scope="module")
def encoders(folders):
    return [load_encoder(folder) for folder in folders]


@pytest.fixture(params=range(len(KINDS)), ids=KINDS)
def encoder(request, encoders):
    return encoders[request.param]


def softmax_over_words(logits):
    """Float64, boundaries left out."""
    logits = np.asarray(logits, dtype=np.float64)[2:]
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def test_distributions_are_those_of_the_top_layer_beside_the_gap(encoder):
    position = 2
    logs = gap_log_probabilities(encoder, [SENTENCE], [position])
    gapped = [*SENTENCE[:position], MASK, *SENTENCE[position + 1 :]]
    top = encoder.encode([gapped], layers="top")[0].hidden
    head, read = encoder.model.head, encoder.model.read
    if encoder.halves:
        forward, backward = np.split(top, 2, axis=-1)
        states = {"forward": forward[position - 1], "backward": backward[position + 1]}
    else:
        states = {"joint": top[position]}
    assert logs.keys() == states.keys()
    for name, state in states.items():
        logits = head(read(torch.from_numpy(state), name)).numpy()
        np.testing.assert_allclose(logs[name][0, 2:].exp(), softmax_over_words(logits), atol=1e-5)
        assert torch.isneginf(logs[name][0, :2]).all()


def test_no_predictor_reads_the_hidden_word_or_beyond_its_side(encoder):
    def logs(**changes):
        sentence = [changes.get(f"w{i}", token) for i, token in enumerate(SENTENCE)]
        return gap_log_probabilities(encoder, [sentence], [2])

    plain, hidden = logs(), logs(w2="is")
    for name in plain:
        assert torch.equal(plain[name], hidden[name])
    left, right = logs(w0="dogs"), logs(w4="dogs")
    if encoder.halves:
        assert torch.equal(plain["backward"], left["backward"])
        assert not torch.equal(plain["forward"], left["forward"])
        assert torch.equal(plain["forward"], right["forward"])
        assert not torch.equal(plain["backward"], right["backward"])
    else:
        assert not torch.equal(plain["joint"], left["joint"])
        assert not torch.equal(plain["joint"], right["joint"])


def test_gaps_at_the_edges_have_the_boundary_for_context(encoder):
    logs = gap_log_probabilities(encoder, [SENTENCE, SENTENCE], [0, len(SENTENCE) - 1])
    for rows in logs.values():
        np.testing.assert_allclose(rows.exp().sum(dim=1), 1, atol=1e-5)


def test_a_batch_of_gaps_equals_single_gaps(encoder):
    sentences = [SENTENCE, ["the", "dogs", "are", "here", ".", "dogs"], SENTENCE]
    positions = [1, 2, 4]
    together = predictor_log_probabilities(encoder, sentences, positions)
    for i, (sentence, position) in enumerate(zip(sentences, positions, strict=True)):
        for name, row in predictor_log_probabilities(encoder, [sentence], [position]).items():
            torch.testing.assert_close(together[name][i], row[0], atol=1e-4, rtol=1e-4)


def test_the_product_by_hand():
    rng = np.random.default_rng(0)
    f, b, u = (np.log(rng.dirichlet(np.ones(5))) for _ in range(3))
    exponents = Exponents(0.7, 0.9, 0.4)
    expected = np.exp(f) ** 0.7 * np.exp(b) ** 0.9 / np.exp(u) ** 0.4
    found = product(*map(torch.from_numpy, (f, b, u)), exponents).exp()
    np.testing.assert_allclose(found, expected / expected.sum())


def test_the_product_of_independent_sides_is_bayes_rule():
    """With exponents 1, 1, 1: sides that are independent given the word are joined exactly."""
    rng = np.random.default_rng(1)
    word = rng.dirichlet(np.ones(4))
    left, right = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(2), 4)  # given the word
    joint = word[:, None, None] * left[:, :, None] * right[:, None, :]
    for i in range(3):
        for j in range(2):
            f = torch.tensor(word * left[:, i] / (word * left[:, i]).sum()).log()
            b = torch.tensor(word * right[:, j] / (word * right[:, j]).sum()).log()
            found = product(f, b, torch.tensor(word).log(), Exponents(1, 1, 1)).exp()
            np.testing.assert_allclose(found, joint[:, i, j] / joint[:, i, j].sum())


def test_exponents_of_zero_leave_one_side_and_boundaries_stay_out():
    f = torch.tensor([-torch.inf, -0.5, -1.0])
    b = torch.tensor([-torch.inf, -3.0, -0.1])
    found = product(f, b, torch.tensor([-1.0, -1.0, -1.0]), Exponents(1, 0, 0))
    torch.testing.assert_close(found, torch.log_softmax(f, dim=0))
    assert product(f, b, f, Exponents(0, 0, 0)).tolist()[0] == -np.inf


def test_tuned_exponents_are_where_the_likelihood_is_highest():
    rng = np.random.default_rng(2)
    n, v = 400, 12
    unigram = torch.from_numpy(np.log(rng.dirichlet(np.ones(v))))
    forward, backward = (
        torch.log_softmax(torch.from_numpy(rng.normal(size=(n, v)) * 2), dim=1) for _ in range(2)
    )
    truth = Exponents(1.1, 0.6, 0.3)
    p = product(forward, backward, unigram, truth).exp().numpy()
    words = torch.tensor([rng.choice(v, p=row) for row in p])
    halves = list(zip(*(x.split(250) for x in (forward, backward, words)), strict=True))
    found = tune_exponents(halves, unigram)

    def likelihood(a, b, c):
        logs = product(forward, backward, unigram, Exponents(a, b, c))
        return float(logs.gather(1, words[:, None]).mean())

    best = likelihood(*dataclasses.astuple(found))
    for step in np.vstack([np.eye(3), -np.eye(3)]) * 0.02:
        assert likelihood(*(np.array(dataclasses.astuple(found)) + step)) < best
    assert np.allclose(dataclasses.astuple(found), dataclasses.astuple(truth), atol=0.35)


def test_guesses_are_sorted_and_know_the_hidden_word(encoders):
    guesses = fill_gap(encoders, SENTENCE, 1, k=4)
    assert [(g.encoder, g.predictor) for g in guesses] == [
        *(("bilm", name) for name in ("forward", "backward", "product")),
        ("attention", "joint"),
        *(("attention_concat", name) for name in ("forward", "backward", "product")),
    ]
    for guess in guesses:
        assert len(guess.words) == len(guess.probabilities) == 4
        assert (np.diff(guess.probabilities) <= 0).all()
        assert not {BOS, EOS, UNK} & set(guess.words)
        assert guess.hidden_word == "cat"
        assert 0 <= guess.entropy <= np.log2(len(VOCABULARY))
        if "cat" in guess.words:
            place = guess.words.index("cat")
            assert guess.rank == place + 1
            assert guess.probability == guess.probabilities[place]
        else:
            assert guess.rank > 4


def test_a_guess_against_the_whole_distribution(encoder):
    for guess in fill_gap([encoder], SENTENCE, 1, k=len(WORDS)):
        row = predictor_log_probabilities(encoder, [SENTENCE], [1])[guess.predictor][0]
        p = row.exp().double().numpy()
        assert p.sum() == pytest.approx(1, abs=1e-5)
        assert guess.unknown == pytest.approx(p[2])
        positive = p[p > 0]
        assert guess.entropy == pytest.approx(-(positive * np.log2(positive)).sum(), rel=1e-4)
        order = sorted(WORDS, key=lambda word: -p[VOCABULARY.index(word)])
        assert list(guess.words) == order
        assert guess.rank == order.index("cat") + 1


def test_nothing_hidden_and_words_outside_the_vocabulary_have_no_rank(encoders):
    for guess in fill_gap(encoders, ["the", MASK, "saw"], 1):
        assert (guess.hidden_word, guess.rank, guess.probability) == (None, None, None)
    for guess in fill_gap(encoders, ["the", "zebra", "saw"], 1):
        assert (guess.hidden_word, guess.rank, guess.probability) == ("zebra", None, None)


def test_exponents_are_chosen_by_encoder(encoders):
    one_sided = {"bilm": Exponents(1, 0, 0)}
    guesses = {(g.encoder, g.predictor): g for g in fill_gap(encoders, SENTENCE, 1, one_sided)}
    forward = guesses["bilm", "forward"].probabilities
    np.testing.assert_allclose(guesses["bilm", "product"].probabilities, forward, rtol=1e-5)
    default = guesses["attention_concat", "product"].probabilities
    other = guesses["attention_concat", "forward"].probabilities
    assert not np.allclose(default, other)


def test_what_cannot_guess_is_refused(encoders, tmp_path):
    with pytest.raises(ValueError, match="no softmax over words"):
        fill_gap([small_encoder("bilm")], SENTENCE, 1)
    with pytest.raises(ValueError, match="word 0 to 4 of the sentence, got 5"):
        fill_gap(encoders, SENTENCE, 5)
    with pytest.raises(ValueError, match="word 0 to 4 of the sentence, got -1"):
        fill_gap(encoders, SENTENCE, -1)
    with pytest.raises(ValueError, match="backward exponent must be between -5 and 5, got 9"):
        Exponents(1, 9, 0)
    with pytest.raises(ValueError, match="unigram exponent"):
        Exponents(1, 1, float("nan"))
    save_model(tmp_path, small_model("bilm", len(VOCABULARY)), VOCABULARY, {"name": "bare"})
    with pytest.raises(ValueError, match="bare model's folder holds no unigram"):
        fill_gap([load_encoder(tmp_path)], SENTENCE, 1)


def test_unigrams_travel_with_the_weights(folders, encoders, tmp_path):
    np.testing.assert_allclose(load_model(folders[0]).unigram, UNIGRAM, rtol=1e-6)
    assert log_unigram(encoders[0]).dtype == torch.float32
    with pytest.raises(ValueError, match="2 unigrams do not fit 14 words"):
        save_model(tmp_path, small_model("bilm", 14), VOCABULARY, {}, UNIGRAM[:2])


# ---------------------------------------------------------------- items and table


def item(gold, alternative, evidence="left", kind="agreement", tokens=SENTENCE, position=2):
    return Item(tuple(tokens), position, gold, (alternative,), evidence, kind)


def test_a_favourite_without_evidence_has_balanced_accuracy_one_half():
    rng = np.random.default_rng(0)
    items = [item("is", "are") for _ in range(70)] + [item("are", "is") for _ in range(20)]
    items += [item("Was", "Were") for _ in range(8)] + [item("were", "was") for _ in range(30)]
    items += [item("needs", "need")] * 3 + [item("see", "sees")] * 2  # pooled: too few a pair
    rng.shuffle(items)
    always = {"is", "Was", "was", "needs", "sees"}
    values = np.array([[float(i.gold in always), 1.0, 0.0] for i in items])
    row = make_row("made up", "left", "all", "s", values, balanced_strata(items), 3, seed=0)
    np.testing.assert_allclose(row.values, [0.5, 1.0, 0.0])
    assert (row.n, row.n_left_out) == (len(items), 3)
    np.testing.assert_allclose(row.low, row.values)  # nothing varies within a class
    weights = sum(weight for weight, _ in balanced_strata(items))
    assert weights == pytest.approx(1)
    covered = np.concatenate([rows for _, rows in balanced_strata(items)])
    assert sorted(covered) == list(range(len(items)))


def test_a_phenomenon_with_one_answer_is_not_balanced_and_not_called_so():
    """Who always says "often" has no evidence, and would lift the mean of all."""
    one_sided = [item("often", "ever", kind="npi") for _ in range(10)]
    assert balanced_strata(one_sided) == []
    items = [*one_sided, *(item(*pair) for pair in (("is", "are"), ("are", "is")) * 6)]
    always = {"often", "is"}
    correct = np.array([[float(i.gold in always)] for i in items])
    scores = Scores(np.zeros_like(correct), np.ones_like(correct), correct)
    rows = {row.kind: row for row in table_rows("made up", items, scores, [], seed=0)}
    assert [(row.score, row.n) for row in rows.values()] == [
        ("balanced accuracy", 12),
        ("accuracy, one answer always right", 10),
        ("balanced accuracy", 12),
    ]
    found = [float(rows[kind].values[0]) for kind in ("all", "npi", "agreement")]
    assert found == pytest.approx([0.5, 1.0, 0.5])


def test_intervals_cover_and_pairs_are_narrower_than_two_singles():
    rng = np.random.default_rng(3)
    items = [item("is", "are") for _ in range(300)] + [item("are", "is") for _ in range(300)]
    hard = rng.random((600, 1))
    values = (hard < [[0.7, 0.68]]).astype(float)  # two predictors that mostly fail together
    row = make_row("made up", "left", "all", "s", values, balanced_strata(items), 0, seed=0)
    assert (row.low < row.values).all()
    assert (row.values < row.high).all()
    standard_error = np.sqrt(0.7 * 0.3 / 600)
    assert row.high[0] - row.low[0] == pytest.approx(3.92 * standard_error, rel=0.15)
    width = row.difference_high[0, 1] - row.difference_low[0, 1]
    assert width < 0.5 * (row.high[0] - row.low[0])
    assert row.difference[0, 1] == pytest.approx(values[:, 0].mean() - values[:, 1].mean())
    np.testing.assert_allclose(row.difference, -row.difference.T)
    again = make_row("made up", "left", "all", "s", values, balanced_strata(items), 0, seed=0)
    assert np.array_equal(row.low, again.low)


def test_scores_are_those_of_single_gaps(encoder):
    items = [
        item("cat", "dog", position=1),
        item("is", "are", tokens=["the", "dogs", "is", "here", "."]),
        item("a", "the", position=3),
    ]
    exponents = Exponents(1, 1, 1)
    scores = score(encoder, items, exponents)
    for i, entry in enumerate(items):
        sentence = list(entry.tokens)
        sentence[entry.position] = entry.gold
        guesses = fill_gap([encoder], sentence, entry.position, {encoder.name: exponents})
        logs = predictor_log_probabilities(encoder, [sentence], [entry.position], exponents)
        for p, guess in enumerate(guesses):
            assert scores.rank[i, p] == guess.rank
            assert scores.log_probability[i, p] == pytest.approx(
                np.log(guess.probability), abs=1e-4
            )
            gold, rival = (VOCABULARY.index(w) for w in (entry.gold, entry.alternatives[0]))
            row = logs[guess.predictor][0]
            assert scores.correct[i, p] == float(row[gold] > row[rival])


def test_items_with_unknown_words_are_set_apart():
    items = [item("cat", "dog"), item("cat", "zebra"), item("yak", "dog")]
    known, others = known_items(items, {word: i for i, word in enumerate(VOCABULARY)})
    assert (known, others) == (items[:1], items[1:])


def test_rows_by_evidence_and_phenomenon(encoder):
    items = [item("is", "are"), item("are", "is"), item("a", "the", "right", "article")]
    items += [item("the", "a", "right", "article"), item("is", "are", "right")]
    scores = score(encoder, items, None)
    left_out = [item("yak", "dog", "right")]
    rows = table_rows("made up", items, scores, left_out, seed=0)
    assert [(r.evidence, r.kind, r.n, r.n_left_out) for r in rows] == [
        ("left", "all", 2, 0),
        ("right", "all", 2, 1),  # the lone "is" has no contrary to be balanced with
        ("right", "article", 2, 0),
        ("right", "agreement", 1, 1),
    ]


def test_random_items_are_known_words_with_a_rival_of_like_frequency(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text("the zebra saw a dog\nquagga\nthe cats are here .\n")
    items = random_items(path, VOCABULARY, 10, seed=1)
    assert items == random_items(path, VOCABULARY, 10, seed=1)
    assert len(items) == 2  # one a sentence, none where no word is known
    for entry in items:
        assert entry.tokens[entry.position] == entry.gold in WORDS
        (rival,) = entry.alternatives
        assert rival != entry.gold
        assert rival in WORDS


def write_lines(path, lines):
    path.parent.mkdir(parents=True)
    with lzma.open(path, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def test_minimal_pairs_are_those_with_one_differing_word_after_a_shared_prefix(tmp_path):
    pair = {"uid": "agreement", "one_prefix": True}
    lines = [
        {**pair, "good": "The dog doesn't see.", "bad": "The dog don't see."},
        {**pair, "good": "The cats are here.", "bad": "The cats is here.", "one_prefix": False},
        {**pair, "good": "A cat is here now.", "bad": "A cat is here."},
        {**pair, "good": "The dogs are here.", "bad": "The dogs is here."},
    ]
    write_lines(tmp_path / "pairs" / "test.jsonl.xz", lines)
    first, second = read_minimal_pairs(tmp_path / "pairs")
    assert first.tokens[:4] == ("The", "dog", "does", "n't")
    assert (first.position, first.gold, first.alternatives) == (2, "does", ("do",))
    assert (second.gold, second.alternatives, second.evidence) == ("are", ("is",), "left")
    with pytest.raises(FileNotFoundError, match="holds no .jsonl.xz file"):
        read_minimal_pairs(tmp_path / "nothing")


GAP = {"text": "The [gap] saw a dog.", "answer": "cat", "left_favourite": "dog"}
GAP |= {"right_favourite": "a", "label": "additive"}


def test_own_gaps_hold_their_answer(tmp_path):
    path = tmp_path / "gaps.json"
    path.write_text(json.dumps({"gaps": [GAP, {**GAP, "right_favourite": "cat"}]}))
    first, second = read_own_gaps(path)
    assert first.tokens == ("The", "cat", "saw", "a", "dog", ".")
    assert (first.position, first.gold, first.kind) == (1, "cat", "additive")
    assert first.alternatives == ("dog", "a")
    assert second.alternatives == ("dog",)  # the answer is no rival of itself
    path.write_text(json.dumps({"gaps": [{**GAP, "text": "No gap."}]}))
    with pytest.raises(ValueError, match="one gap and one word to fill it"):
        read_own_gaps(path)


@pytest.mark.parametrize(
    "ranks, verdict",
    [
        ({"forward": 2, "backward": 3, "product": 1, "joint": 5}, "additive"),
        ({"forward": 2, "backward": 3, "product": 2, "joint": 1}, "interacting"),
        ({"forward": 2, "backward": 1, "product": 1, "joint": 1}, "one side knows"),
        ({"forward": 2, "backward": 3, "product": 2, "joint": 4}, "nobody knows"),
        ({"forward": None, "backward": None, "product": None, "joint": None}, "unknown word"),
    ],
)
def test_the_verdict_on_an_example(ranks, verdict):
    guesses = [
        GapGuess("e", name, ("w",), np.ones(1), "x", rank, 0.1, 0.0, 1.0)
        for name, rank in ranks.items()
    ]
    assert judge(guesses) == verdict


def test_found_gaps_are_all_that_hold_and_no_other(encoders):
    rng = np.random.default_rng(0)
    sentences = [list(rng.choice(WORDS, size=6)) for _ in range(25)]
    found = {(gap.text, gap.answer): gap for gap in find_gaps(encoders, sentences, {})}
    verdicts = set()
    for tokens in sentences:
        for i, word in enumerate(tokens):
            verdict = judge(fill_gap(encoders, tokens, i, k=1))
            verdicts.add(verdict)
            text = " ".join([*tokens[:i], "[gap]", *tokens[i + 1 :]])
            holds = verdict in ("additive", "interacting") and word != "."
            assert ((text, word) in found) == holds
            if holds:
                assert found[text, word].label == found[text, word].measured == verdict
    assert {"additive", "one side knows", "nobody knows"} <= verdicts
    assert find_gaps(encoders, [["the", "zebra", "saw"]], {}) == []


def test_the_clearest_found_gaps_come_first_and_vary():
    def gap(text, answer, label, product, joint):
        p = {"a/forward": 0.1, "a/backward": 0.05, "a/product": product, "b/joint": joint}
        return CheckedGap(text, answer, label, label, {}, {}, p)

    gaps = [
        gap("[gap] one", "x", "additive", 0.3, 0.9),
        gap("[gap] two", "x", "additive", 0.8, 0.1),
        gap("[gap] three", "x", "additive", 0.5, 0.1),
        gap("x [gap]", "three", "additive", 0.4, 0.1),  # the same sentence as the one before
        gap("[gap] four", "y", "additive", 0.2, 0.1),
        gap("[gap] five", "z", "interacting", 0.3, 0.35),
        gap("[gap] six", "z", "interacting", 0.0, 0.3),
    ]
    assert [g.text.split()[1] for g in clearest(gaps, 3)] == ["two", "three", "four", "six", "five"]
    assert [g.text.split()[1] for g in clearest(gaps, 1)] == ["two", "six"]


def test_own_sentences_come_from_every_kind_of_file(tmp_path):
    example = {"sentences": ["It ran."], "more": [{"text": "He sat.", "sense": "s"}]}
    (tmp_path / "examples.json").write_text(json.dumps({"examples": [example]}))
    (tmp_path / "edits.json").write_text(json.dumps({"examples": [{"text": "It ran."}]}))
    (tmp_path / "gaps.json").write_text(json.dumps({"gaps": [GAP]}))
    files = [tmp_path / f"{name}.json" for name in ("examples", "edits", "gaps")]
    assert [" ".join(s) for s in own_sentences(files)] == [
        "It ran .",
        "He sat .",
        "The cat saw a dog .",
    ]


def test_checked_gaps_say_what_every_predictor_makes_of_them(encoders, tmp_path):
    path = tmp_path / "gaps.json"
    path.write_text(json.dumps({"gaps": [GAP]}))
    (gap,) = check_gaps(encoders, path, {})
    guesses = fill_gap(encoders, ["The", "cat", "saw", "a", "dog", "."], 1)
    for guess in guesses:
        name = f"{guess.encoder}/{guess.predictor}"
        assert gap.favourites[name] == guess.words[0]
        assert gap.ranks[name] == guess.rank
        assert gap.probabilities[name] == pytest.approx(guess.probability, abs=1e-5)
    assert gap.measured == judge(guesses)


def test_the_command_makes_the_table_and_resumes(folders, tmp_path):
    rng = np.random.default_rng(0)
    pair = {"type": "agreement", "evidence": "right", "i": 1}
    lines = [
        {**pair, "tokens": ["the", "is", "dog"], "gold": "is", "alt": "are"},
        {**pair, "tokens": ["the", "are", "dogs"], "gold": "are", "alt": "is"},
        {**pair, "tokens": ["the", "yak", "dogs"], "gold": "yak", "alt": "is"},
    ]
    write_lines(tmp_path / "probes/cloze_agreement/test.jsonl.xz", lines * 3)
    blimp = {"uid": "number", "one_prefix": True, "good": "dogs are here."}
    blimp["bad"] = "dogs is here."
    write_lines(tmp_path / "probes/minpairs_blimp/test.jsonl.xz", [blimp] * 4)
    for name in ("test", "valid"):
        text = "\n".join(" ".join(rng.choice(WORDS, size=7)) for _ in range(30))
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "gaps.json").write_text(json.dumps({"gaps": [GAP]}))
    arguments = ["cloze", "--models", *map(str, folders), "--probes", str(tmp_path / "probes")]
    arguments += ["--test", str(tmp_path / "test.txt"), "--gaps", str(tmp_path / "gaps.json")]
    arguments += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    arguments += ["--n-gaps", "20", "--n-valid", "20"]
    assert main(arguments) == 0
    written = (tmp_path / "out/table.json").read_bytes()
    table = read_table(tmp_path / "out/table.json")
    assert len(table.predictors) == 7
    assert set(table.exponents) == {"bilm", "attention_concat"}
    rows = {(r.data, r.evidence, r.score): r for r in table.rows if r.kind == "all"}
    agreement = rows["cloze_agreement", "right", "balanced accuracy"]
    assert (agreement.n, agreement.n_left_out) == (6, 3)
    assert rows["minpairs_blimp", "left", "accuracy, one answer always right"].n == 4
    assert rows["test text", "anywhere", "log-probability"].n == 20
    assert rows["own examples", "both", "accuracy against both favourites"].n == 1
    assert all(row.values.shape == (7,) for row in table.rows)
    assert all((row.low <= row.values + 1e-5).all() for row in table.rows)
    (gap,) = json.loads((tmp_path / "out/gaps.json").read_text())["gaps"]
    assert gap["text"] == "The [gap] saw a dog ."
    assert set(gap["ranks"]) == {"/".join(pair) for pair in table.predictors}

    kept = sorted((tmp_path / "work").iterdir())
    kept[0].unlink()  # an interrupted run lacks some parts
    stamps = {file: file.stat().st_mtime_ns for file in kept[1:]}
    assert main(arguments) == 0
    assert (tmp_path / "out/table.json").read_bytes() == written
    assert {file: file.stat().st_mtime_ns for file in kept[1:]} == stamps
    assert sorted((tmp_path / "work").iterdir()) == kept


def test_two_models_of_one_name_are_refused(folders, tmp_path, capsys):
    arguments = ["cloze", "--models", str(folders[0]), str(folders[0]), "--out", str(tmp_path)]
    assert main(arguments) == 2
    assert "two models have one name (bilm, bilm)" in capsys.readouterr().err


def test_the_command_says_what_it_lacks(folders, tmp_path, capsys):
    base = ["cloze", "--models", str(folders[0]), "--out", str(tmp_path)]
    base += ["--work", str(tmp_path / "w"), "--gaps", str(tmp_path / "none.json")]
    assert main(base) == 2
    assert "needs --probes and --test" in capsys.readouterr().err
    assert main([*base, "--probes", str(tmp_path), "--test", str(tmp_path / "test.txt")]) == 2
    assert "no text to tune the exponents on" in capsys.readouterr().err
    assert main([*base, "--only-gaps"]) == 0
    (tmp_path / "own.json").write_text(json.dumps({"gaps": [GAP]}))
    assert main([*base, "--only-gaps", "--find", str(tmp_path / "own.json")]) == 0
    assert (tmp_path / "found.json").exists()


def test_the_shipped_gaps_hold_and_the_shipped_table_is_whole():
    folder = Path(__file__).parents[1] / "assets" / "cloze"
    gaps = json.loads((folder / "found.json").read_text("utf-8"))["gaps"]
    assert len(gaps) >= 40
    assert {gap["label"] for gap in gaps} == {"additive", "interacting"}
    for gap in gaps:
        assert gap["holds"]
        assert gap["text"].split().count("[gap]") == 1
        for name, word in gap["favourites"].items():
            if name.endswith(("forward", "backward")):
                assert word != gap["answer"]
    table = read_table(folder / "table.json")
    assert {row.data for row in table.rows} >= {"cloze_agreement", "minpairs_blimp", "test text"}
    assert all(row.values.shape == (len(table.predictors),) for row in table.rows)
