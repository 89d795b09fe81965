"""What each kind of encoder is called on the page; everything else an encoder says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """name: its heading; contrast: its name where concatenated stands against joint; note: how it
    is built, in a few words; required: random weights stand in where there are no trained ones."""

    name: str
    contrast: str
    note: str
    required: bool = True


# In the order of the page. The first is the one that a given biLM can replace.
ABOUT = {
    "bilm": About("ELMo", "ELMo", "two LSTM stacks, concatenated"),
    "attention": About("Self-attention", "Joint attention", "one stack, joint"),
    "attention_concat": About(
        "Concatenated attention",
        "Concatenated attention",
        "two causal stacks, concatenated",
        required=False,
    ),
}
LEAD = next(iter(ABOUT))
