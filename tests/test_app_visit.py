"""One visitor's answers come in any order: nothing that was chosen is undone."""

from copy import deepcopy
from dataclasses import replace

import gradio as gr
import pytest

from app.choice import Choice
from app.state import Selection
from app.visit import Visit, keeps

OLD, NEW = "The bank was steep .", "She wrote a play ."


@pytest.fixture
def visit():
    return Visit(Selection(OLD))


def changing(visit, meanwhile, **changes):
    """A handler that makes changes, and ends after something else has ended."""

    def handler(selection, sent):
        meanwhile()
        return replace(selection, **changes), sent

    return keeps(handler)(visit, "news")


def then(visit, **changes):
    return lambda: keeps(lambda selection: replace(selection, **changes))(visit)


def test_a_handler_changes_what_it_changed_and_no_more(visit):
    other = Choice(metric="dot")
    answer = changing(visit, then(visit, text=NEW, sentence=0, token=3), choice=other)
    assert answer == (gr.skip(), gr.skip())  # it was about the old text
    assert visit.selection == Selection(NEW, token=3, choice=other)
    answer = changing(visit, then(visit, token=2), choice=other)
    assert answer == (visit, "news")
    assert visit.selection == Selection(NEW, token=2, choice=other)


def test_a_token_of_a_text_that_was_left_is_not_chosen(visit):
    answer = changing(visit, then(visit, text=NEW, token=1), token=4)
    assert answer == (gr.skip(), gr.skip()) and visit.selection == Selection(NEW, token=1)


def test_a_new_text_counts_whatever_was_chosen_meanwhile(visit):
    answer = changing(visit, then(visit, token=2, basis="word"), text=NEW, token=0)
    assert answer == (visit, "news")
    assert visit.selection == Selection(NEW, basis="word")


def test_answers_without_choices_are_sent_if_the_text_is_still_there(visit):
    assert keeps(lambda sent, selection: sent)("news", visit) == "news"

    def reader(selection):
        visit.selection = Selection(NEW)
        return "about the old text"

    assert keeps(reader)(visit) == gr.skip()


def test_steps_read_the_choices(visit):
    def steps(selection, sent):
        yield selection.text
        yield sent

    assert list(keeps(steps)(visit, "news")) == [OLD, "news"]


def test_every_visitor_has_one_of_their_own(visit):
    other = deepcopy(visit)
    visit.selection = Selection(NEW)
    assert other.selection == Selection(OLD)
