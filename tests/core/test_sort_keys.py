"""The key that names are sorted by: marks and case are folded, in any locale of the server."""

from __future__ import annotations

import unicodedata

import pytest
from sqlalchemy import ARRAY, Text, column, func, literal, select

from school_service.core.database import db
from school_service.core.sort_keys import sort_key
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding

NAMES = [
    "Abdul",
    "ABE",
    "Àbẹ̀kẹ́",
    "Abel",
    "Ɓala",
    "Bello",
    "D'Almeida",
    "D\u2019Almeida",
    "Danjuma",
    "Ɗankwambo",
    "Dantata",
    "Ɗantata",
    "dantiye",
    "Ekwueme",
    "Ẹlẹ́yẹlé",
    "Étienne",
    "Iwu",
    "Ìyá",
    "Ƙaura",
    "Kazaure",
    "Ŋa",
    "Nwosu",
    "Ṅwosu",
    "Ogunleye",
    "Ògúnlẹ́yẹ",
    "Ọ̀gúnlẹ́yẹ",
    "OGUNLEYE",
    "Ogunmola",
    "Østergaard",
    "Şahin",
    "Saidu",
    "Sharif",
    "Ṣọlá",
    "Strasse",
    "Straße",
    "Strauss",
    "Yakubu",
    "Ƴan Leman",
    "Zubair",
    "Δημήτρης",
    "δρόσος",
    "Иван",
    "иванов",
]


@pytest.fixture(autouse=True)
def in_school(api):
    """A transaction in a school."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        yield


def keys(*names):
    """Compute the keys of names, each a text or a tuple of texts, in one statement."""
    columns = [
        sort_key(*(literal(part, Text) for part in ([name] if isinstance(name, str) else name)))
        for name in names
    ]
    return list(db.session.execute(select(*columns)).one())


def keys_of_texts(names):
    """Compute the keys of texts, by one expression for all."""
    name, texts = column("name", Text), literal(list(names), ARRAY(Text))
    given = func.unnest(texts).table_valued(name, with_ordinality="place", name="given").render_derived()
    return list(db.session.scalars(select(sort_key(given.c.name)).order_by(given.c.place)))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_in_the_order_of_their_letters(form):
    sort_keys = keys(*(unicodedata.normalize(form, name) for name in NAMES))

    assert sort_keys == sorted(sort_keys)
    assert sort_keys[NAMES.index("Ogunleye")] == sort_keys[NAMES.index("Ọ̀gúnlẹ́yẹ")]


def test_postgresql_sorts_the_keys_as_python_does(api):
    names = [*NAMES, "a b", "a-b", "ab", "a\U0001e900", "日本", "٣", "~"]
    sort_keys = keys(*names)
    table = select(literal(sort_keys[0], Text).label("key")).union_all(
        *(select(literal(key, Text)) for key in sort_keys[1:])
    )
    listed = table.subquery().c.key

    # As the column and the expression do, without a collation of the server's.
    order = select(listed).order_by(listed.collate("C"))
    assert list(db.session.scalars(order)) == sorted(sort_keys)
    assert 'COLLATE "C"' in str(sort_key(column("name", Text)))


def test_composed_and_decomposed_and_capitals_are_one():
    for name in NAMES:
        forms = {unicodedata.normalize(form, name) for form in ("NFC", "NFD", "NFKC", "NFKD")}
        forms |= {name.upper() if "ß" not in name else name, name.swapcase() if "ß" not in name else name}
        assert len(set(keys(*forms))) == 1, name


def test_a_capital_has_the_key_of_its_small_letter():
    scripts = [range(0x41, 0x250), range(0x370, 0x530), range(0x531, 0x557), range(0x1E00, 0x1EFA)]
    letters = [chr(code) for script in scripts for code in script if chr(code).isupper()]
    together = "".join(letters[:300])
    sort_keys = keys_of_texts([together, together.lower(), *letters, *map(str.lower, letters)])
    capitals, small = sort_keys[2 : 2 + len(letters)], sort_keys[2 + len(letters) :]

    assert sort_keys[0] == sort_keys[1]
    differing = [letter for letter, key, other in zip(letters, capitals, small, strict=True) if key != other]
    assert differing == []


def test_the_last_name_counts_before_the_first():
    pairs = [("Ade", "Zainab"), ("Adé", "Zubair"), ("Ade Ojo", "Bola"), ("Ade-Ojo", "Ada"), ("Adeojo", "Ada")]

    assert keys(*pairs) == sorted(keys(*pairs))


def test_a_key_is_never_longer_than_an_index_takes():
    longest = max(len(key.encode()) for key in keys(("\ufdfa" * 120, "\ufdfa" * 120), "\U0001e922" * 120))

    assert longest <= 1600


def test_the_empty_name_has_a_key():
    assert keys("", ("", "")) == ["", "\x01"]
