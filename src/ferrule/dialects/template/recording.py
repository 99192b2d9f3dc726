"""Records a rendering of a chat template, to derive from it what the template writes for a conversation's beginnings.

Nearly every template writes its messages in loops that are not nested (`marking.py`). Each of these loops notes where
in the text an iteration starts; every other access to the messages (an index, the length, `loop.last`) notes what it
reveals. As long as it wasn't revealed that a beginning ends, the beginning would be rendered by the same steps: its
text is that of the recording without the iterations that it lacks. What follows a loop may also depend on the
namespaces that the loop changes, so their attributes are compared if they are read there.

Whatever can't be derived in this way has to be rendered. Attributes that a template could read are private, since
templates are untrusted. This file imports jinja2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.utils import Cycler, Joiner, Namespace

_MISSING = object()

State = tuple[Mapping[str, Any], ...]
"""The attributes of each namespace, in the order in which they were made."""


class TemplateRecording:
    """One rendering of a template, and what it knew of the messages while it wrote each part of the text."""

    def __init__(self, count: int) -> None:
        self.text = ""
        self.position = 0
        self.count = count
        self._loops: list[RecordedLoop] = []
        self._running: RecordedLoop | None = None
        self._namespaces: list[RecordedNamespace] = []
        self._revealed: set[int] = set()

    @property
    def variables(self) -> dict[str, Any]:
        """The functions that a template has to use while it is recorded."""
        return {"namespace": self._make_namespace, "joiner": self._make_joiner, "cycler": self._make_cycler}

    def collect(self, pieces: Iterable[str]) -> None:
        """Render the pieces of the text, one after the other."""
        found = []
        for piece in pieces:
            found.append(piece)
            self.position += len(piece)
        self.text = "".join(found)

    @property
    def ending(self) -> str | None:
        """The text after the last message, if it depends on nothing but whether a prompt is requested, or None."""
        last = self._loops[-1] if self._loops else None
        if last is None or last.end is None or not last.is_followed_by_constants:
            return None
        return self.text[last.end :]

    def derive(self, length: int, ending: str | None = None) -> str | None:
        """The text for the first `length` messages; None if it can't be derived. `ending` replaces the own one."""
        if length == self.count and ending is None:
            return self.text
        pieces, position = [], 0
        for loop in self._loops:
            start = loop.end if length == self.count else loop.starts.get(length)
            if start is None or loop.end is None:
                return None
            if length < self.count and not loop.leaves_the_same_state(length):
                return None
            pieces.append(self.text[position:start])
            position = loop.end
        if length in self._revealed:
            return None
        return "".join((*pieces, self.text[position:] if ending is None else ending))

    def reveal(self, index: int) -> None:
        """Note that from now on the text may depend on whether there is a message with this index."""
        first = 0 if self._running is None else self._running.current + 1
        self._revealed.update(range(first, min(index + 1, self.count)))

    def reveal_all(self) -> None:
        """Note that from now on the text may depend on all messages, or on how many there are."""
        self.reveal(self.count)

    def is_revealed(self, index: int) -> bool:
        """Whether the text may depend on whether there is a message with this index."""
        return index in self._revealed

    def forget(self, index: int) -> None:
        """Note that the text does not depend on whether there is a message with this index, only on later ones."""
        self._revealed.discard(index)

    def begin_loop(self, loop: RecordedLoop) -> None:
        """A loop over the messages begins."""
        self._loops.append(loop)
        self._running = loop

    def end_loop(self) -> None:
        """The running loop has ended after its last iteration."""
        self._running = None

    def copy_state(self) -> State:
        """The attributes that the namespaces have now."""
        return tuple(_copy_attributes(namespace) for namespace in self._namespaces)

    def note_read(self, namespace: int, name: str) -> None:
        """An attribute of a namespace is read."""
        for loop in self._loops:
            if loop.end is not None and (namespace, name) not in loop.written_later:
                loop.read_later.add((namespace, name))

    def note_write(self, namespace: int, name: str) -> None:
        """An attribute of a namespace is written."""
        if self._running is None:  # otherwise only if that iteration runs
            for loop in self._loops:
                loop.written_later.add((namespace, name))

    def _make_namespace(self, *args: Any, **kwargs: Any) -> RecordedNamespace:
        made = RecordedNamespace(*args, **kwargs)
        object.__setattr__(made, "place", (self, len(self._namespaces)))
        self._namespaces.append(made)
        return made

    def _make_joiner(self, *args: Any, **kwargs: Any) -> Joiner:
        self.reveal_all()  # it counts its uses
        return Joiner(*args, **kwargs)

    def _make_cycler(self, *args: Any) -> Cycler:
        self.reveal_all()
        return Cycler(*args)


class RecordedMessages(list[Any]):
    """The messages from the one with the index `offset` on. Whatever reads them is noted in the recording."""

    def __init__(self, messages: Iterable[Any], recording: TemplateRecording, offset: int = 0) -> None:
        super().__init__(messages)
        self._recording, self._offset = recording, offset

    def __getitem__(self, key: Any) -> Any:
        """An item; a slice up to the end, which alone reveals nothing, is recorded as well."""
        if isinstance(key, slice) and key.stop is None and key.step is None and _is_index(key.start or 0):
            return RecordedMessages(super().__getitem__(key), self._recording, self._offset + (key.start or 0))
        if _is_index(key):
            self._recording.reveal(self._offset + key)
        else:
            self._recording.reveal_all()
        return super().__getitem__(key)

    def __bool__(self) -> bool:
        """Whether there is a first one."""
        self._recording.reveal(self._offset)
        return list.__len__(self) > 0

    def __radd__(self, other: Any) -> Any:
        """`other` and these."""
        self._recording.reveal_all()
        return other + list(self)


def _is_index(key: Any) -> bool:
    return isinstance(key, int) and key >= 0


def _make_revealing(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def read(self: RecordedMessages, *args: Any) -> Any:
        self._recording.reveal_all()
        return method(self, *args)

    return read


for _name in (
    *("__iter__", "__len__", "__reversed__", "__contains__", "__add__", "__mul__", "__rmul__", "__repr__"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "index", "count", "copy"),
):
    setattr(RecordedMessages, _name, _make_revealing(_name))


class RecordedLoop:
    """What a loop iterates over: messages, whose places in the text are noted."""

    def __init__(
        self, messages: list[Any], offset: int, recording: TemplateRecording, is_followed_by_constants: bool
    ) -> None:
        self.is_followed_by_constants = is_followed_by_constants
        self._messages, self._offset, self._recording = messages, offset, recording
        self._given = self._finished = 0
        self._was_revealed = False
        self._states: dict[int, State] = {}
        self._last_state: State = ()
        self.starts: dict[int, int] = {}
        """Where in the text the iteration for the message with an index starts, if that revealed it."""
        self.end: int | None = None
        """Where the text after the loop starts; None until it has ended after its last iteration."""
        self.read_later: set[tuple[int, str]] = set()
        """The attributes of namespaces, by their number, that are read after the loop as it left them."""
        self.written_later: set[tuple[int, str]] = set()
        """Those that are written after it."""

    @property
    def current(self) -> int:
        """The index of the message whose iteration is running."""
        return self._offset + self._finished

    def finish_iteration(self) -> None:
        """Note that an iteration has run to its end."""
        self._finished += 1

    def has_next(self) -> bool:
        """Whether another iteration follows, which is not noted: `note_answer` is told what depends on it."""
        self._was_revealed = self._recording.is_revealed(self.current + 1)
        return self._finished + 1 < len(self._messages)

    def note_answer(self, answer: bool) -> None:
        """Note what `loop.last or answer` was: without another message it is true."""
        if not answer:
            self._recording.reveal(self.current + 1)
        elif not self._was_revealed:
            self._recording.forget(self.current + 1)

    def leaves_the_same_state(self, length: int) -> bool:
        """Whether what is read after the loop is the same if the loop ends before the message with this index."""
        state, last = self._states[length], self._last_state
        return all(
            number < len(state) and _is_same(state[number].get(name, _MISSING), last[number].get(name, _MISSING))
            for number, name in self.read_later
            if number < len(last)  # the others are made after the loop
        )

    def __iter__(self) -> Iterator[Any]:
        """Begin."""
        self._recording.begin_loop(self)
        return self

    def __len__(self) -> int:
        """How many messages there are."""
        self._recording.reveal_all()
        return len(self._messages)

    def __next__(self) -> Any:
        """The next message."""
        at, index = self._given, self._offset + self._given
        if self._finished < at:
            self._recording.reveal(index)  # asked within an iteration, for `loop.last` or `loop.nextitem`
        elif at < len(self._messages):
            self.starts[index], self._states[index] = self._recording.position, self._recording.copy_state()
        else:
            self.end, self._last_state = self._recording.position, self._recording.copy_state()
            self._recording.end_loop()
        if at == len(self._messages):
            raise StopIteration
        self._given += 1
        return self._messages[at]


def begin_loop(iterated: Any, is_followed_by_constants: bool) -> Any:
    """What a loop iterates over instead: it notes the iterations if these are recorded messages."""
    if not isinstance(iterated, RecordedMessages):
        return iterated
    messages = [*list.__iter__(iterated)]
    return RecordedLoop(messages, iterated._offset, iterated._recording, is_followed_by_constants)


def finish_iteration(loop: Any) -> str:
    """Note that an iteration of a loop has run to its end; writes nothing."""
    if isinstance(loop, RecordedLoop):
        loop.finish_iteration()
    return ""


def has_next(loop: Any) -> bool:
    """Whether a recorded loop has another iteration."""
    return isinstance(loop, RecordedLoop) and loop.has_next()


def note_answer(answer: Any, loop: RecordedLoop) -> Any:
    """Note what was asked instead of whether an iteration is the last one."""
    loop.note_answer(bool(answer))
    return answer


def count_up_to_one(counted: Any) -> int:
    """Whether there is any, as a number; for anything but recorded messages how many there are."""
    return int(bool(counted)) if isinstance(counted, RecordedMessages) else len(counted)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values in a namespace are the same data; iterators and loops, which change, never are."""
    if isinstance(one, str | int | float | None):
        return type(one) is type(other) and bool(one == other)
    return one is other and isinstance(one, list | tuple | dict)


class GuardedNamespace(Namespace):
    """Jinja's namespace, which lets a template assign names that Python reserves."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        for name in dict(*args[1:], **kwargs):
            _check_name(name)
        Namespace.__init__(*args, **kwargs)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: str) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"a chat template can't assign {name!r} in a namespace")


class RecordedNamespace(GuardedNamespace):
    """A namespace whose use is noted. `place` is its recording and its number there."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            recording, number = object.__getattribute__(self, "place")
            recording.note_read(number, name)
        return Namespace.__getattribute__(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        recording, number = object.__getattribute__(self, "place")
        recording.note_write(number, name)
        super().__setitem__(name, value)


def _copy_attributes(namespace: Namespace) -> dict[str, Any]:
    return dict(object.__getattribute__(namespace, "_Namespace__attrs"))
