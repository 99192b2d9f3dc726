"""What counts in a workspace of the user's own `ferrule.toml` and the project's.

Whoever writes a project's files must not be able to choose what runs on a person's machine. So the project's file can
only tighten: its denying and asking rules and its profile count at once, and never loosen the user's. What would allow,
start or open something counts after the user trusted the file, by the hash of its content, and even then it overrides
no rule of the user.

    project = load_project(workspace)
    for notice in project.notices: ...  # one line each
    if project.list_untrusted(): ...  # show these lines and ask, then: project = project.trust()
    policy = project.make_policy()

A file that can't be read may have denied anything. So every call is asked about then, and `check_readable` raises where
nobody looks at each of them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ferrule._util.user_folders import find_config_folder
from ferrule.builtin_tools.command_templates import CommandTool
from ferrule.errors import SettingsError
from ferrule.execution.always import SessionGrants
from ferrule.execution.policy import Policy
from ferrule.execution.policy_file import make_policy
from ferrule.execution.profiles import Profile
from ferrule.execution.rules import Rule
from ferrule.execution.secrets import is_secret_name
from ferrule.session.project_file import (
    FILE_NAME,
    CodeSettings,
    ProjectSettings,
    ServerData,
    read_project_file,
)
from ferrule.session.trust import hash_content, is_trusted, trust

_CURE = "mend the file, or move it away"
_PLAIN_WORD = re.compile(r"[^\s'\"\\;&|<>()$`#*?!]+")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One `ferrule.toml` as it was read: its settings, or why there are none.

    `digest` is the hash of its content; `is_trusted` is true of the user's own file and of one that the user trusted.
    `problem` is why the file can't be used, `trust_problem` why it isn't known whether it is trusted.
    """

    path: Path
    settings: ProjectSettings = field(default_factory=ProjectSettings)
    digest: str = ""
    is_trusted: bool = False
    problem: str = ""
    trust_problem: str = ""

    @property
    def policy(self) -> Policy:
        """The policy as the file says it."""
        return make_policy(self.settings.policy, str(self.path), "policy.")

    def list_grants(self) -> list[str]:
        """What this file would allow, start or open, one line each; empty if it only tightens."""
        own = self.settings
        rules = [f"allows {describe_rule(rule)}" for rule in self.policy.rules if rule.action == "allow"]
        origins = [f"trusts what tools of the origin {one} say of themselves" for one in own.policy.trusted]
        tools = [f"offers the tool {one.name}, which runs: {_write_words(one.command)}" for one in own.tools]
        servers = [f"starts the MCP server {name}: {_describe_server(one)}" for name, one in own.mcp.items()]
        folders = [f"opens the folder {one}" for one in self.folders]
        tests = [f"runs the tests by: {_write_words(own.code.test_command)}"] if own.code.test_command else []
        shown = [f"shows {name}, which may hold secrets, to tools and commands" for name in own.code.visible or ()]
        return [*rules, *origins, *tools, *servers, *folders, *tests, *shown]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of `add_dirs`."""
        return tuple(self.path.parent / Path(one).expanduser() for one in self.settings.add_dirs)


@dataclass(frozen=True, slots=True)
class Project:
    """The files for one workspace: `user` is the user's own, `own` the project's; None where there is none.

    `above` are those of the folders around the workspace, up to the root of its repository: they only tighten.
    """

    workspace: Path
    user: SettingsFile | None = None
    own: SettingsFile | None = None
    above: tuple[SettingsFile, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why a file can't be used, a line each."""
        return tuple(one.problem for one in self._files if one.problem)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person must know of these files, a line each."""
        damaged = (f"{problem}; until then every call is asked about" for problem in self.problems)
        return *damaged, *(one.trust_problem for one in self._files if one.trust_problem)

    def check_readable(self) -> None:
        """Raise `SettingsError` for a file that can't be used: for where nobody looks at each call.

        Its rules may deny what is allowed otherwise, so nothing runs without them.
        """
        if self.problems:
            raise SettingsError(f"{self.problems[0]}; nothing runs without its rules where nobody decides on each call")

    def list_untrusted(self) -> list[str]:
        """What the project's file would allow, start or open if the user trusted it; empty if there is no question."""
        return [] if self.own is None or self.own.is_trusted else self.own.list_grants()

    def trust(self) -> Project:
        """Trust the project's file with the content that was read. Raises `SettingsError` and `OSError`."""
        if self.own is None or self.own.problem:
            raise SettingsError(f"{self.workspace}: no {FILE_NAME} here that can be trusted")
        trust("project", self.own.path, self.own.digest)
        return replace(self, own=replace(self.own, is_trusted=True))

    @property
    def tools(self) -> tuple[CommandTool, ...]:
        """The declared tools that count; the user's come before the project's of the same name."""
        return tuple({tool.name: tool for one in reversed(self._counting) for tool in one.settings.tools}.values())

    @property
    def servers(self) -> dict[str, ServerData]:
        """The MCP servers that count, by name; the user's come before the project's."""
        return {name: server for one in reversed(self._counting) for name, server in one.settings.mcp.items()}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The added folders that count."""
        return tuple(dict.fromkeys(folder for one in self._counting for folder in one.folders))

    @property
    def visible(self) -> tuple[str, ...]:
        """The names and paths of hidden files that are to be shown, as far as they count."""
        return tuple(dict.fromkeys(name for one in self._counting for name in one.settings.code.visible or ()))

    @property
    def code(self) -> CodeSettings:
        """The settings of the coding agent: the project's before the user's, which are for all projects."""
        merged: dict[str, object] = {}
        for one in (self.user, self.own):
            if one is not None:
                merged |= one.settings.code.model_dump(
                    exclude_none=True, exclude=None if one.is_trusted else {"test_command", "visible"}
                )
        return CodeSettings.model_validate(merged)

    def make_policy(
        self,
        given: Policy | None = None,
        profile: Profile | None = None,
        always: Iterable[Rule] = (),
        grants: SessionGrants | None = None,
    ) -> Policy:
        """Make the policy in force.

        `given` takes the place of what the policy in the user's file allows, and of its profile; `profile` that of
        both, by default `ask`. Rules that deny or ask stay. `always` are rules of earlier "always" answers, `grants`
        those of this session. With a file that can't be read, every call is asked about.
        """
        users = self.user.policy if self.user is not None else Policy()
        base = users if given is None else given
        own = self.own.policy if self.own is not None else Policy()
        is_trusted = self.own is not None and self.own.is_trusted
        allowed = tuple(rule for rule in own.rules if rule.action == "allow") if is_trusted else ()
        policy = replace(
            base,
            profile=profile or base.profile or "ask",
            trusted=(*base.trusted, *own.trusted) if is_trusted else base.trusted,
            always=(*base.always, *always, *allowed),
            grants=grants,
            is_shared=given is None,
        )
        if self.problems:
            policy = replace(policy, rules=tuple(rule for rule in policy.rules if rule.action != "allow"), always=())
        for one in self._list_tightening(None if given is None else users):
            if one.rules or one.profile is not None:
                policy = policy.narrow(replace(policy, rules=one.rules, profile=one.profile or "all", within=None))
        return policy

    def _list_tightening(self, users: Policy | None) -> Iterator[Policy]:
        """What can only tighten, as policies with no rule that allows; `users` is that of the user's own file."""
        if users is not None:
            yield Policy(_leave_out_allowing(users))
        for one in (self.own, *self.above):
            if one is not None:
                yield Policy(_leave_out_allowing(one.policy), one.policy.profile)
        yield Policy(tuple(Rule("ask", reason=problem) for problem in self.problems))

    @property
    def _files(self) -> list[SettingsFile]:
        return [one for one in (self.user, self.own, *self.above) if one is not None]

    @property
    def _counting(self) -> list[SettingsFile]:
        """The files of which everything counts, the user's first."""
        return [one for one in (self.user, self.own) if one is not None and one.is_trusted]


def load_project(workspace: Path | str, user_file: Path | str | None = None) -> Project:
    """Read the files for a workspace; `user_file` is by default `ferrule.toml` in the user's configuration folder.

    A file that can't be used is in `Project.problems`, and nothing of it counts but that it is there.
    """
    workspace = Path(workspace)
    user_path = find_config_folder() / FILE_NAME if user_file is None else Path(user_file)
    user = _load(user_path, is_own_file=True)
    own, *above = (
        _load(folder / FILE_NAME, is_own_file=False) for folder in (workspace, *_find_folders_above(workspace))
    )
    # In the configuration folder itself, the user's file is the project's.
    others = [
        None if one is None or (user is not None and _is_same_file(one.path, user_path)) else one
        for one in (own, *above)
    ]
    return Project(workspace, user, others[0], tuple(one for one in others[1:] if one is not None))


def _find_folders_above(workspace: Path) -> list[Path]:
    """The folders around a workspace, up to the root of its repository; none without one."""
    real = Path(os.path.realpath(workspace))
    folders = [real, *real.parents]
    root = next((index for index, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    return folders[1 : root + 1]


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _leave_out_allowing(policy: Policy) -> tuple[Rule, ...]:
    return tuple(rule for rule in policy.rules if rule.action != "allow")


def describe_rule(rule: Rule) -> str:
    """What a rule is for, on one line, for a person."""
    parts = [f"the command {rule.command}{'' if rule.exact else ' …'}"] if rule.command is not None else []
    parts += [f"{name} {value!r}" for name, value in rule.arguments.items()]
    parts += [f"{name} {str(value).lower()}" for name, value in rule.annotations.items()]
    parts += [f"the effect {rule.effect}"] if rule.effect is not None else []
    parts += [f"on {rule.target}"] if rule.target is not None else []
    if rule.tool != "*":
        return f"{rule.tool}: {', '.join(parts)}" if parts else rule.tool
    return ", ".join(parts) or "every tool"


def _load(path: Path, is_own_file: bool) -> SettingsFile | None:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return SettingsFile(path, problem=f"{path}: can't be read: {error.strerror or error}; {_CURE}")
    try:
        data, settings = read_project_file(path)
    except (SettingsError, OSError) as error:
        named = str(error) if str(path) in str(error) else f"{path}: {error}"
        return SettingsFile(path, problem=f"{named}; {_CURE}")
    digest = hash_content(data)
    if is_own_file:
        return SettingsFile(path, settings, digest, is_trusted=True)
    try:
        return SettingsFile(path, settings, digest, is_trusted("project", path, digest))
    except (SettingsError, OSError) as error:
        return SettingsFile(path, settings, digest, trust_problem=f"{error}; until then {path} is not trusted")


def _write_words(words: Iterable[str]) -> str:
    """The words of a command, quoted where they would pass for several, or for something else."""
    return " ".join(word if _PLAIN_WORD.fullmatch(word) else shlex.quote(word) for word in words)


def _describe_server(server: ServerData) -> str:
    """What is started, or the address, with what it is given: of a secret only that it has a value."""
    if server.url is not None:
        return "; sends ".join(filter(None, (server.url, _write_values(server.headers))))
    return "; sets ".join(filter(None, (_write_words(server.command or ()), _write_values(server.env))))


def _write_values(values: Mapping[str, str]) -> str:
    return ", ".join(
        f"{_write_words([name])} (value hidden)"
        if value and is_secret_name(name)
        else _write_words([f"{name}={value}"])
        for name, value in values.items()
    )
