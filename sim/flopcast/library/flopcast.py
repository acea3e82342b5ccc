"""Predictions of flopcast from Python: a Scenario is opened, its points are run, their columns are read.

    import flopcast
    with flopcast.Scenario("t5_scaling", {"cluster.gpus": 8}) as scenario:
        print(scenario.run(0)["tflops_per_gpu"])

The columns are those of `flopcast run --format json`, with their types: numbers, texts, None where not applicable. What
is wrong is raised as flopcast.Error, with file, line and column. libflopcast.so (flopcast.h) does the work."""
import ctypes
import os

_SONAME = "libflopcast.so.0"


class Error(Exception):
    """What flopcast says is wrong with a file or setting, or with the world around it."""


def _load():
    """The library of the prefix that this file was installed into, else the one that the loader finds."""
    here = os.path.dirname(os.path.realpath(__file__))
    beside = [os.path.join(here, up, _SONAME) for up in (".", os.path.join("..", ".."))]  # PREFIX/lib
    found = next((path for path in beside if os.path.exists(path)), _SONAME)
    try:
        return ctypes.CDLL(found)
    except OSError as reason:
        raise ImportError(f"{_SONAME} is neither in {os.path.normpath(os.path.dirname(beside[1]))} nor known to the "
                          f"loader (LD_LIBRARY_PATH, ldconfig): {reason}") from None


_library = _load()
_text, _self = ctypes.c_char_p, ctypes.c_void_p
for _name, _result, *_arguments in (
        ("version", _text), ("new", _self), ("free", None, _self), ("set", ctypes.c_int, _self, _text, _text),
        ("open", ctypes.c_int, _self, _text), ("points", ctypes.c_int, _self), ("run", ctypes.c_int, _self, ctypes.c_int),
        ("columns", ctypes.c_int, _self), ("column", _text, _self, ctypes.c_int), ("text", _text, _self, _text),
        ("number", ctypes.c_double, _self, _text), ("plan", _text, _self, ctypes.c_int), ("messages", _text, _self)):
    _function = getattr(_library, "flopcast_" + _name)
    _function.restype, _function.argtypes = _result, _arguments

__version__ = _library.flopcast_version().decode()


class Scenario:
    """A scenario's file, or the name of one that comes along; `settings` as --set KEY=VALUE. One thread at a time."""

    def __init__(self, scenario, settings=None):
        self._self = _library.flopcast_new()
        for key, value in (settings or {}).items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self._check(_library.flopcast_set(self._self, str(key).encode(), text.encode()))
        self._check(_library.flopcast_open(self._self, os.fspath(scenario).encode()))

    def _check(self, status):
        if status:
            raise Error(self.messages().strip())

    def messages(self):
        """Errors and warnings of the last call, one a line."""
        return _library.flopcast_messages(self._self).decode()

    def __len__(self):
        return _library.flopcast_points(self._self)

    def run(self, point=0):
        """Simulates a point of the sweep, from 0; its columns by name."""
        self._check(_library.flopcast_run(self._self, point))
        names = [_library.flopcast_column(self._self, i) for i in range(_library.flopcast_columns(self._self))]
        return {name.decode(): self._cell(name) for name in names}

    def _cell(self, name):
        text, number = _library.flopcast_text(self._self, name), _library.flopcast_number(self._self, name)
        if number != number:  # a text, or not applicable
            return text and text.decode()
        return int(text) if text.lstrip(b"-").isdigit() else float(text)

    def plan(self, point=0):
        """The plan of a point, as `flopcast run --plan` prints it."""
        text = _library.flopcast_plan(self._self, point)
        self._check(text is None)
        return text.decode()

    def close(self):
        self._self = _library.flopcast_free(self._self)  # None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_self", None):
            self.close()
