import numpy as np
import pytest
import torch
from small_models import KINDS, small_model
from torch.nn import functional as F

from elmo.both_ways.learning_signal import gradient_test, objective
from elmo.text import BOS, EOS, MASK, char_ids

SENTENCE = ["the", "cat", "saw", "a", "dog"]
WORDS = {word: i for i, word in enumerate([BOS, EOS, "<UNK>", "the", "a", "cat", "dog"])}


@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_a_language_model_predicts_every_word_from_one_side(kind):
    task = objective(kind, ["a", "b"])
    assert task.tokens == task.read == (BOS, "a", "b", EOS)
    assert task.directions == ("forward",) * 3 + ("backward",) * 3
    assert task.targets.tolist() == [1, 2, 3, 0, 1, 2]
    assert task.context.astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 0, 1],
    ]


def test_the_joint_encoder_predicts_gaps_from_both_sides():
    task = objective("attention", [f"w{i}" for i in range(20)], seed=3)
    assert task.directions == ("joint",) * 7  # 35 % of 20
    assert [i for i, token in enumerate(task.read) if token == MASK] == task.targets.tolist()
    assert len(set(task.targets.tolist())) == 7
    assert task.targets.min() > 0
    assert task.targets.max() <= 20
    for row in task.context:
        assert not row[task.targets].any()
        assert row.sum() == 22 - 7
    again = objective("attention", [f"w{i}" for i in range(20)], seed=3)
    assert np.array_equal(task.targets, again.targets)


def test_one_word_is_enough_for_a_target():
    assert objective("attention", ["a"]).targets.tolist() == [1]


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="empty sentence"):
        objective("bilm", [])
    with pytest.raises(ValueError, match="no objective is known for kind 'rnn'"):
        objective("rnn", ["a"])
    with pytest.raises(ValueError, match="without a softmax"):
        gradient_test(small_model("bilm"), WORDS, SENTENCE)


@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_each_loss_teaches_its_own_stack_and_what_both_share(kind):
    result = gradient_test(small_model(kind, len(WORDS)), WORDS, SENTENCE)
    assert result.losses == ("forward", "backward")
    assert [name.split()[0] for name in result.groups] == [
        "character",
        "forward",
        "backward",
        "softmax",
    ]
    assert result.exactly_zero.tolist() == [
        [False, False, True, False],
        [False, True, False, False],
    ]
    assert (result.norm > 0).tolist() == (~result.exactly_zero).tolist()
    model = small_model(kind, len(WORDS))
    assert result.n_weights.sum() == sum(p.numel() for p in model.parameters())


def test_the_joint_loss_teaches_everything():
    result = gradient_test(small_model("attention", len(WORDS)), WORDS, SENTENCE)
    assert result.losses == ("joint",)
    assert result.groups == ("character CNN", "joint stack", "softmax")
    assert not result.exactly_zero.any()
    assert (result.norm > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_those_of_the_objective(kind):
    model = small_model(kind, len(WORDS)).requires_grad_(False)
    result = gradient_test(model, WORDS, SENTENCE, seed=1)
    task = objective(kind, SENTENCE, seed=1)
    ids = torch.from_numpy(np.stack([char_ids(token) for token in task.read]))
    layers, _ = model.layers(model.token_encoder(ids)[None], torch.tensor([7]))
    sums = dict.fromkeys(result.losses, 0.0)
    for direction, target in zip(task.directions, task.targets, strict=True):
        place = target + {"forward": -1, "backward": 1, "joint": 0}[direction]
        state = layers[-1, 0, place]
        if direction != "joint":
            state = state.chunk(2)[direction == "backward"]
        logits = model.head(model.read(state, direction))
        word = WORDS.get(task.tokens[target], WORDS["<UNK>"])
        sums[direction] += float(F.cross_entropy(logits, torch.tensor(word)))
    counts = [task.directions.count(direction) for direction in result.losses]
    means = np.array(list(sums.values())) / counts
    np.testing.assert_allclose(result.values, means, rtol=1e-5)


def test_gradient_norms_are_those_of_a_loss_written_out():
    model = small_model("bilm", len(WORDS))
    result = gradient_test(model, WORDS, SENTENCE)
    framed = [BOS, *SENTENCE, EOS]
    ids = torch.from_numpy(np.stack([char_ids(token) for token in framed]))
    x = model.token_encoder(ids)[None]
    backward = model.stack.run_direction(x, torch.tensor([7]), backward=True)[0][-1][0]
    words = torch.tensor([WORDS.get(token, 2) for token in framed])
    loss = F.cross_entropy(backward[1:] @ model.head.weight.T + model.head.bias, words[:-1])
    loss.backward()
    for name, module in (
        ("character CNN", model.token_encoder),
        ("backward LSTMs", model.stack.backward_layers),
        ("softmax", model.head),
    ):
        norm = np.sqrt(sum(float(p.grad.double().square().sum()) for p in module.parameters()))
        assert result.norm[1, result.groups.index(name)] == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("switch", [torch.no_grad, torch.inference_mode])
def test_gradients_are_taken_even_where_they_are_switched_off(switch):
    model = small_model("bilm", len(WORDS)).requires_grad_(False)
    with switch():
        assert gradient_test(model, WORDS, SENTENCE).exactly_zero.sum() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_itself_is_not_touched(kind):
    model = small_model(kind, len(WORDS)).requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradient_test(model, WORDS, SENTENCE)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())
