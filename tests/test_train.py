"""Training: losses by hand, resumption to the bit, two processes equal to one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from elmo.checkpoint import load_model
from elmo.config import AttentionConfig, BiLMConfig, CharConfig, ModelConfig
from elmo.language_model import build
from elmo.training.batches import Batcher
from elmo.training.corpus import build_vocabulary, load
from elmo.training.objectives import (
    bilm_step,
    choose_fillers,
    choose_gaps,
    concatenated_step,
    masked_step,
)
from elmo.training.optim import MatrixBlocks, Muon, RowAdam, Schedule
from elmo.training.sampling import draw_candidates, expected_log_count

CHAR = CharConfig(32, filters=((1, 8), (2, 8), (3, 16)))
STACKS = {
    "bilm": BiLMConfig(32, 48),
    "attention": AttentionConfig(32, 2, 4, 64, max_tokens=64),
    "attention_concat": AttentionConfig(32, 2, 4, 64, max_tokens=64, concatenate=True),
}


def small_config(kind, n_vocabulary=0):
    return ModelConfig(kind, CHAR, STACKS[kind], n_vocabulary, d_head=32)


def sentences(n, seed=0, n_words=150):
    """Words by Zipf's law."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(n_words)]
    p = 1 / np.arange(1, n_words + 1)
    return [list(rng.choice(words, rng.integers(3, 9), p=p / p.sum())) for _ in range(n)]


@pytest.fixture(scope="module")
def text():
    corpus = load(sentences(400))
    vocabulary = build_vocabulary(corpus, 100)
    return corpus, vocabulary, Batcher(corpus, vocabulary, 50)


def equal_lengths(corpus, length, n):
    return np.flatnonzero(corpus.lengths == length)[:n]


def gradients(model, step):
    """Gradients by a step of ``elmo.training.objectives``, the softmax's scattered to full size."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    result = step()
    head = result.head
    model.head.weight.grad.index_copy_(0, head.rows, head.weight)
    model.head.bias.grad.index_copy_(0, head.rows, head.bias)
    return result, {name: p.grad.clone() for name, p in model.named_parameters()}


def reference_loss(model, corpus, vocabulary, chosen, gaps=None, fillers=None):
    """The same loss from the encoder's own modules, against the full softmax."""
    words = torch.from_numpy(corpus.word_ids(vocabulary))
    framed = torch.from_numpy(corpus.framed(np.sort(chosen))).long()
    ids = torch.from_numpy(Batcher(corpus, vocabulary, 50).characters).long()
    vectors = model.token_encoder(ids)
    lengths = torch.full((len(framed),), framed.shape[1])
    if gaps is None:
        top = model.layers(vectors[framed], lengths)[0][-1]
        forward, backward = top.chunk(2, dim=-1)
        pairs = [
            (model.read(forward[:, :-1], "forward"), words[framed[:, 1:]]),
            (model.read(backward[:, 1:], "backward"), words[framed[:, :-1]]),
        ]
    else:
        pairs = []
        for positions, sources in zip(gaps, fillers, strict=True):
            there = framed.gather(1, sources.clamp(min=0))
            filled = framed.scatter(1, positions, torch.where(sources < 0, 2, there))
            top = model.layers(vectors[filled], lengths)[0][-1]
            row = torch.arange(len(framed))[:, None]
            target = words[framed.gather(1, positions)]
            pairs.append((model.read(top[row, positions], "joint"), target))
    losses = [F.cross_entropy(model.head(h).flatten(0, 1), t.flatten()) for h, t in pairs]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", STACKS)
def test_a_step_has_the_gradients_of_the_loss_by_the_encoders_own_code(kind, text):
    corpus, vocabulary, batcher = text
    model = build(small_config(kind, len(vocabulary)), 3)
    torch.manual_seed(0)
    with torch.no_grad():  # away from the symmetric start
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.05)
    chosen = equal_lengths(corpus, 6, 16)
    batch = batcher.batch(chosen, 0, 1, "cpu")
    everything = 20_000  # so many draws that every word is a candidate and no count is corrected
    gaps = fillers = None
    args = (model, batch, everything, [1, 7], torch.float32)
    if kind == "bilm":
        result, found = gradients(model, lambda: bilm_step(*args))
    elif kind == "attention_concat":
        result, found = gradients(model, lambda: concatenated_step(*args))
    else:
        gaps = choose_gaps(16, 6, 2, 0.35, [1, 7])
        fillers = choose_fillers(gaps, 6, [1, 7])
        result, found = gradients(model, lambda: masked_step(*args, 2, 0.35))
    model.zero_grad(set_to_none=True)
    loss = reference_loss(model, corpus, vocabulary, chosen, gaps, fillers)
    loss.backward()
    assert result.loss.sum().item() / result.n_targets == pytest.approx(loss.item(), rel=1e-4)
    for name, parameter in model.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        # a key's bias has no effect at all: its gradient is rounding noise around 0
        assert (found[name] - expected).norm() < 1e-3 * expected.norm() + 1e-6, name


def test_gaps_are_equally_many_and_do_not_overlap():
    gaps = choose_gaps(5, 20, 2, 0.35, [1, 2])
    assert gaps.shape == (2, 5, 7)
    assert gaps.min() >= 1 and gaps.max() <= 20
    for row in gaps.permute(1, 0, 2).flatten(1):
        assert len(set(row.tolist())) == 14
    assert choose_gaps(3, 1, 2, 0.35, [1]).tolist() == [[[1]] * 3] * 2


def test_most_targets_are_hidden_some_kept_some_swapped_within_the_sentence():
    gaps = choose_gaps(400, 20, 2, 0.35, [1, 2])
    fillers = choose_fillers(gaps, 20, [1, 2])
    assert fillers.shape == gaps.shape and set(fillers.unique().tolist()) <= {-1, *range(1, 21)}
    hidden, kept = (fillers == -1).float().mean(), (fillers == gaps).float().mean()
    assert hidden == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1 + 0.1 / 20, abs=0.02)


def test_candidates_follow_their_expected_counts():
    n, draws = 50, 40
    expected = expected_log_count(torch.arange(n), n, draws).exp().numpy()
    found = np.zeros(n)
    for seed in range(3_000):
        found[draw_candidates(n, draws, [seed]).numpy()] += 1
    np.testing.assert_allclose(found / 3_000, expected, atol=0.035)


def test_muon_takes_the_step_of_torch_optim_muon():
    torch.manual_seed(0)
    mine = [torch.nn.Parameter(torch.randn(s)) for s in ((48, 32), (32, 48), (32, 32))]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in mine]
    muon = Muon([MatrixBlocks(p) for p in mine], 0.02, 0.95, 0.1)
    reference = torch.optim.Muon(theirs, 0.02, weight_decay=0.1, momentum=0.95)
    for _ in range(3):
        for a, b in zip(mine, theirs, strict=True):
            a.grad = torch.randn(a.shape)
            b.grad = a.grad.clone()
        muon.step(1.0)
        reference.step()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0)


def test_matrix_blocks_are_gates_and_halves():
    parameter = torch.arange(8 * 6).view(8, 6)
    blocks = MatrixBlocks(parameter, 4, 2)
    split = blocks.split(parameter)
    assert split.shape == (8, 2, 3) and blocks.shape == (2, 3)
    assert split[0].tolist() == parameter[:2, :3].tolist()
    assert split[1].tolist() == parameter[:2, 3:].tolist()
    torch.testing.assert_close(blocks.join(split), parameter)


def test_row_adam_moves_only_the_rows_it_is_given():
    weight, bias = torch.zeros(5, 3), torch.zeros(5)
    adam = RowAdam(weight, bias, lr=0.1)
    adam.step(torch.tensor([1, 3]), torch.tensor([[2.0] * 3, [-4.0] * 3]), torch.ones(2), 1.0)
    expected = torch.zeros(5, 3)
    expected[1], expected[3] = -0.1, 0.1  # the first step has the size of the learning rate
    torch.testing.assert_close(weight, expected)
    assert bias.tolist() == pytest.approx([0, -0.1, 0, -0.1, 0])
    assert adam.steps.tolist() == [0, 1, 0, 1, 0]


def test_schedule_warms_up_stays_and_decays_to_zero():
    schedule = Schedule(warmup=10, decay_from=100, total=200)
    assert schedule.factor(4) == pytest.approx(0.5)
    assert schedule.factor(50) == schedule.factor(100) == 1.0
    assert schedule.factor(125) == pytest.approx(0.5)
    assert schedule.factor(200) == 0.0
    with pytest.raises(ValueError, match="decay must start"):
        Schedule(0, 201, 200)


# ------------------------------------------------------- whole runs, as a user starts them


@pytest.fixture
def workplace(tmp_path):
    train = "".join(" ".join(s) + "\n" for s in sentences(800, seed=1))
    (tmp_path / "train.txt").write_text(train)
    (tmp_path / "valid.txt").write_text("".join(" ".join(s) + "\n" for s in sentences(30, seed=2)))
    return tmp_path


def command(workplace, kind, out, *more):
    config = workplace / f"{kind}.json"
    config.write_text(json.dumps(small_config(kind).to_dict()))
    return [
        *("-m", "elmo", "train", "--config", str(config), "--out", str(workplace / out)),
        *("--corpus", str(workplace / "train.txt"), "--valid", str(workplace / "valid.txt")),
        *("--cache", str(workplace / "cache"), "--vocabulary", "100", "--threads", "1"),
        *("--tokens-per-batch", "128", "--n-draws", "256", "--warmup-tokens", "500"),
        *("--valid-minutes", "100", *more),
    ]


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}


def train(workplace, kind, out, *more):
    arguments = [sys.executable, *command(workplace, kind, out, *more)]
    subprocess.run(arguments, check=True, env=environment(), cwd=workplace, timeout=300)


def last_state(folder):
    paths = sorted(folder.glob("checkpoint-*.pt"))
    return torch.load(paths[-1], weights_only=True)


def journal(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def assert_equal_states(a, b):
    for name, value in a["trainer"]["model"].items():
        assert torch.equal(value, b["trainer"]["model"][name]), name
    for x, y in zip(a["trainer"]["muon"], b["trainer"]["muon"], strict=True):
        assert torch.equal(x, y)
    for key in ("step", "epoch", "next_batch", "tokens", "targets"):
        assert a["progress"][key] == b["progress"][key]


@pytest.mark.parametrize("kind", ["bilm", "attention"])
def test_a_killed_run_ends_on_the_same_bits(kind, workplace):
    """Killed twice, once without a word, once by SIGTERM; the corpus is passed over twice."""
    tokens = "9000"
    train(workplace, kind, "whole", "--tokens", tokens)
    arguments = command(workplace, kind, "broken", "--tokens", tokens, "--resume")
    arguments += ["--checkpoint-minutes", "0.002"]
    for how in (signal.SIGKILL, signal.SIGTERM):
        seen = len(list((workplace / "broken").glob("checkpoint-*.pt")))
        newest = max((workplace / "broken").glob("checkpoint-*.pt"), default=None)
        process = subprocess.Popen([sys.executable, *arguments], env=environment(), cwd=workplace)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            now = max((workplace / "broken").glob("checkpoint-*.pt"), default=None)
            if now != newest:
                break
            time.sleep(0.01)
        process.send_signal(how)
        process.wait(timeout=60)
        assert seen <= 2
    broken = last_state(workplace / "broken")
    assert 0 < broken["progress"]["tokens"] < int(tokens), (
        "the kills came too late to test anything"
    )
    subprocess.run([sys.executable, *arguments], check=True, env=environment(), cwd=workplace)
    assert_equal_states(last_state(workplace / "whole"), last_state(workplace / "broken"))
    assert len(list((workplace / "broken").glob("checkpoint-*"))) == 2
    steps = [line["step"] for line in journal(workplace / "broken")]
    assert steps == sorted(steps)


def test_a_branch_decays_at_once_and_leaves_the_trunk_alone(workplace):
    train(workplace, "bilm", "trunk", "--tokens", "4000", "--decay", "0")
    before = sorted((workplace / "trunk").iterdir())
    checkpoint = str(max((workplace / "trunk").glob("checkpoint-*.pt")))
    train(workplace, "bilm", "branch", "--tokens", "8000", "--resume", checkpoint)
    state = last_state(workplace / "branch")
    start = torch.load(checkpoint, weights_only=True)["progress"]["tokens"]
    assert state["schedule"]["decay_from"] == start
    assert state["progress"]["tokens"] >= 8000
    assert sorted((workplace / "trunk").iterdir()) == before
    assert journal(workplace / "branch")[0] == journal(workplace / "trunk")[0]


def test_training_lowers_perplexity_and_exports_a_loadable_model(workplace):
    train(workplace, "attention_concat", "run", "--tokens", "20000", "--valid-minutes", "0.0001")
    lines = journal(workplace / "run")
    scores = [line["valid_mean"] for line in lines if "valid_mean" in line]
    assert scores[-1] < 0.8 * scores[0] and scores[-1] < 80
    loaded = load_model(workplace / "run/model")
    assert loaded.card["tokens_seen"] == lines[-1]["tokens"] >= 20000
    curve = (workplace / "run/model/curve.jsonl").read_text().splitlines()
    assert [json.loads(line)["valid_mean"] for line in curve] == scores
    hidden_words = [line["valid_log_probability"] for line in lines if "valid_mean" in line]
    assert hidden_words[-1] > hidden_words[0] + 0.2
    trained = last_state(workplace / "run")["trainer"]["model"]
    for name, value in loaded.model.state_dict().items():
        torch.testing.assert_close(value, trained[name], atol=0.03, rtol=0.02)


def test_a_run_goes_on_from_shipped_weights_alone(workplace):
    """The checkpoint is lost, the model is not: its text is not read twice."""
    train(workplace, "bilm", "whole", "--tokens", "9000")
    train(workplace, "bilm", "first", "--tokens", "6000", "--decay", "0")
    first = last_state(workplace / "first")["progress"]
    more = ("--tokens", "9000", "--start", str(workplace / "first/model"))
    train(workplace, "bilm", "second", *more)
    second, whole = last_state(workplace / "second"), last_state(workplace / "whole")
    for key in ("step", "epoch", "next_batch", "tokens", "targets"):
        assert second["progress"][key] == whole["progress"][key], key
    assert second["schedule"]["start"] == first["tokens"]
    assert journal(workplace / "second")[0] == journal(workplace / "first")[-1]
    card = json.loads((workplace / "second/model/card.json").read_text())
    assert f"--start MODEL_OF_{first['tokens']}_TOKENS" in card["command"]
    trained = load_model(workplace / "second/model").model.state_dict()
    for name, value in load_model(workplace / "first/model").model.state_dict().items():
        assert (trained[name] - value).abs().max() < 0.5, name


def test_a_second_run_in_one_folder_must_say_resume(workplace):
    train(workplace, "bilm", "run", "--tokens", "500")
    arguments = command(workplace, "bilm", "run", "--tokens", "500")
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(), cwd=workplace, capture_output=True
    )
    assert done.returncode != 0 and b"holds a run already" in done.stderr


def said(workplace, *arguments):
    """The one line that a refused run ends with."""
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(), cwd=workplace, capture_output=True
    )
    assert done.returncode == 2
    return done.stderr.decode().splitlines()[-1]


def test_a_run_resumes_on_its_own_text_alone(workplace):
    train(workplace, "bilm", "run", "--tokens", "500")
    arguments = command(workplace, "bilm", "run", "--tokens", "900", "--resume")
    message = said(workplace, *arguments, "--vocabulary", "20")
    assert "another vocabulary" in message and "(20)" in message
    text = (workplace / "train.txt").read_text().splitlines(keepends=True)
    (workplace / "train.txt").write_text("".join(text[:500]))
    assert "was trained" in said(workplace, *arguments)
    (workplace / "train.txt").write_text("".join(text))
    checkpoint = str(max((workplace / "run").glob("checkpoint-*.pt")))
    assert "needs a folder of its own" in said(workplace, *arguments, checkpoint)


def test_positions_beyond_the_training_pieces_are_refused(workplace):
    arguments = command(workplace, "attention", "run", "--tokens", "500")
    config = workplace / "attention.json"
    config.write_text(config.read_text().replace('"max_tokens": 64', '"max_tokens": 128'))
    assert "max_tokens must be 64" in said(workplace, *arguments)


@pytest.mark.parametrize("kind", ["bilm", "attention"])
def test_two_processes_equal_one_with_the_same_whole_batch(kind, workplace):
    tokens = ["--tokens", "800", "--seed", "5", "--precision", "float32"]
    train(workplace, kind, "one", *tokens)
    arguments = command(workplace, kind, "two", *tokens)
    torchrun = [*(sys.executable, "-m", "torch.distributed.run"), "--nproc-per-node", "2"]
    torchrun += ["--standalone"]  # a free port of its own
    subprocess.run(
        [*torchrun, *arguments], check=True, env=environment(), cwd=workplace, timeout=300
    )
    one, two = last_state(workplace / "one"), last_state(workplace / "two")
    assert one["progress"]["step"] == two["progress"]["step"]
    assert one["progress"]["targets"] == two["progress"]["targets"]
    start = build(small_config(kind, 100), 5).state_dict()
    for name, value in one["trainer"]["model"].items():
        if name not in start or start[name].shape != value.shape:
            continue
        moved = (value - start[name]).norm()
        if moved > 0:
            apart = (value - two["trainer"]["model"][name]).norm()
            assert apart < 0.02 * moved + 1e-4, name
