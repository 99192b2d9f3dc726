"""Commands that are said to only read change nothing when they run, and hidden writers are never among them."""

import hashlib
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.command_line import parse_command_line

TABLE = tomllib.loads((Path(__file__).parent / "command_lines" / "commands.toml").read_text(encoding="utf-8"))
READING = [row["run"] for rows in TABLE["commands"].values() for row in rows if row["is"].startswith("reads")]
ENDLESS = {row["run"] for row in TABLE["commands"]["without-end"]}
"""These fill memory as long as they run: a gigabyte a second, of a machine that has other tests to run."""


def take_snapshot(folder: Path) -> dict[str, str]:
    """Everything in a folder, by its path, but git's index, which `git status` refreshes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "index" and path.parent.name == ".git":
            continue
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {content}"
    return found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "tests").mkdir()
    for name in ("a", "b", "f", "x", "a.txt", "b.txt", "names", "README.md", "src/a.py", "src/x", "tests/t.py"):
        (folder / name).write_text(f"text of {name}\nb\na\n", encoding="utf-8")
    (folder / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("shell", [shell for shell in ("dash", "bash") if shutil.which(shell)])
async def test_commands_that_only_read_change_nothing(workspace: Path, shell: str) -> None:
    changed = []
    async with ShellSandbox(workspace, shell=str(shutil.which(shell))) as sandbox:
        await sandbox.run("true")  # the sandbox itself protects places by creating them
        before = take_snapshot(workspace)
        for text in READING:
            await sandbox.run(text, timeout=1.0 if text in ENDLESS else 10.0)
            if take_snapshot(workspace) != before:
                changed.append(text)
                before = take_snapshot(workspace)
    assert changed == []


WRAPPERS = st.sampled_from(
    [
        *("env {}", "timeout 5 {}", "nohup {}", "nice -n 5 {}", "command {}", "exec {}", "time {}", "stdbuf -oL {}"),
        *("({})", "{{ {}; }}", "ls; {}", "ls && {}", "ls || {}", "ls | {}", "{} | cat", "ls & {}", "! {}", "ls\n{}"),
        *(
            "if true; then {}; fi",
            "for i in 1; do {}; done",
            "while true; do {}; break; done",
            "case a in a) {};; esac",
        ),
        *(
            'echo "$({})"',
            "echo `{}`",
            "cat <({})",
            "eval '{}'",
            "sh -c '{}'",
            "bash -lc '{}'",
            "trap '{}' EXIT",
            "x=$({})",
        ),
        *("find . -exec {} \\;", "xargs {}", "find . -maxdepth 0 -execdir {} +", "cat <<E\n$({})\nE\n", "cd src && {}"),
        *("f() {{ {}; }}; f", "alias ls='{}'; ls", "LANG=C {}", "X=1 {}", "{} >/dev/null 2>&1", "{} <f", "sudo {}"),
        *("busybox sh -c '{}'", "flock f {}", "script -c '{}' f", "watch {}", "ssh h {}", "git -c alias.x='!{}' x"),
        *(
            "setsid {}",
            "env -i {}",
            "env -S '{}'",
            "env CI=1 {}",
            "[ -f x ] && {}",
            "cat f |& {}",
            "$({})",
            "echo ${{a:-$({})}}",
        ),
        *(
            "python3 -c 'import os; os.system(\"{}\")'",
            "awk 'BEGIN {{ system(\"{}\") }}'",
            "parallel ::: '{}'",
            "sed '1e {}' f",
        ),
        *("rg --pre '{}' x", "sort --compress-program='{}' f", "git grep -O'{}' x", "tar cf f --to-command='{}' x"),
    ]
)


@given(
    wrappers=st.lists(WRAPPERS, min_size=1, max_size=4), program=st.sampled_from(["rm canary", "\\rm canary", "'rm' c"])
)
@settings(max_examples=600, deadline=None)
def test_a_hidden_program_never_comes_out_as_reading(wrappers: list[str], program: str) -> None:
    text = program
    for wrapper in wrappers:
        inner = text
        if "'{}'" in wrapper:
            inner = text.replace("'", "'\\''")
        elif "`{}`" in wrapper:  # within backticks, others would end them
            inner = text.replace("\\", "\\\\").replace("`", "\\`")
        text = wrapper.format(inner)
    line = parse_command_line(text, "/workspace")
    assert not line.only_reads, line
    assert all(effect.words[:1] != ("rm",) or effect.kind != "read" for effect in line.effects)


@pytest.mark.parametrize("allowed", ["git status", "npm test", "ls", "cat f", "cd src"])
@given(wrappers=st.lists(WRAPPERS, min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_a_chain_is_not_covered_by_the_words_of_one_program(allowed: str, wrappers: list[str]) -> None:
    """Each effect that isn't reading carries the words of the hidden program, or none."""
    text = "rm canary"
    for wrapper in wrappers:
        text = wrapper.format(text.replace("'", "'\\''") if "'{}'" in wrapper else text)
    words = tuple(allowed.split())
    for joined in (f"{allowed}; {text}", f"{allowed} && {text}", f"{text} | {allowed}", f"{allowed} $({text})"):
        line = parse_command_line(joined, "/workspace")
        doing = [effect for effect in line.effects if effect.kind != "read"]
        assert any(effect.words != words for effect in doing), line
