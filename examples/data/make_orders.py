#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the quickstart's data: orders in plain words, and what they say in four columns.

    make_orders.py [FOLDER]      writes orders_prompt.txt, orders_questions.tsv and orders_vote.tsv

An order is drawn by SHA-256 from the name of its stream and its number, so the files are the same
on every machine. The streams: `example` (the worked examples of the prompt), `question` (the ten
orders that the quickstart asks about), `vote` (those that self_consistency asks about, of words
that no worked example has) and `development` (the orders by which the wording was chosen, see
README.md). No order comes up twice, in no stream.
"""

import hashlib
import pathlib
import sys

NAMES = ["Anna", "Boris", "Clara", "David", "Elena", "Felix", "Grace", "Henry",
         "Irene", "Jonas", "Karin", "Louis", "Maria", "Nadia", "Oscar", "Paula"]
ITEMS = ["lamps", "chairs", "tables", "mirrors", "candles", "blankets", "baskets", "shelves",
         "kettles", "pillows", "clocks", "carpets", "bottles", "plates", "towels", "curtains"]
CITIES = ["Oslo", "Paris", "Madrid", "Vienna", "Dublin", "Lisbon", "Prague", "Berlin",
          "Warsaw", "Athens", "Rome", "Zurich", "Helsinki", "Brussels", "Stockholm", "Geneva"]
# Words that no worked example has, for the stream `vote`.
NEW_NAMES = ["Yusuf", "Ingrid", "Tomasz", "Chidi", "Leilani", "Bartholomew", "Siobhan", "Guadalupe",
             "Kwame", "Anastasia", "Dmitri", "Fatima", "Hiroshi", "Nkechi", "Rosalind", "Thaddeus"]
NEW_ITEMS = ["umbrellas", "wheelbarrows", "accordions", "thermometers", "saucepans", "hammocks",
             "typewriters", "lanterns", "binoculars", "tablecloths", "bookshelves", "trampolines",
             "extension cords", "garden hoses", "harmonicas", "screwdrivers"]
NEW_CITIES = ["Reykjavik", "Tallinn", "Ljubljana", "Bratislava", "Thessaloniki", "Gothenburg",
              "Sarajevo", "Valletta", "Cluj", "Porto", "Bilbao", "Antwerp", "Leipzig", "Graz",
              "Aarhus", "Tampere"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
# Three of the five name somebody who is not the customer, which takes examples to learn.
PATTERNS = [
    "Please send {quantity} {item} to {name} in {city}; they are needed on {day}.",
    "A message from {other_name}: {quantity} {item} go to {name} in {city} by {day}.",
    "{other_name} called: {quantity} {item} for {name}, not later than {day}, to {city}.",
    "{other_name} in {other_city} wrote that {name} in {city} needs {quantity} {item} on {day}.",
    "{name} from {city} would like {quantity} {item} by {day}.",
]

INSTRUCTION = ("Each order below is followed by its result: the customer's name, the quantity and "
               "the item, the city, and the day, separated by bars.\n")
EXAMPLES = 96
QUESTIONS = 10
VOTES = 30


def draw(stream: str, number: int) -> dict:
    """The number-th order of a stream."""
    def pick(field: str, count: int) -> int:
        digest = hashlib.sha256(f"{stream}/{number}/{field}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % count

    def other(field: str, words: list, word: str) -> str:
        return words[(words.index(word) + 1 + pick(field, len(words) - 1)) % len(words)]

    new = stream == "vote"
    names = NEW_NAMES if new else NAMES
    items = NEW_ITEMS if new else ITEMS
    cities = NEW_CITIES if new else CITIES
    fields = {
        "name": names[pick("name", len(names))],
        "quantity": 2 + pick("quantity", 98),
        "item": items[pick("item", len(items))],
        "city": cities[pick("city", len(cities))],
        "day": DAYS[pick("day", len(DAYS))],
    }
    fields["other_name"] = other("other_name", names, fields["name"])
    fields["other_city"] = other("other_city", cities, fields["city"])
    return {"order": PATTERNS[pick("pattern", len(PATTERNS))].format(**fields),
            "result": "{name} | {quantity} {item} | {city} | {day}".format(**fields)}


def take(stream: str, count: int, seen: set) -> list:
    """The first `count` orders of a stream whose result has not come up before."""
    orders, number = [], 0
    while len(orders) < count:
        order = draw(stream, number)
        number += 1
        if order["result"] not in seen:
            seen.add(order["result"])
            orders.append(order)
    return orders


def static_text(examples: list) -> str:
    """The prompt up to where the new order begins."""
    return INSTRUCTION + "".join(
        f"\nOrder: {each['order']}\nResult: {each['result']}\n" for each in examples)


def write_questions(path: pathlib.Path, questions: list) -> None:
    path.write_text("".join(f"{each['order']}\t{each['result']}\n" for each in questions),
                    encoding="utf-8")


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    seen = set()
    examples = take("example", EXAMPLES, seen)
    (folder / "orders_prompt.txt").write_text(static_text(examples), encoding="utf-8")
    write_questions(folder / "orders_questions.tsv", take("question", QUESTIONS, seen))
    write_questions(folder / "orders_vote.tsv", take("vote", VOTES, seen))


if __name__ == "__main__":
    main()
