"""Batches loaded by processes.

The processes are spawned: a fork would copy locks that threads hold. Each gets the data set and the
numbers of its items once, pickled; batches come back through a pipe, their arrays as plain bytes.
Worker k loads every n-th batch from the k-th on, so the order needs no bookkeeping. It begins a
batch when it is told to, which keeps it from running ahead without bound. A process whose pipe is
closed ends by itself, also if the program that started it was killed.
"""

from __future__ import annotations

import io
import mmap
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.data.datasets import Indices
from gradtape.data.fetch import Fetch
from gradtape.errors import ArgumentError, DataError, WorkerError

Task = tuple[int, Indices]

# Arrays of at least so many bytes are sent by themselves, without a copy.
_LARGE = 1 << 16
# Seconds that a process gets to end before it is killed.
_PATIENCE = 5.0
_GO = b"\0"


def batches_by_processes(
    fetch: Fetch, tasks: Sequence[Task], workers: int, prefetch: int
) -> Iterator[Any]:
    """Load batches in processes, which end with the iterator.

    Args:
        fetch: Loads a batch.
        tasks: The number of each batch, and those of its items.
        workers: How many processes.
        prefetch: How many batches each is ahead.

    Raises:
        ArgumentError: The data set cannot be pickled.
        DataError: An item cannot be loaded.
        WorkerError: A process died.
    """
    count = min(workers, len(tasks))
    running: list[_Worker] = []
    try:
        for n in range(count):
            running.append(_Worker(n, _pickled((fetch, tasks[n::count]))))
        for n in range(min(len(tasks), count * prefetch)):
            running[n % count].begin_one()
        for n in range(len(tasks)):
            worker = running[n % count]
            batch = worker.receive()
            if n + count * prefetch < len(tasks):
                worker.begin_one()
            yield batch
    finally:
        for worker in running:
            worker.connection.close()
        for worker in running:
            worker.end()


class _Worker:
    """A process, seen from the program that started it."""

    def __init__(self, number: int, payload: bytes) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.number = number
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(
            target=work, args=(theirs, payload), name=f"gradtape-data-{number}", daemon=True
        )
        try:
            self.process.start()
        except OSError as error:
            self.connection.close()
            raise WorkerError(
                f"DataLoader: worker process {number} could not be started: {error}"
            ) from error
        finally:
            theirs.close()

    def begin_one(self) -> None:
        """Tell it to load one more batch."""
        # One that has died is noticed when its batch is waited for.
        with suppress(OSError):
            self.connection.send_bytes(_GO)

    def receive(self) -> Any:
        """Wait for its next batch."""
        ready = wait([self.connection, self.process.sentinel])
        if self.connection in ready:
            with suppress(EOFError, OSError):
                outcome = _received(self.connection)
                if isinstance(outcome, DataError):
                    raise outcome
                return outcome
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        how = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
        raise WorkerError(
            f"DataLoader: worker process {self.number} {how} while a batch was waited for; was "
            "memory short? A script whose loader has processes needs `if __name__ == "
            '"__main__":` around what it runs; worker="threads" needs neither'
        )

    def end(self) -> None:
        """Make it end, if it has not, and wait until it has."""
        self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()


# ---- in the process -----------------------------------------------------------------------------


def work(connection: Connection, payload: bytes) -> None:
    """What a process does: load its batches, one for each message.

    Args:
        connection: A pipe to the program that started it.
        payload: What loads a batch, and the tasks.
    """
    # Ctrl-C reaches all processes of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            fetch, tasks = pickle.loads(payload)
        except Exception as error:
            failed = DataError(
                f"DataLoader: the data set could not be unpickled in a process: "
                f"{type(error).__name__}: {error}; define its class in a module to import"
            )
            connection.recv_bytes()
            _send_failure(connection, failed, error)
            return
        for number, indices in tasks:
            connection.recv_bytes()
            try:
                _send(connection, fetch(number, indices))
            except OSError:
                raise
            except Exception as error:
                failed = error if isinstance(error, DataError) else _unsendable(number, error)
                _send_failure(connection, failed, error.__cause__ or error)
                return


def _unsendable(number: int, error: Exception) -> DataError:
    return DataError(
        f"DataLoader: batch {number} cannot be sent from a process: {type(error).__name__}: {error}"
    )


def _send_failure(connection: Connection, failed: DataError, cause: BaseException) -> None:
    """Send an error with its cause; with the text of the cause if that cannot be pickled."""
    text = "".join(traceback.format_exception(cause))
    sent: BaseException = RuntimeError(text)
    with suppress(Exception):
        cause.add_note(f"\nin a worker process:\n{text}")
        sent = pickle.loads(pickle.dumps(cause))
    _send(connection, _Failure(str(failed), sent))


class _Failure:
    """An error and its cause; pickling an error loses the cause."""

    def __init__(self, text: str, cause: BaseException) -> None:
        self.text, self.cause = text, cause

    def __reduce__(self) -> Any:
        return _failed, (self.text, self.cause)


def _failed(text: str, cause: BaseException) -> DataError:
    failed = DataError(text)
    failed.__cause__ = cause
    return failed


# ---- bytes --------------------------------------------------------------------------------------


def _send(connection: Connection, value: Any) -> None:
    buffers: list[Any] = []

    def goes_in_line(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    file = io.BytesIO()
    _BatchPickler(file, protocol=5, buffer_callback=goes_in_line).dump(value)
    connection.send_bytes(pickle.dumps([raw.nbytes for raw in buffers]))
    connection.send_bytes(file.getbuffer())
    for raw in buffers:
        connection.send_bytes(raw)


def _received(connection: Connection) -> Any:
    sizes = pickle.loads(connection.recv_bytes())
    data = connection.recv_bytes()
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        connection.recv_bytes_into(buffer)
    return pickle.loads(data, buffers=buffers)


def _pickled(value: Any) -> bytes:
    file = io.BytesIO()
    try:
        _DatasetPickler(file, protocol=5).dump(value)
    except Exception as error:
        raise ArgumentError(
            f"DataLoader: worker processes get the data set by pickling, which failed: {error}; "
            'define its class and collate= at the top of a module, or use worker="threads"'
        ) from error
    return file.getvalue()


class _BatchPickler(pickle.Pickler):
    """Pickles tensors as their arrays, unless they require a gradient: those refuse it."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.requires_grad:
            return NotImplemented
        return Tensor, (value.detach().numpy(),)


class _DatasetPickler(_BatchPickler):
    """Pickles arrays of mapped files as the place in the file, too."""

    def reducer_override(self, value: Any) -> Any:
        place = _file_place(value) if isinstance(value, np.ndarray) else None
        return super().reducer_override(value) if place is None else (_mapped_again, place)


def _file_place(array: Any) -> tuple[Any, ...] | None:
    """The file of an array that is mapped, and where in it the array is."""
    base = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    pages = getattr(base, "_mmap", None)
    # Changes of mode "c" are in this process alone.
    if base is None or pages is None or base.filename is None or base.mode == "c":
        return None
    begin = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
    address = np.frombuffer(pages, np.uint8).__array_interface__["data"][0]
    place = begin + array.__array_interface__["data"][0] - address
    return str(base.filename), array.dtype, array.shape, array.strides, place


def _mapped_again(
    filename: str, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], place: int
) -> Any:
    pages = np.memmap(filename, np.uint8, "r")
    return np.ndarray(shape, dtype, pages, place, strides)
