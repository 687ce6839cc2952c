"""Facts that the rules find in simple sentences, and sentences that they skip."""

import time

import pytest

from holdfast.core.ids import MessageId, RunId
from holdfast.core.parts import TextPart
from holdfast.memory.fact_drafts import to_facts
from holdfast.memory.rule_extractor import extract
from holdfast.ports.memory import RememberedTurn


def turn(text: str, n: int = 1) -> RememberedTurn:
    answer = (TextPart("You live in Rome and your name is Zoe."),)
    return RememberedTurn(n, RunId(f"run_{n}"), MessageId(f"msg_{n}"), float(n), (TextPart(text),), answer)


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Hi, my name is Anna Schmidt and I live in New York.", ["Name: Anna Schmidt", "Lives in New York"]),
        ("I moved to Berlin last year.", ["Lives in Berlin"]),
        ("I'm originally from the Netherlands.", ["Comes from the Netherlands"]),
        ("I work as a carpenter, and I work for Siemens.", ["Works for Siemens", "Works as carpenter"]),
        ("My birthday is on 3 May 1990.", ["Birthday: 3 May 1990"]),
        ("I'm 34 years old.", ["34 years old"]),
        ("My wife's name is Clara.", ["Wife: Clara"]),
        ("my favourite colour is dark green.", ["Favourite colour: dark green"]),
        ("I'm allergic to peanuts and shellfish.", ["allergic to peanuts and shellfish"]),
        ("I really love hiking but I hate olives.", ["Likes hiking", "Does not like olives"]),
        ("I prefer tea over coffee because it is mild.", ["Prefers tea over coffee"]),
        ("My dentist appointment is on Tuesday at 10:30.", ["Dentist appointment: Tuesday at 10:30"]),
        ("Please remember that my car is blue.", ["Asked to remember: my car is blue"]),
        ("Remember: my name is Bea.", ["Name: Bea"]),
        ("From now on, always answer in German.", ["Wishes: always answer in German"]),
    ],
)
def test_statements_about_oneself_are_facts(said: str, facts: list[str]) -> None:
    """Names, places, work, dates, likes, family, standing wishes and requests to remember are found."""
    found = [draft.text for draft in extract([turn(said)])]
    assert len(found) == len(facts)
    assert all(fact in text for fact, text in zip(facts, found, strict=True))


@pytest.mark.parametrize(
    "said",
    [
        "Do I live in Paris?",
        "What is my name?",
        "If I live in Rome, what then.",
        "Imagine my name is Bob.",
        "I would like a coffee.",
        "I like how you said it.",
        "I don't like it when people shout.",
        "I live in a small flat.",
        "call me back later",
        "I'm tired.",
        "```\nI live in Code\n```",
        "> I live in Quotes",
        'He wrote "I live in Quotation City" to me',
        "I live in " + "Xy" * 200,
        "",
    ],
)
def test_other_sentences_are_skipped(said: str) -> None:
    """Questions, suppositions, quotations, code and the assistant's answers are not facts."""
    assert extract([turn(said)]) == []


def test_text_below_a_quotation_counts() -> None:
    """A quotation ends with its line, and a page of empty lines is read quickly."""
    said = "> I live in Quotes\n  > and like tea" + "\n" * 200_000 + "I live in Rome."
    assert [draft.text for draft in extract([turn(said)])] == ["Lives in Rome."]


def test_the_last_fact_of_a_topic_counts() -> None:
    """Within a batch, a later fact replaces an earlier one with the same topic and names its own turn."""
    facts = to_facts(extract([turn("I live in Bonn.", 1), turn("I love olives.", 1), turn("I live in Berlin.", 2)]))
    assert [(fact.key, fact.text, fact.message_id) for fact in facts] == [
        ("home", "Lives in Berlin.", "msg_2"),
        ("opinion olives", "Likes olives.", "msg_1"),
    ]


def test_a_fact_without_a_topic_is_identified_by_its_words() -> None:
    """The same words in other case have the same key; other words have another."""
    one, two, other = (
        to_facts(extract([turn(said)]))[0].key
        for said in ("Remember that the KEY is red.", "remember that the key is red", "Remember that the key is blue.")
    )
    assert one == two
    assert one != other


@pytest.mark.parametrize("piece", ["“", "“x", "”“", '"', "`", "```", "> ", "\n>", " ", "a.", "I ", "I live in A "])
def test_long_texts_take_linear_time(piece: str) -> None:
    """The longest message that the API takes is read in a moment, whatever it repeats: the server waits for it."""
    began = time.process_time()
    extract([turn(piece * (1_000_000 // len(piece)))])
    assert time.process_time() - began < 5
