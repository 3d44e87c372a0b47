"""Translates the store's SQL, which is SQLite's, for PostgreSQL.

The store keeps to what both understand; this file has what they do not share. Keywords are written in capital
letters and columns in small ones, so `end` is the column and `END` the keyword. Functions that only SQLite
has are defined in the database (FUNCTIONS).
"""

from __future__ import annotations

import re
from functools import lru_cache

# Of SQLite; PostgreSQL has aggregates named min and max, but no such functions of two values. A comparison
# with NULL is NULL, as in SQLite.
FUNCTIONS = (
    "CREATE FUNCTION min(double precision, double precision) RETURNS double precision LANGUAGE sql IMMUTABLE "
    "PARALLEL SAFE AS 'SELECT CASE WHEN $1 < $2 THEN $1 WHEN $2 <= $1 THEN $2 END'",
    "CREATE FUNCTION max(double precision, double precision) RETURNS double precision LANGUAGE sql IMMUTABLE "
    "PARALLEL SAFE AS 'SELECT CASE WHEN $1 > $2 THEN $1 WHEN $2 >= $1 THEN $2 END'",
    # The planner expects the comparisons themselves to hold for one row in 200, and then reads and sorts all
    # jobs of a user to show 50; a function of another language it expects to hold for a third.
    "CREATE FUNCTION is_job_number(job text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS "
    "$$ BEGIN RETURN length(job) BETWEEN 1 AND 10 AND job !~ '[^0-9]'; END $$",
    "CREATE FUNCTION json_valid(content text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN "
    "PERFORM content::json; RETURN content IS NOT NULL; EXCEPTION WHEN others THEN RETURN FALSE; END $$",
    "CREATE FUNCTION json_type(content text) RETURNS text LANGUAGE sql IMMUTABLE "
    "AS 'SELECT json_typeof(content::json)'",
    # the number at a path such as $.interval_ms
    "CREATE FUNCTION json_extract(content text, path text) RETURNS bigint LANGUAGE sql IMMUTABLE "
    "AS 'SELECT (content::json ->> substr(path, 3))::numeric::bigint'",
)
# Columns that are numbers 0 and 1 in SQLite.
FLAGS = ("out_of_memory", "provisional", "mail")
_RESERVED = ("user", "end", "array")  # words that PostgreSQL does not take as names of columns unquoted
_PHRASES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # a column of a declared type holds that type or nothing
        (r"typeof\(([\w.]+)\) != '(?:text|integer|blob)'", r"(\1 IS NULL)"),
        (r"typeof\(([\w.]+)\) = '(?:text|integer|blob)'", r"(\1 IS NOT NULL)"),
        (r" INDEXED BY \w+", ""),
        (r"length\((\w+)\) BETWEEN 1 AND 10 AND \w+ NOT GLOB '\*\[\^0-9\]\*'", r"is_job_number(\1)"),
        (r"(?<= )\+(?=[a-z])", ""),  # tells SQLite not to use an index
        (re.escape("CAST(strftime('%s', 'now') AS REAL)"), "floor(extract(epoch FROM now()))::float8"),
        (r" LIKE ", " ILIKE "),  # SQLite's ignores the case
        (r"\bIS (?=[?:]|excluded\.)", "IS NOT DISTINCT FROM "),
        (r"FROM json_each\(([^)]+)\)", r"FROM json_array_elements_text((\1)::json)"),
    )
)  # fmt: skip
_TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')|(?P<quoted>\"[^\"]*\")|(?P<cast>::)|(?P<place>\?)|:(?P<name>[a-z_]\w*)"
    rf"|(?P<percent>%)|\b(?P<reserved>{'|'.join(_RESERVED)})\b"
)
_TYPES = (
    (re.compile(r"--[^\n]*"), ""),
    (re.compile(r"\s+WITHOUT ROWID"), ""),
    (re.compile(rf"\b({'|'.join(FLAGS)}) INTEGER NOT NULL DEFAULT 0"), r"\1 BOOLEAN NOT NULL DEFAULT FALSE"),
    (re.compile(rf"\b({'|'.join(FLAGS)}) INTEGER NOT NULL DEFAULT 1"), r"\1 BOOLEAN NOT NULL DEFAULT TRUE"),
    (re.compile(r"\bTEXT\b"), 'TEXT COLLATE "C"'),  # compared byte by byte, as SQLite does
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bREAL\b"), "DOUBLE PRECISION"),
)


@lru_cache(2048)
def translated(sql: str) -> str:
    """A statement of the store for psycopg, with its places for parameters."""
    for pattern, replacement in _PHRASES:
        sql = pattern.sub(replacement, sql)
    return _TOKEN.sub(_token, sql)


def translated_schema(statement: str) -> str:
    """A statement of schema.VERSIONS."""
    for pattern, replacement in _TYPES:
        statement = pattern.sub(replacement, statement)
    return translated(statement)


def _token(match: re.Match[str]) -> str:
    kind, token = match.lastgroup, match[0]
    if kind == "place":
        return "%s"
    if kind == "name":
        return f"%({match['name']})s"
    if kind == "reserved":
        return f'"{token}"'
    return token.replace("%", "%%")
