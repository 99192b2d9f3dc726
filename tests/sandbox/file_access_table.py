"""Paths, and whether they may be read and written: one table for the file tools and for commands in the sandbox."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY = "-----BEGIN PRIVATE KEY-----\nsecret\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\npublic\n"


@dataclass(frozen=True)
class Row:
    """`read` and `write`: whether file tools may. A command may do the same unless `command` says otherwise."""

    path: str
    read: bool
    write: bool
    command: tuple[bool, bool] | None = None
    why: str = ""

    def __str__(self) -> str:
        return ascii(self.path)[1:-1][:60]


def no(*paths: str) -> list[Row]:
    return [Row(path, False, False) for path in paths]


def read_only(*paths: str) -> list[Row]:
    return [Row(path, True, False) for path in paths]


def yes(*paths: str) -> list[Row]:
    return [Row(path, True, True) for path in paths]


def can_be_made(*paths: str) -> list[Row]:
    return [Row(path, False, True) for path in paths]


def unlike(command: tuple[bool, bool], why: str, *paths: str) -> list[Row]:
    return [Row(path, False, False, command, why) for path in paths]


ROWS: list[Row] = [
    # Ordinary files, by every way that leads to them.
    *yes(
        "plain.txt",
        "./plain.txt",
        "sub/../plain.txt",
        "sub/deep/plain.txt",
        "{workspace}/plain.txt",
        "sub//deep/plain.txt",
    ),
    *yes("link.txt", "link-absolute.txt", "linked-folder/plain.txt", "link-to-link.txt"),
    *yes("hard-link.txt", "new\nline.txt", "-rf", "*", "ünï.txt", "a b.txt", "$(touch x).txt", "\udcff.txt"),
    *yes(".gitignore", ".github/workflow.yml", "environment.env", "git/config"),
    *can_be_made("new.txt", "sub/new.txt", "dangling-inside"),
    # Secrets by name.
    *no(".env", ".env.local", "sub/.env", "sub/deep/.env.production", ".ENV", "sub/.Env.Local", ".envrc"),
    *no("id_rsa", "sub/id_ed25519", "server.key", "store.p12", "store.JKS", ".netrc", ".npmrc", "sub/.pypirc"),
    *no("credentials.json", "terraform.tfstate", "terraform.tfstate.backup", ".git-credentials", ".htpasswd"),
    *no("link-to-env", "link-to-link-to-env", "linked-folder/.env", "sub/../.env", "{workspace}/.env", "./.env"),
    # Templates of such files hold none.
    *yes(".env.example", "sub/.env.local.sample", ".ENV.TEMPLATE", ".env-dist"),
    *no(".env.examples", ".env.example.local", ".envexample"),
    *no("chain.pem", "large.pem", ".environment/plain.txt", ".env.d/inner.txt"),
    *yes("certificate.pem", ".env.venv/pyvenv.cfg"),
    # What a link with such a name leads to, and the link.
    *no(".env.linked", "target-of-env.txt"),
    *yes("node_modules/package/.env"),
    # Protected places, which programs run.
    *read_only(".git/config", ".git/HEAD", "sub/.git/config", "sub/.Git2/../.git/config", "link-to-git/config"),
    *read_only(
        ".vscode/tasks.json", ".claude/settings.json", "sub/.vscode/tasks.json", ".husky/pre-commit", "sub/.Idea/x.xml"
    ),
    *no(
        ".git/hooks/pre-commit",
        ".git/new",
        "sub/.git/hooks/pre-commit",
        ".ferrule/tools/a_tool.py",
        ".devcontainer/x.json",
    ),
    *unlike(
        (False, True),
        "commands can make it, and it is reported",
        *(".exrc", "sub/.nvim.lua", "sub/project.Code-Workspace", ".run", "sub/.opencode", "mise.toml", ".cursorrules"),
    ),
    *no(".hg/hgrc", "sub/.hg/store", ".jj/repo/config.toml", ".run/x.xml", ".opencode/x.json"),
    *can_be_made("Makefile", ".github/x.yml", ".pre-commit-config.yaml", "AGENTS.md", "mise", "hgrc", "x.run"),
    *read_only("submodule/.git", "stored/HEAD"),
    *no("stored/config"),
    *unlike((False, True), "commands can make it, and it is reported", "ferrule.toml"),
    *unlike((False, True), "no program reads it by this name", "FERRULE.toml", "sub/.mcp.json"),
    *unlike((False, True), "made by a command it is hidden from the next", "sub/.env.new", "new.key", "link-to-no-env"),
    # Outside.
    *no("../proj-evil/s.txt", "{outside}/s.txt", "link-outside.txt", "linked-outside/s.txt"),
    *no(
        "linked-outside/../s.txt",
        "dangling-outside",
        "../proj/../proj-evil/s.txt",
        "loop",
        "loop/x",
    ),
    *no("{outside}/new.txt", "~/.ssh/id_ed25519", "{home}/.ssh/id_ed25519"),
    *no("{home}/.config/token", "{home}/.netrc", "/root/.ssh/id_rsa", "/etc/shadow", "/proc/1/environ"),
    *unlike((False, os.geteuid() != 0), "a user's command may open its own memory, root's may not", "/proc/self/mem"),
    *no("/dev/mem", "/dev/sda", "/sys/kernel/notes", "/", "..", "../..", "/proc/self/root/etc/shadow"),
    *unlike((True, False), "commands read the system", "/etc/passwd", "link-to-passwd", "/usr/../etc/passwd"),
    *unlike((False, True), "commands have a /tmp of their own", "../outside.txt", "sub/../../outside.txt"),
    *unlike((False, True), "commands have a /tmp of their own", "../outside-new.txt", "link-up/outside.txt"),
    *unlike((False, True), "commands have devices of their own", "/dev/null"),
    # What is no file.
    *no("sub", ".", "socket", "plain.txt/x", "missing/new.txt", "x" * 300, "x/" * 2500),
]


VISIBLE = (".env", "sub/deep/.env.production", "*.tfstate", ".env.d/")
"""What the user shows, as in `ShellSettings.visible`, and what of the table is different then."""
VISIBLE_ROWS: list[Row] = [
    *yes(
        ".env", "sub/.env", ".ENV", "sub/deep/.env.production", "terraform.tfstate", ".env.d/inner.txt", "link-to-env"
    ),
    *can_be_made("sub/deep/.env", "new.tfstate"),
    *no(".env.local", "sub/.env.production", "terraform.tfstate.backup", "id_rsa", "{home}/.env", "{home}/.netrc"),
]


def build(root: Path) -> dict[str, str]:
    """Make the files of the table; returns what its paths may name."""
    workspace, outside, home = root / "proj", root / "proj-evil", root / "home"
    for folder in (
        "sub/deep",
        "node_modules/package",
        ".github",
        ".environment",
        "git",
        ".env.d",
        ".env.venv",
        "stored",
    ):
        (workspace / folder).mkdir(parents=True)
    for folder in (".vscode", "sub/.vscode", ".claude", ".husky", "sub/.Idea", "submodule", "sub/.Git2"):
        (workspace / folder).mkdir()
    for folder in (outside, home / ".ssh", home / ".config"):
        folder.mkdir(parents=True)
    for repository in (workspace, workspace / "sub"):
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for path in (workspace / ".git/hooks", workspace / "sub/.git/hooks"):
        for hook in path.iterdir():
            hook.unlink()
    plain = ["plain.txt", "sub/deep/plain.txt", "new\nline.txt", "-rf", "*", "ünï.txt", "a b.txt", "$(touch x).txt"]
    plain += [
        ".environment/plain.txt",
        ".gitignore",
        ".github/workflow.yml",
        "environment.env",
        "git/config",
        "\udcff.txt",
    ]
    plain += [".env.example", "sub/.env.local.sample", ".ENV.TEMPLATE", ".env-dist"]
    plain += [".env.venv/pyvenv.cfg", "node_modules/package/.env", "target-of-env.txt", ".vscode/tasks.json"]
    plain += [".claude/settings.json", "sub/.vscode/tasks.json", ".husky/pre-commit", "sub/.Idea/x.xml"]
    secret = [
        ".env",
        ".ENV",
        ".env.local",
        "sub/.env",
        ".env.examples",
        ".env.example.local",
        ".envexample",
        "sub/deep/.env.production",
        "sub/.Env.Local",
        ".envrc",
        "id_rsa",
    ]
    secret += [
        "sub/id_ed25519",
        "server.key",
        "store.p12",
        "store.JKS",
        ".netrc",
        ".npmrc",
        "sub/.pypirc",
        "credentials.json",
    ]
    secret += ["terraform.tfstate", "terraform.tfstate.backup", ".git-credentials", ".htpasswd", ".env.d/inner.txt"]
    for name in (*plain, *secret):
        (workspace / name).write_text("plain\n" if name in plain else "secret\n")
    (workspace / "certificate.pem").write_text(CERTIFICATE)
    (workspace / "chain.pem").write_text(CERTIFICATE + KEY)
    (workspace / "large.pem").write_text(CERTIFICATE * 50_000)
    (workspace / "submodule/.git").write_text("gitdir: ../stored\n")
    (workspace / "stored/HEAD").write_text("ref: refs/heads/main\n")
    for path in (
        outside / "s.txt",
        root / "outside.txt",
        home / ".ssh/id_ed25519",
        home / ".config/token",
        home / ".env",
        home / ".netrc",
    ):
        path.write_text("secret\n")
    _link(workspace, outside)
    return {"workspace": str(workspace), "outside": str(outside), "home": str(home)}


def _link(workspace: Path, outside: Path) -> None:
    links: dict[str, str | Path] = {
        "link.txt": "plain.txt",
        "link-absolute.txt": workspace / "plain.txt",
        "link-to-link.txt": "link-absolute.txt",
        "linked-folder": "sub/..",
        "link-to-env": ".env",
        "link-to-link-to-env": "link-to-env",
        "link-to-no-env": "sub/.env.absent",
        ".env.linked": "target-of-env.txt",
        "link-to-git": ".git",
        "dangling-inside": "sub/absent.txt",
        "link-outside.txt": outside / "s.txt",
        "linked-outside": outside,
        "dangling-outside": outside / "absent.txt",
        "loop": "loop",
        "link-up": "..",
        "link-to-passwd": "/etc/passwd",
    }
    for name, target in links.items():
        (workspace / name).symlink_to(target)
    os.link(workspace / "plain.txt", workspace / "hard-link.txt")
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(workspace)  # its path may be too long for a socket
        server.bind("socket")
        os.chdir(before)
