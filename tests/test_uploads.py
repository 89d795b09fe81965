"""Files people have, in the encodings and shapes they come in."""

import gzip
import json

import pytest

from elmo.banks import uploads
from elmo.banks.tagged import Tag
from elmo.banks.uploads import MAX_TOKENS, detect_encoding, read_upload, stream_file

CONLLU = """# sent_id = 1
# text = They don't bank.
1\tThey\tthey\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbank\tbank\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
4.1\tthere\tthere\tADV\tRB\t_\t_\t_\t_\t_
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""


@pytest.fixture
def save(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def tokens(upload):
    return [" ".join(s.tokens) for s in upload.sentences]


def test_text_is_one_sentence_a_line(save):
    found = read_upload(save("a.txt", "I don't know.\r\n\r\n\u201cYes\u201d \u2014 no.\n"))
    assert tokens(found) == ["I do n't know .", '" Yes " -- no .']
    assert found.encoding == "utf-8" and found.notices == ()
    plain = read_upload(save("b.txt", "I don't know."), pretokenized=True)
    assert tokens(plain) == ["I don't know."]


def test_a_paragraph_is_split_at_the_ends_of_sentences(save):
    line = " ".join(["The bank is near. He said so (twice.) It was late."] * 8)
    assert len(read_upload(save("a.txt", line)).sentences) == 24


def test_very_long_sentences_are_cut_and_said_to_be(save):
    found = read_upload(save("a.txt", "word " * (MAX_TOKENS + 10)))
    assert [len(s.tokens) for s in found.sentences] == [MAX_TOKENS, 10]
    assert "were cut" in found.notices[0]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_encodings(save, encoding):
    text = "The caf\u00e9 is on the \u20ac side of na\u00efve town.\nAnother one.\n"
    found = read_upload(save("a.txt", text.encode(encoding)))
    assert tokens(found)[0] == "The caf\u00e9 is on the \u20ac side of na\u00efve town ."
    assert bool(found.notices) == (encoding == "cp1252")


def test_what_is_no_text_is_refused(save):
    with pytest.raises(ValueError, match=r"a\.txt is not a text file: it holds zero bytes"):
        read_upload(save("a.txt", bytes(range(256)) * 20))
    with pytest.raises(ValueError, match="full of control characters"):
        read_upload(save("a.txt", bytes([1, 2, 200, 255]) * 200))
    with pytest.raises(ValueError, match=r"must end in \.txt, \.csv, \.tsv, \.jsonl, \.conllu"):
        read_upload(save("a.pdf", "text"))
    with pytest.raises(ValueError, match=r"There is no sentence in a\.txt"):
        read_upload(save("a.txt", "\n \n"))
    with pytest.raises(ValueError, match=r"has 0\.0 MB; at most"):
        read_upload(save("a.txt", "a b c d"), max_bytes=3)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"\xef\xbb\xbfA caf\xe9 here .\n", "utf-8-sig"),
        ("A line .\n".encode("utf-16")[:-1], "utf-16"),
        (("A line .\n" * 9).encode("utf-16-le") + b"\x00", "utf-16-le"),
        (b"\xff\xfe\x00\x00" + b"\xff" * 8, "utf-32"),
    ],
)
def test_bytes_that_belie_a_files_beginning_are_told_with_what_helps(save, content, encoding):
    message = rf"^a\.txt begins as {encoding} but holds other bytes .*Save it as UTF-8"
    with pytest.raises(ValueError, match=message):
        read_upload(save("a.txt", content))
    with pytest.raises(ValueError, match=message):
        list(stream_file(save("a.txt", content)))


def test_a_character_cut_at_the_end_of_the_sample_is_no_error():
    assert detect_encoding("caf\u00e9".encode()[:-1], whole=False) == "utf-8"
    assert detect_encoding("caf\u00e9".encode()[:-1]) == "cp1252"


def test_table_with_header_words_and_senses(save):
    found = read_upload(
        save("a.csv", 'id,Text,word,sense\n1,"A bank, steep.",bank,slope\n2,No tag,bank,\n')
    )
    assert tokens(found) == ["A bank , steep .", "No tag"]
    assert found.sentences[0].tags == (Tag(1, lemma="bank", sense="slope"),)
    assert found.sentences[1].tags == ()


def test_table_without_header_takes_the_longest_column(save):
    found = read_upload(save("a.tsv", "7\tThe first sentence\tx\n8\tThe second one\ty\n"))
    assert tokens(found) == ["The first sentence", "The second one"]
    semicolons = read_upload(save("a.csv", "n;sentence\n1;He said, well, yes\n"))
    assert tokens(semicolons) == ["He said , well , yes"]


def test_an_open_quotation_mark_is_reported(save):
    with pytest.raises(ValueError, match="Is a quotation mark left open"):
        read_upload(save("a.csv", 'text\n"' + "never closed\n" * 20_000))


def test_json_lines(save):
    lines = [
        {"text": "The bank is steep.", "word": "bank", "label": "slope"},
        {"tokens": ["Already", "tokens", ""]},
        "Just a text.",
        ["A", "list"],
    ]
    found = read_upload(save("a.jsonl", "\n".join(map(json.dumps, lines))))
    assert tokens(found) == ["The bank is steep .", "Already tokens", "Just a text .", "A list"]
    assert found.sentences[0].tags[0].sense == "slope"
    for content, message in [
        ('{"text": "ok"}\n{oops}', "Line 2 is not JSON"),
        ("7", "Line 1 is neither an object"),
        ('{"title": "x"}', "Line 1 has neither text nor tokens"),
        ('{"tokens": "x"}', "Line 1: tokens must be a list"),
    ]:
        with pytest.raises(ValueError, match=rf"^b\.jsonl: {message}"):
            read_upload(save("b.jsonl", content))


def test_brackets_without_end_are_told(save):
    message = r"^a\.jsonl: Line 2 has too many brackets .* a text, or a list of tokens"
    for deep in ("[" * 100_000, '{"text":' * 100_000):
        with pytest.raises(ValueError, match=message):
            read_upload(save("a.jsonl", f'"One."\n{deep}\n'))


def test_conllu(save):
    found = read_upload(save("a.conllu", CONLLU))
    assert tokens(found) == ["They do n't bank .", "Yes"]
    assert [t.pos for t in found.sentences[0].tags] == ["PRON", "AUX", "PART", "VERB", "PUNCT"]
    assert found.sentences[0].tags[3] == Tag(3, "bank", "VERB")
    with pytest.raises(ValueError, match="Line 1 has 2 columns"):
        read_upload(save("b.conllu", "1\tno\n"))


def test_streaming_reads_packed_files_and_names_late_bytes(save):
    packed = save("a.txt.gz", gzip.compress(b"One line.\nAnother.\n"))
    assert [" ".join(s.tokens) for s in stream_file(packed)] == ["One line .", "Another ."]
    late = save("b.txt", b"plain text\n" * 120_000 + b"\xff\xfe bad\n")
    with pytest.raises(ValueError, match="begins as utf-8 but holds other bytes"):
        list(stream_file(late, pretokenized=True))


def test_reading_ends_where_there_are_enough_tokens(save, monkeypatch):
    made = []
    tokenize = uploads.tokenize
    monkeypatch.setattr(uploads, "tokenize", lambda text: made.append(text) or tokenize(text))
    for content in ("One two three .\n" * 5_000, "One two three. " * 5_000):
        made.clear()
        found = read_upload(save("a.txt", content), max_tokens=42)
        assert [len(s.tokens) for s in found.sentences] == [4] * 10
        assert len(made) == 11
        told = "The first 10 sentences of a.txt are used (42 tokens at most)"
        assert found.notices[0].startswith(told)
    whole = read_upload(save("a.txt", "One two three .\n" * 10), max_tokens=40)
    assert len(whole.sentences) == 10 and whole.notices == ()
    long = read_upload(save("a.txt", "Title\n" + "word " * 900), max_tokens=600)
    assert [len(s.tokens) for s in long.sentences] == [1, MAX_TOKENS, MAX_TOKENS]


def test_tags_move_with_a_cut_sentence(save):
    rows = [f"{i + 1}\tw\tw\tNOUN\t_\t_\t_\t_\t_\t_" for i in range(MAX_TOKENS + 2)]
    found = read_upload(save("a.conllu", "\n".join(rows)))
    assert [len(s.tags) for s in found.sentences] == [MAX_TOKENS, 2]
    assert [t.position for t in found.sentences[1].tags] == [0, 1]
