import tomllib

from hypothesis import given
from hypothesis import strategies as st

from pipeline.spec.documents import read_toml, read_yaml

TOML = '''\
# top = "not this one"
top = 1

[a]            # a table
"quoted key" = 1
b.c = 2
text = """
[a]
d = 3
"""
list = [
  10,  # ]
  20, 30,

  40
]
inline = { x = 1, y = [1, 2] }
tables = [
  { to = 1 },
  { to = 2 },
]
[[a.many]]
to = 1
[[a.many]]
to = 2
[a.many.sub]
to = 3
[[a.many.subs]]
to = 4
[[a.many.subs]]
to = 5
[d.e]
f = 6
'''

PLACES = {
    ("top",): 2,
    ("a",): 4,
    ("a", "quoted key"): 5,
    ("a", "b"): 6,
    ("a", "b", "c"): 6,
    ("a", "text"): 7,
    ("a", "list"): 11,
    ("a", "list", 0): 12,
    ("a", "list", 1): 13,
    ("a", "list", 2): 13,
    ("a", "list", 3): 15,
    ("a", "inline", "x"): 17,
    ("a", "inline", "y", 1): 17,
    ("a", "tables", 1): 20,
    ("a", "tables", 1, "to"): 20,
    ("a", "many"): 22,
    ("a", "many", 0): 22,
    ("a", "many", 0, "to"): 23,
    ("a", "many", 1): 24,
    ("a", "many", 1, "to"): 25,
    ("a", "many", 1, "sub"): 26,
    ("a", "many", 1, "sub", "to"): 27,
    ("a", "many", 1, "subs", 1): 30,
    ("a", "many", 1, "subs", 1, "to"): 31,
    ("d", "e"): 32,
    ("d", "e", "f"): 33,
    ("a", "d"): None,
    ("nowhere",): None,
    ("a", "many", 2): None,
    (): None,
}


def test_each_part_of_a_toml_text_is_found_on_its_line():
    document = read_toml(TOML)
    assert {place: document.line_of(place) for place in PLACES} == PLACES


def test_each_part_of_a_yaml_text_is_found_on_its_line():
    document = read_yaml("# c\na:\n  b: [1,\n    x]\n  c:\n  - d: 1\n    e: 010\n")
    assert document.data == {"a": {"b": [1, "x"], "c": [{"d": 1, "e": 10}]}}
    places = {("a",): 2, ("a", "b"): 3, ("a", "b", 1): 4, ("a", "c", 0): 6, ("a", "c", 0, "e"): 7, ("z",): None}
    assert {place: document.line_of(place) for place in places} == places


@st.composite
def texts(draw):
    """A TOML text and the line of each of its places, known from writing it."""
    lines, places = [], {}
    filler = st.lists(st.sampled_from(["", "# a = [", "  # ] }", "#[x]"]), max_size=2)
    for table in draw(st.lists(st.sampled_from("ABC"), max_size=3, unique=True)):
        for index in range(draw(st.integers(1, 3))):
            lines += [*draw(filler), f"[[{table}]]"]
            places[table, index] = len(lines)
            for key in draw(st.lists(st.sampled_from("xyz"), max_size=3, unique=True)):
                lines += draw(filler)
                places[table, index, key] = len(lines) + 1
                items = draw(st.lists(st.sampled_from(["1", '"] }"', "'''#'''", "[2]"]), max_size=4))
                if not draw(st.booleans()):
                    lines.append(f"{key} = [{', '.join(items)}]")
                    places |= {(table, index, key, item): len(lines) for item in range(len(items))}
                    continue
                lines.append(f"{key} = [")
                for item, text in enumerate(items):
                    lines += [*draw(filler), f"{text},"]
                    places[table, index, key, item] = len(lines)
                lines.append("]")
    return "\n".join(lines), places


@given(texts())
def test_lines_are_found_whatever_stands_between(written):
    text, places = written
    document = read_toml(text)
    assert document.data == tomllib.loads(text)
    assert {place: document.line_of(place) for place in places} == places


def test_a_mistake_in_a_long_list_is_found_without_parsing_it_once_a_line(monkeypatch):
    ids = "\n".join(f"  {each}," for each in range(1, 5001))
    document = read_toml(f"[properties]\nids = [\n{ids}\n]\n")
    parsed = []
    parse = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or parse(text))
    assert document.line_of(("properties", "ids", 4900)) == 4903
    assert len(parsed) < 30


def test_a_list_written_to_be_parsed_again_at_each_line_gets_no_lines(monkeypatch):
    document = read_toml("a = [\n" + "[1],\n" * 5_000 + "]\n")
    parsed = []
    parse = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(len(text)) or parse(text))
    assert document.line_of(("a", 4_900)) is None
    assert sum(parsed) < 5_000_000
