import numpy as np
import pytest
import torch
from small_models import KINDS, small_encoder

from elmo.encoders import load_elmo
from elmo.original.hdf5 import write_model
from elmo.task_input import TaskInput

SENTENCES = [["the", "cat", "the"], ["a"], []]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("train_model", [False, True])
def test_the_default_is_the_mean_of_the_encoders_layers(kind, train_model):
    task_input = TaskInput(small_encoder(kind), train_model=train_model)
    (mixed,), mask = task_input(SENTENCES)
    assert mask.tolist() == [[True] * 3, [True, False, False], [False] * 3]
    for row, encoding in enumerate(small_encoder(kind).encode(SENTENCES, layers="mean")):
        n = len(encoding.tokens)
        np.testing.assert_allclose(mixed[row, :n].detach(), encoding.hidden, atol=1e-5)
        assert not mixed[row, n:].any()


@pytest.mark.parametrize("train_model", [False, True])
def test_a_warm_start_is_the_encoders(train_model):
    task_input = TaskInput(small_encoder("bilm", state="warm"), train_model=train_model)
    (mixed,), _ = task_input(SENTENCES[:1])
    (expected,) = small_encoder("bilm", state="warm").encode(SENTENCES[:1], layers="mean")
    np.testing.assert_allclose(mixed[0].detach(), expected.hidden, atol=1e-5)
    if train_model:
        mixed.square().sum().backward()
        assert all(p.grad is not None for p in task_input.model.stack.parameters())


def test_a_fresh_module_drops_nothing():
    task_input = TaskInput(small_encoder("bilm"))
    assert task_input.training
    first, second = (task_input(SENTENCES)[0][0] for _ in range(2))
    assert torch.equal(first, second) and (first[0] != 0).all()
    dropped = TaskInput(small_encoder("bilm"), dropout=0.5)(SENTENCES)[0][0]
    assert (dropped[0] == 0).any()


@pytest.mark.parametrize("train_mix", [False, True])
@pytest.mark.parametrize("train_model", [False, True])
def test_the_switches_are_apart(train_mix, train_model):
    task_input = TaskInput(
        small_encoder("bilm"), w=[0, 1, 0], train_mix=train_mix, train_model=train_model
    )
    (mixed,), _ = task_input(SENTENCES)
    assert mixed.requires_grad == (train_mix or train_model)
    groups = task_input.parameter_groups(lr=0.1)
    names = ["mix"] * train_mix + ["model"] * train_model
    assert [group["name"] for group in groups] == names
    assert [group["lr"] for group in groups] == [{"mix": 0.1, "model": 0.001}[n] for n in names]
    if mixed.requires_grad:
        mixed.square().sum().backward()
        for group in groups:
            assert all(p.grad.abs().sum() > 0 for p in group["params"])


def test_fine_tuning_changes_vectors_and_survives_repeated_words(tmp_path):
    """Two steps, words repeated, the cache filled before: no error and nothing stale."""
    encoder = small_encoder("bilm")
    before = encoder.encode(SENTENCES)[0].hidden
    task_input = TaskInput(encoder, train_model=True)
    optimizer = torch.optim.SGD(task_input.parameter_groups(0.1, 0.1))
    for _ in range(2):
        optimizer.zero_grad()
        task_input(SENTENCES)[0][0].square().sum().backward()
        optimizer.step()
    after = encoder.encode(SENTENCES)[0].hidden
    assert (np.abs(after - before).max(axis=(1, 2)) > 1e-4).all()
    write_model(tmp_path, encoder.model)
    reloaded = load_elmo(tmp_path).encode(SENTENCES)[0].hidden
    assert np.array_equal(reloaded, after)


def test_several_mixes_are_equal_until_trained():
    task_input = TaskInput(small_encoder("bilm"), n_mixes=2)
    (first, second), _ = task_input(SENTENCES)
    assert torch.equal(first, second)
    first.sum().backward()
    assert task_input.mixes[1].w.grad is None and task_input.mixes[0].w.grad.any()


def test_no_sentences():
    for train_model in (False, True):
        task_input = TaskInput(small_encoder("bilm"), train_model=train_model)
        (mixed,), mask = task_input([])
        assert mixed.shape == (0, 0, 32) and mask.shape == (0, 0)
    with pytest.raises(ValueError, match="list of lists"):
        task_input("abc")


def test_memory_of_fine_tuning_holds_no_state_between_calls():
    task_input = TaskInput(small_encoder("bilm"), train_model=True)
    first = task_input(SENTENCES)[0][0]
    assert torch.equal(task_input(SENTENCES)[0][0], first)
    first.sum().backward()  # the graph of the first call is its own
