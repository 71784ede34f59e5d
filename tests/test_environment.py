"""Three layers of environment, merged by exact name. SPEC §defaults."""

from pathlib import Path

import pytest

from app.environment import Environment, load

SHIPPED = "# comment\nPLURNK_HOST=127.0.0.1\nPLURNK_HOME=\n"


def loaded(tmp_path: Path, local: str | None, process: dict[str, str]) -> Environment:
    if local is not None:
        (tmp_path / ".env").write_text(local)
    return load(process, tmp_path, SHIPPED)


@pytest.mark.spec("defaults")
def test_later_layers_win_by_exact_name(tmp_path: Path) -> None:
    merged = loaded(
        tmp_path, "PLURNK_HOST=h2\nA=local\nB=local\na=lower\n", {"PLURNK_HOST": "h3", "B": "process"}
    )
    assert dict(merged.values) == {"PLURNK_HOST": "h3", "A": "local", "B": "process", "a": "lower"}
    assert merged.explicit == {"PLURNK_HOST", "A", "B", "a"}


@pytest.mark.spec("defaults")
def test_what_only_the_shipped_file_says_is_not_explicit(tmp_path: Path) -> None:
    merged = loaded(tmp_path, None, {})
    assert (dict(merged.values), merged.explicit, merged.faults) == (
        {"PLURNK_HOST": "127.0.0.1"},
        frozenset(),
        (),
    )


@pytest.mark.spec("defaults")
def test_an_empty_value_unsets_what_an_earlier_layer_gave(tmp_path: Path) -> None:
    merged = loaded(tmp_path, "A=x\nPLURNK_HOST=\n", {"A": "", "PLURNK_PORT": ""})
    assert (dict(merged.values), merged.explicit) == ({}, frozenset())


@pytest.mark.spec("references")
def test_an_empty_value_that_unsets_nothing_is_set_and_empty_for_references(tmp_path: Path) -> None:
    merged = loaded(tmp_path, "E1=\n", {"E1": "", "E2": ""})
    assert (dict(merged.values), merged.explicit) == (
        {"PLURNK_HOST": "127.0.0.1", "E1": "", "E2": ""},
        frozenset(),
    )


@pytest.mark.spec("defaults")
def test_the_grammar_is_dotenvs_without_interpolation(tmp_path: Path) -> None:
    local = (
        "\ufeff# c\r\nexport A = plain # comment\r\nB='single ${A} \\' q'\nC=\"two\\nlines\"\n"
        'D=${A}$A\nE=["a", "b"]\nF\nA=last\n'
    )
    merged = loaded(tmp_path, local, {})
    assert merged.faults == ()
    assert dict(merged.values) == {
        "PLURNK_HOST": "127.0.0.1",
        "A": "last",
        "B": "single ${A} ' q",
        "C": "two\nlines",
        "D": "${A}$A",
        "E": '["a", "b"]',
    }


@pytest.mark.spec("defaults")
def test_lines_end_as_on_any_system(tmp_path: Path) -> None:
    merged = loaded(tmp_path, 'A="two\r\nlines"\r\nB=1\rC=2\n', {})
    assert (merged.values["A"], merged.values["B"], merged.values["C"]) == ("two\nlines", "1", "2")


@pytest.mark.spec("defaults")
def test_a_line_that_is_none_is_a_fault_by_number_without_its_text(tmp_path: Path) -> None:
    merged = loaded(tmp_path, "A=1\n\n\ncanary value\nB='unclosed canary\nC=3\n", {})
    assert merged.faults == (".env: line 4 is no NAME=value", ".env: line 5 is no NAME=value")
    assert (merged.values["A"], merged.values["C"]) == ("1", "3")


@pytest.mark.spec("defaults")
def test_a_file_that_is_not_text_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    assert load({}, tmp_path, SHIPPED).faults == (".env: is not UTF-8 text",)


@pytest.mark.spec("defaults")
def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to(tmp_path / ".env")
    (fault,) = load({}, tmp_path, SHIPPED).faults
    assert fault.startswith(".env: cannot be read")


@pytest.mark.spec("defaults")
def test_a_directory_of_that_name_is_no_file(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load({}, tmp_path, SHIPPED).faults == ()
    assert load({}, tmp_path / "absent", SHIPPED).faults == ()


@pytest.mark.spec("defaults")
def test_the_processs_own_environment_is_not_changed_and_no_value_is_shown(tmp_path: Path) -> None:
    process = {"A": "canary", "PLURNK_HOST": ""}
    merged = loaded(tmp_path, "A=x\nB=y\n", process)
    assert process == {"A": "canary", "PLURNK_HOST": ""}
    assert repr(merged) == "Environment(2 names)"
