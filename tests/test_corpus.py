"""Text to batches: nothing lost, nothing twice, the same again for the same seed."""

import lzma

import numpy as np
import pytest

from elmo.training import corpus as corpora

LINES = ["the cat sat .", "a cat sat on the mat .", "", "the dog .", "the  end  naïve\u00a0word"]


@pytest.fixture
def files(tmp_path):
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.xz"
    plain.write_text("\n".join(LINES[:3]) + "\n", encoding="utf-8")
    with lzma.open(packed, "wt", encoding="utf-8") as out:
        out.write("\n".join(LINES[3:]))
    return [plain, packed]


def random_corpus(n_sentences=500, seed=0):
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(50)]
    return corpora.load([list(rng.choice(words, rng.integers(1, 12))) for _ in range(n_sentences)])


def test_prepare_keeps_every_token_in_order(files, tmp_path):
    corpus = corpora.prepare(files, tmp_path / "cache")
    expected = [line.split() for line in LINES if line]
    assert [corpus.sentence(i) for i in range(corpus.n_sentences)] == expected
    assert corpus.n_tokens == sum(map(len, expected))
    assert dict(zip(corpus.types, corpus.counts, strict=True))["the"] == 4
    assert corpus.types[:3] == ["<S>", "</S>", "<MASK>"]


def test_prepare_reads_once(files, tmp_path):
    first = corpora.prepare(files, tmp_path / "cache")
    stamp = (tmp_path / "cache/ids.bin").stat().st_mtime_ns
    again = corpora.prepare(files, tmp_path / "cache")
    assert (tmp_path / "cache/ids.bin").stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(first.ids, again.ids)
    files[0].write_text("other text\n")
    assert corpora.prepare(files, tmp_path / "cache").sentence(0) == ["other", "text"]


def test_an_interrupted_preparation_is_done_again(files, tmp_path):
    corpora.prepare(files, tmp_path / "cache")
    (tmp_path / "cache/meta.json").unlink()
    (tmp_path / "cache/ids.bin").write_bytes(b"\0" * 8)
    assert corpora.prepare(files, tmp_path / "cache").sentence(2) == ["the", "dog", "."]


def test_long_sentences_are_cut(files, tmp_path):
    corpus = corpora.prepare(files, tmp_path / "cache", max_tokens=4)
    assert corpus.sentence(1) == ["a", "cat", "sat", "on"]
    assert corpus.sentence(2) == ["the", "mat", "."]


def test_no_text_is_an_error(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="no sentences"):
        corpora.prepare([tmp_path / "empty.txt"], tmp_path / "cache")
    with pytest.raises(ValueError, match="no corpus files"):
        corpora.prepare([], tmp_path / "cache")


def test_vocabulary_falls_in_frequency_after_the_special_words(files, tmp_path):
    corpus = corpora.prepare(files, tmp_path / "cache")
    vocabulary = corpora.build_vocabulary(corpus, 6)
    assert vocabulary == ["<S>", "</S>", "<UNK>", "the", ".", "cat"]
    ids = dict(zip(corpus.types, corpus.word_ids(vocabulary), strict=True))
    assert (ids["<S>"], ids["</S>"], ids["<MASK>"], ids["the"], ids["dog"]) == (0, 1, 2, 3, 2)


def test_special_spellings_in_the_text_take_no_place_in_the_vocabulary():
    corpus = corpora.load([["<UNK>", "<S>", "<UNK>", "<MASK>", "x"]])
    assert corpora.build_vocabulary(corpus, 10) == ["<S>", "</S>", "<UNK>", "x"]


def test_framed_sentences_stand_between_boundaries(files, tmp_path):
    corpus = corpora.prepare(files, tmp_path / "cache")
    framed = corpus.framed(np.array([2]))
    assert [corpus.types[i] for i in framed[0]] == ["<S>", "the", "dog", ".", "</S>"]


def test_an_epoch_visits_every_sentence_once_in_batches_of_one_length():
    corpus = random_corpus()
    plan = corpora.plan_batches(corpus, 64, seed=1, epoch=0)
    batches = [plan.sentences(i) for i in range(len(plan))]
    assert sorted(np.concatenate(batches)) == list(range(corpus.n_sentences))
    for batch in batches:
        assert len(set(corpus.lengths[batch])) == 1
    n_rows = {}
    for batch in batches:
        n_rows.setdefault(corpus.lengths[batch[0]], []).append(len(batch))
    for length, rows in n_rows.items():
        full = max(8, round(64 / length / 8) * 8)
        assert sum(r != full for r in rows) <= 1, "one smaller batch of a length at most"


def test_plans_repeat_with_the_seed_and_differ_between_epochs():
    corpus = random_corpus()
    plans = [corpora.plan_batches(corpus, 64, *key) for key in ((1, 0), (1, 0), (1, 1), (2, 0))]
    np.testing.assert_array_equal(plans[0].order, plans[1].order)
    np.testing.assert_array_equal(plans[0].sequence, plans[1].sequence)
    for other in plans[2:]:
        assert not np.array_equal(plans[0].order, other.order)
