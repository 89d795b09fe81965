"""Banks on disk: what comes back, breaking off, damage, and two builders at once."""

import json

import numpy as np
import pytest
from small_models import small_encoder

from elmo.banks import bank_build
from elmo.banks.bank import build_bank
from elmo.banks.bank_build import bank_folder, build_files, encoder_digest, open_or_build
from elmo.banks.bank_command import run
from elmo.banks.bank_files import DamagedBank, check_vectors, open_bank
from elmo.banks.sources import Source, sentences_source
from elmo.banks.tagged import Tag, TaggedSentence

WORDS = [
    "the",
    "bank",
    "of",
    "a",
    "river",
    "was",
    "steep",
    "and",
    "every",
    "Bank",
    "in",
    "town",
    "closed",
    "early",
]


@pytest.fixture(scope="module")
def encoder():
    return small_encoder("attention")  # reads 20 tokens at most


@pytest.fixture(scope="module")
def sentences():
    rng = np.random.default_rng(1)
    found = []
    for i in range(60):
        tokens = tuple(rng.choice(WORDS, size=int(rng.integers(1, 20))))
        tags = tuple(
            Tag(t, token.lower(), "NOUN", f"bank%{i % 2}", f"gloss, \u201c{i % 2}\u201d")
            for t, token in enumerate(tokens)
            if token.lower() == "bank"
        )
        found.append(TaggedSentence(tokens, tags))
    found[7] = TaggedSentence(("too",) * 25, (Tag(3, "too"),))
    found[9] = TaggedSentence(("\u732b", "\u0939\u093f\u0928\u094d\u0926\u0940", "\U0001f600"))
    return found


@pytest.fixture
def source(sentences):
    return sentences_source("test", sentences)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(bank_build, "SENTENCES_PER_CHUNK", 8)


def test_a_bank_from_disk_is_the_bank_in_memory(tmp_path, encoder, sentences, source):
    bank = open_or_build(tmp_path, source, encoder)
    fits = [len(s.tokens) <= 20 for s in sentences]
    encoded = iter(encoder.encode([s.tokens for s, ok in zip(sentences, fits, strict=True) if ok]))
    expected = build_bank(
        [s.tokens for s in sentences],
        [next(encoded) if ok else None for ok in fits],
        tags=[s.tags for s in sentences],
    )
    assert isinstance(bank.vectors, np.memmap) and bank.vectors.dtype == np.float16
    np.testing.assert_allclose(bank.vectors, expected.vectors, rtol=1e-3, atol=1e-5)
    for name in ("sentence", "position", "word", "tag"):
        np.testing.assert_array_equal(getattr(bank, name), getattr(expected, name))
    assert (bank.words, bank.tags) == (expected.words, expected.tags)
    assert list(bank.sentences) == list(expected.sentences)
    np.testing.assert_allclose(bank.means.unit, expected.means.unit, atol=1e-3)
    assert bank.row(7, 0) is None and bank.row(8, 0) is not None
    query = expected.vectors[4]
    for unit in (False, True):
        found, wanted = (
            b.compare(query, unit=unit).nearest([0.2, 0.3, 0.1, 0.4]) for b in (bank, expected)
        )
        np.testing.assert_allclose(found.scores, wanted.scores, atol=2e-3)
        assert found.rows[0] == wanted.rows[0] == 4


def test_similarities_are_exact_at_the_stored_precision(tmp_path, encoder, source):
    bank = open_or_build(tmp_path, source, encoder)
    rows = np.asarray(bank.vectors, dtype=np.float64) - bank.means.raw
    s = np.array([0.1, 0.2, 0.3, 0.4])
    mixed = np.tensordot(rows, s, axes=(1, 0))
    cosine = mixed @ mixed[11] / np.linalg.norm(mixed, axis=1) / np.linalg.norm(mixed[11])
    found = bank.compare(bank.vectors[11]).scores(s)
    np.testing.assert_allclose(found, cosine, atol=1e-5)


def test_a_cancelled_build_goes_on_where_it_was(tmp_path, encoder, source):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert build_files(whole, source, encoder)
    calls = iter([False, False, True])
    assert not build_files(broken, source, encoder, is_cancelled=lambda: next(calls))
    partial = tmp_path / "broken.partial"
    assert not broken.exists() and json.loads((partial / "progress.json").read_text())["n_rows"]
    with (partial / "vectors.f16").open("ab") as file:
        file.write(b"half a chunk")  # as a crash leaves it
    seen = []
    assert build_files(broken, source, encoder, seen.append)
    assert seen[0].resumed == 16 and seen[0].n_sentences == 24 and seen[-1].n_sentences == 60
    assert seen[-1].total == 60 and seen[-1].seconds_left == 0
    for name in ("vectors.f16", "products.f32", "rows.i32", "text.txt", "words.txt", "tags.json"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    assert not partial.exists()


def test_a_half_built_bank_of_another_text_is_not_gone_on_with(tmp_path, encoder, sentences):
    calls = iter([False, True])
    first = sentences_source("test", sentences)
    assert not build_files(tmp_path / "b", first, encoder, is_cancelled=lambda: next(calls))
    second = sentences_source("test", sentences[::-1])
    seen = []
    assert build_files(tmp_path / "b", second, encoder, seen.append)
    assert seen[0].resumed == 0
    assert open_bank(tmp_path / "b").sentences[0] == sentences[-1].tokens


@pytest.mark.parametrize(
    "name",
    [
        "vectors.f16",
        "products.f32",
        "rows.i32",
        "means.f32",
        "text.txt",
        "words.txt",
        "tags.json",
        "bank.json",
    ],
)
@pytest.mark.parametrize("how", ["flip", "cut", "remove"])
def test_damage_is_noticed_and_the_bank_built_again(tmp_path, encoder, source, name, how):
    first = open_or_build(tmp_path, source, encoder)
    expected = first.compare(np.asarray(first.vectors[3])).nearest([0.25] * 4).rows
    folder = bank_folder(tmp_path, encoder, source)
    path = folder / name
    content = path.read_bytes()
    if how == "remove":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    error = FileNotFoundError if (name, how) == ("bank.json", "remove") else DamagedBank
    with pytest.raises(error):
        open_bank(folder)
    again = open_or_build(tmp_path, source, encoder)
    assert (
        again.compare(np.asarray(again.vectors[3])).nearest([0.25] * 4).rows.tolist()
        == expected.tolist()
    )
    check_vectors(folder)


def test_a_flipped_bit_between_the_sampled_blocks_is_found_by_the_full_check(
    tmp_path, encoder, source, monkeypatch
):
    monkeypatch.setattr("elmo.banks.bank_files.BLOCK_BYTES", 1 << 10)
    folder = bank_folder(tmp_path, encoder, source)
    build_files(folder, source, encoder)
    content = bytearray((folder / "vectors.f16").read_bytes())
    content[3 << 10] ^= 1
    (folder / "vectors.f16").write_bytes(content)
    open_bank(folder)
    with pytest.raises(DamagedBank, match=r"vectors\.f16 is not what was written"):
        check_vectors(folder)


def test_the_name_changes_with_the_weights_and_the_text(tmp_path, encoder, sentences, source):
    names = {
        bank_folder(tmp_path, encoder, source),
        bank_folder(tmp_path, small_encoder("attention", seed=1), source),
        bank_folder(tmp_path, small_encoder("bilm"), source),
        bank_folder(tmp_path, encoder, sentences_source("test", sentences[1:])),
    }
    assert len(names) == 4
    assert encoder_digest(small_encoder("attention")) == encoder_digest(encoder)


def test_two_builders_do_not_write_the_same_files(tmp_path, encoder, sentences):
    pytest.importorskip("fcntl")

    def read():
        with pytest.raises(ValueError, match="being built by another process"):
            build_files(tmp_path / "b", source, encoder)
        yield from sentences

    source = Source("test", "0" * 32, read)
    assert build_files(tmp_path / "b", source, encoder)


def test_a_text_without_a_readable_sentence(tmp_path, encoder):
    long = sentences_source("long", [TaggedSentence(("word",) * 30)])
    with pytest.raises(ValueError, match="has no sentence that attention can read"):
        build_files(tmp_path / "b", long, encoder)
    with pytest.raises(FileNotFoundError, match="there is no bank"):
        open_bank(tmp_path / "b")


def test_tags_are_looked_up_by_row(tmp_path, encoder, sentences, source):
    bank = open_or_build(tmp_path, source, encoder)
    tagged = bank.select(tagged=True)
    assert len(tagged) == sum(len(s.tags) for s in sentences) - 1  # one is in the long sentence
    for row in tagged[:10].tolist():
        assert bank.token(row).lower() == "bank" and bank.tag_of(row).pos == "NOUN"
    assert set(bank.select("bank", "only")) == set(tagged)
    assert set(bank.select(pos="NOUN")) == set(tagged) and not len(bank.select(pos="VERB"))
    assert len(set(bank.sense_ids[tagged])) == 2


def test_the_command_builds_checks_and_searches(tmp_path, encoder, capsys, monkeypatch):
    text = tmp_path / "few.txt"
    text.write_text("the bank of the river\n\nevery bank in town\n", encoding="utf-8")
    monkeypatch.setattr("elmo.banks.bank_command.encoder_from", lambda _: encoder)
    from argparse import ArgumentParser

    from elmo.banks.bank_command import add_arguments

    parser = ArgumentParser()
    add_arguments(parser)

    def command(*words):
        run(parser.parse_args([str(word) for word in words]))
        return capsys.readouterr().out

    folder = tmp_path / "out"
    assert command("build", text, "--out", folder).strip() == str(folder)
    assert "9 of 7 words" in command("info", folder)
    assert command("check", folder) == "whole\n"
    lines = command("search", folder, "a bank in town", "bank", "-k", 2, "--same-word", "only")
    assert lines.count("[bank]") == 2
    with pytest.raises(ValueError, match="there is no token 'boat'"):
        command("search", folder, "a bank in town", "boat")
    with pytest.raises(ValueError, match="give text files, or --wordnet"):
        command("build")
