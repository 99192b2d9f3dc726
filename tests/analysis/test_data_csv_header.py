"""The first line of CSV is its header where it looks like names, and only there: by shapes that public data have."""

from pathlib import Path

import duckdb
import pytest

from ferrule.analysis.data.child.ferrule_tables.csv_lines import (
    IrregularLines,
    Lines,
    inspect_irregular,
    inspect_regular,
    name_columns,
)

HEADERS = {
    "years": "country,2019,2020,2021\nFrance,1.2,3.4,5.6\nItaly,2.1,4.3,6.5\n",
    "years over rows that are sequences": "country,2019,2020,2021\nFrance,1,2,3\nItaly,4,5,6\n",
    "years over numbers that may be years": "region,2019,2020,2021\nNorth,1800,1750,1900\nSouth,2100,1650,1720\n",
    "years over counts that rise as years do": "city,2019,2020,2021\nBath,2013,2055,2078\nElys,1999,2003,2010\n",
    "years, the latest first": "country,2021,2020,2019\nFrance,12,11,15\nItaly,7,9,8\n",
    "years of no equal distance": "country,1990,2000,2015,2021\nFrance,12,11,15,1\nItaly,7,9,8,2\n",
    "one year": "Country,2020\nFrance,67.4\nItaly,59\n",
    "years as floats": "country,2019.0,2020.0\nFrance,12,11\nItaly,7,9\n",
    "quoted years": '"country","2019","2020"\n"France","12","11"\n"Italy","7","9"\n',
    "years after several names": (
        "Country Name,Country Code,Indicator Name,Indicator Code,1960,1961,1962,\n"
        'Aruba,ABW,"Population, total",SP.POP.TOTL,54208,55434,56234,\nAngola,AGO,"Population, total",SP.POP.TOTL,,,,\n'
    ),
    "years over empty columns": "Code;Actie;2014;2015\nBP-1;Investeringen;€ 0.00;\nBP-2;Onderhoud;€ 12.50;\n",
    "years after a text with a backslash": "geo\\time\t2019 \t2020 \nAT\t402767.1 \t429634.3 p\nDE\t3591874.0\t: \n",
    "German years": "Land;2019;2020;2021\nBayern;1,5;2,5;3\nHessen;4;5,25;6\n",
    "financial years": "department,2019/20,2020/21\nHealth,120.5,130\nDefence,40,41.5\n",
    "financial years with a dash": "department,2019-20,2020-21\nHealth,120.5,130\nDefence,40,41.5\n",
    "quarters": "region,2019Q1,2019Q2\nNorth,5,6\nSouth,7,8\n",
    "months": "country,2020-01,2020-02\nFrance,5,6\nItaly,7,8\n",
    "months as numbers": "store,202001,202002,202003\nA,15,16,12\nB,17,18,11\n",
    "months with the year last": "country;01/2020;02/2020\nFrance;5,1;6\nItaly;7;8\n",
    "ISO dates": "country,2020-01-22,2020-01-23\nFrance,5,6\nItaly,7,8\n",
    "dates of two digits": "Province,Country,1/22/20,1/23/20\n,France,5,6\n,Italy,7,8\n",
    "dates with names of months": "fund,31-Dec-2020,31-Dec-2021\nA,5.1,6.2\nB,7,8\n",
    "times of day": "room,10:00,11:00\nA,5,6\nB,7,8\n",
    "ranges of ages": "region,0-17,18-64\nNorth,5,6\nSouth,7,8\n",
    "numbers from 1": "Name,1,2,3,4,5,6\nSparta,5,4,5,3,4,6\nOlympia,6,6,5,4,4,3\n",
    "numbers from 0": "weekday,0,1,2,3\nMonday,15,4,35,6\nTuesday,8,9,10,40\n",
    "quantiles": "model,0.2,0.4,0.6,0.8\nA,2.2,3.1,4.7,5\nB,1.9,3.3,5.2,5.9\n",
    "lags": "event,-2,-1,0,1,2\nA,0.1,0.3,0.9,0.4,0.2\nB,0.2,0.1,1.1,0.6,0.5\n",
    "hours of a measurement": "gene,0,6,12,24\nBRCA1,1.52,2.14,0.83,1.97\nTP53,0.41,0.92,3.18,2.55\n",
    "an index as pandas writes it": ",0,1,2\n0,1.5,2.5,0.5\n1,0.25,3.5,2.5\n",
    "no index, as pandas writes it": "0,1,2\n1.5,2.5,0.5\n0.25,3.5,2.5\n",
    "an index and codes": ",1001,1040\nFrance,5,6\nItaly,7,8\n",
    "an index and names": ",city,n\n0,Rome,5\n1,Oslo,6\n",
    "years alone": "2019,2020,2021\n12.5,13.5,9\n14,11,8.5\n",
    "numeric ids": "id,2019,2020\n1,5,6\n2,7,8\n",
    "dates in the first column": "date,2019,2020\n2024-01-01,5,6\n2024-01-02,7,8\n",
    "words only": "name,city\nAnna,Berlin\nBob,Paris\n",
    "words and an empty name": "Region,,Series\nAfrica,Total,Population\nAsia,Total,Population\n",
    "yes and no as names": "question,Yes,No\nQ1,12,30\nQ2,14,28\n",
    "booleans below": "name,active\nAnna,true\nBob,false\n",
    "a line that comes again": "name,city\nAnna,Berlin\nname,city\nBob,Paris\n",
    "money below": "item,price\napple,$5.00\npear,$3.50\n",
    "no rows": "country,2019,2020\n",
}
NO_HEADERS = {
    "numbers": "1,2.5,3\n2,3.5,1\n3,4.5,2\n",
    "text and numbers": "France,67.4,12\nItaly,59,11\nSpain,47,9\n",
    "text and counts that rise": "France,10,20\nItaly,7,5\n",
    "years below, too": "Mozart,1756,1791\nBach,1685,1750\nHaydn,1732,1809\n",
    "a year in each line": "France,2019,12\nItaly,2020,11\nSpain,2021,9\n",
    "ISO dates": "2024-01-01,5\n2024-01-02,6\n2024-01-03,7\n",
    "times with zones": "2024-01-02T10:00:00Z,login\n2024-01-02T10:05:00Z,logout\n",
    "dates with names of months": "Anna,31-Jan-2024\nBob,12-Feb-2024\n",
    "scores": "Arsenal,2-1,0-0\nChelsea,1-1,3-2\n",
    "answers that are a sequence by chance": "Anna,1,2,3\nBob,2,2,1\nCarl,3,1,1\n",
    "lines that all are sequences": "1,2,3\n4,5,6\n7,8,9\n",
    "numbers with exponents": "5.185e-02,4.861e-02\n-3.234e-01,-8.578e-01\n",
    "infinite numbers": "inf,1.5\n2.5,1.5\n",
    "booleans": "Anna,true\nBob,false\n",
    "missing values above numbers": "Anna,n/a\nBob,5\nCarl,6\n",
    "placeholders above numbers": "Anna,-\nBob,5\nCarl,6\n",
    "money": "apple,$5.00\npear,$3.50\n",
    "words that come again": "North,Anna\nSouth,Bob\nNorth,Carl\n",
    "addresses": "anna@example.org,Berlin\nbob@example.org,Paris\n",
    "log lines": "192.168.0.1,GET,/index.html,200\n192.168.0.7,GET,/about.html,404\n",
    "German numbers": "Bayern;1,5;2,5\nHessen;4,25;5\n",
    "one column of numbers": "2019\n5\n6\n",
}


def inspect(path: Path) -> Lines:
    try:
        return inspect_regular(duckdb.connect(), str(path))
    except IrregularLines:
        return inspect_irregular(str(path))


@pytest.mark.parametrize("ending", ["", "left over,,,\n"], ids=["regular", "irregular"])
def test_a_first_line_of_names_is_the_header_and_no_other(tmp_path: Path, ending: str) -> None:
    path, wrong = tmp_path / "t.csv", []
    for has_header, shapes in ((True, HEADERS), (False, NO_HEADERS)):
        for name, text in shapes.items():
            separator = next((one for one in ";\t" if one in text.splitlines()[0]), ",")
            path.write_text(text + ending.replace(",", separator) * (name != "no rows"))
            lines = inspect(path)
            first = [cell.strip().strip('"') for cell in text.splitlines()[0].split(separator)]
            names = name_columns(lines)[0][: len(first)]
            expected = [cell or f"column{place}" for place, cell in enumerate(first)] if has_header else None
            if lines.has_header is not has_header or expected not in (None, names):
                wrong.append((name, lines.has_header, names))
    assert not wrong


TITLED = {
    "a title filled up with separators": "Sales report,,\n,,\nregion,2019,2020\nNorth,5,6\nSouth,7,8\n",
    "a title above": "Sales report\n\nregion,2019,2020\nNorth,5,6\nSouth,7,8\n",
    "what Excel writes above": "sep=,\nregion,2019,2020\nNorth,5,6\nSouth,7,8\n",
}


@pytest.mark.parametrize("name", TITLED)
def test_a_title_is_no_header(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_text(TITLED[name])
    lines = inspect(tmp_path / "t.csv")
    assert lines.header == ["region", "2019", "2020"]
    title = TITLED[name].partition("\n")[0].strip(",")
    assert f'above the header isn\'t part of the table: "{title}"' in lines.notes[-1]


COMMENTED = {
    "as many cells": "# made 2024-05-01\n# rates, per day\nid,rate\nA,1.5\nB,2\n",
    "more cells": "# Source: survey, 2024, rates\nid,rate\nA,1.5\nB,2\n",
    "fewer cells": "# rates, per day\nid,rate,n\nA,1.5,2\nB,2,3\n",
    "above text": "# Source: survey, 2024, towns\nid,town\nA,Bath\nB,Ely\n",
    "semicolons": "# Source; survey; 2024\nid;rate\nA;1,5\nB;2,5\n",
}


@pytest.mark.parametrize("name", COMMENTED)
def test_a_comment_is_no_header(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_text(COMMENTED[name])
    lines = inspect(tmp_path / "t.csv")
    comments = COMMENTED[name].count("#")
    assert lines.header[0] == "id"
    assert lines.first_line == comments + 2
    assert f"{comments} line" in lines.notes[-1]


@pytest.mark.parametrize("text", ["#id,v\nA,unknown\nB,2\nC,3\nD,4\nE,5\n", "# a,b\n1,2\n3,4\n", "#,name\n1,Bob\n"])
def test_names_after_a_hash_are_the_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert inspect(tmp_path / "t.csv").header == text.partition("\n")[0].split(",")


def test_years_below_names_with_gaps_are_joined_with_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("country,Exports,,Imports,\n,2019,2020,2019,2020\nFrance,1,2,3,4\nItaly,5,6,7,8\n")
    lines = inspect(tmp_path / "t.csv")
    assert lines.header == ["country", "Exports 2019", "Exports 2020", "Imports 2019", "Imports 2020"]


def test_a_header_with_numbers_is_named_in_a_note(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADERS["years"])
    assert inspect(tmp_path / "t.csv").notes == [
        "the first line is taken as the header, though it has numbers such as '2019'"
    ]
    (tmp_path / "t.csv").write_text(HEADERS["numeric ids"])
    assert inspect(tmp_path / "t.csv").notes == []
