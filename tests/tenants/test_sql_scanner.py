"""Reading SQL text: nothing within a literal, a quoted name or a comment is taken for a word or an end."""

import pytest

from tenants.sql_scanner import Token, statements


def texts(sql):
    return [statement.text for statement in statements(sql)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a;b'",
        "SELECT 'it''s;'",
        r"SELECT E'it\'s;'",
        "SELECT $$;$$",
        "SELECT $body$ $$ ; $body$",
        'SELECT ";" FROM "a"";"',
        "SELECT 1 /* ; */ + 1",
        "SELECT 1 /* /* ; */ ; */ + 1",
        "SELECT 1 -- ;\n+ 1",
        "SELECT U&'\\0441;'",
        "CREATE RULE r AS ON DELETE TO t DO (DELETE FROM a; DELETE FROM b)",
        "SELECT a$b$;c$b$".replace(";", "_"),
        "SELECT 'Ẹ̀kọ́;'",
    ],
)
def test_no_statement_ends_within(sql):
    assert texts(f"{sql};\n\nSELECT 2") == [sql, "SELECT 2"]


def test_a_literal_is_kept_as_it_is():
    literal = "'two  \n\n lines;\n\n and 100%'"

    assert texts(f"UPDATE t  \nSET a = {literal}  \n;") == [f"UPDATE t\nSET a = {literal}"]


@pytest.mark.parametrize("sql", ["", ";", " ;; \n", "-- nothing", "/* ; */ ;"])
def test_an_empty_text_holds_no_statement(sql):
    assert texts(sql) == []


def test_comments_around_a_statement_are_none_of_it():
    sql = "-- head\n/* of */ SELECT 1 -- tail\n; -- end\nSELECT 2 -- it's all; really"

    assert texts(sql) == ["SELECT 1", "SELECT 2"]


def test_words_are_folded_and_quoted_names_are_not():
    (statement,) = statements("""select "select", x.Y, 'select', "a""b", 1.5::text, $1""")

    assert statement.tokens == (
        Token("word", "SELECT"),
        Token("name", "select"),
        Token("symbol", ","),
        Token("word", "X"),
        Token("symbol", "."),
        Token("word", "Y"),
        Token("symbol", ","),
        Token("literal", "'select'"),
        Token("symbol", ","),
        Token("name", 'a"b'),
        Token("symbol", ","),
        Token("literal", "1.5"),
        Token("symbol", "::"),
        Token("word", "TEXT"),
        Token("symbol", ","),
        Token("symbol", "$"),
        Token("literal", "1"),
    )


@pytest.mark.parametrize("sql", ["SELECT 'a", 'SELECT "a', "SELECT 1 /* a", "SELECT /* /* */"])
def test_a_literal_name_or_comment_without_an_end_is_refused(sql):
    with pytest.raises(ValueError, match="No end of"):
        statements(sql)
