"""Scopes as decorators, for functions of every kind.

A scope is in force while the body of the decorated function runs. A generator or coroutine that is
suspended takes its scope with it and gets it back when it resumes: the code that runs in between
does not see it.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar

from gradtape.errors import ArgumentError, a_type

F = TypeVar("F", bound=Callable[..., Any])


class Decorator:
    """A context manager that also decorates functions; every call enters a scope of its own."""

    def again(self) -> Any:
        """The scope for one call: a copy, since calls of the same function may overlap."""
        scope = object.__new__(type(self))
        scope.__dict__.update(self.__dict__)
        return scope

    def suspend(self) -> Any:
        """Remove everything put in force since this scope was entered; returns it, for `resume`."""
        raise NotImplementedError

    def resume(self, suspended: Any) -> None:
        """Restore what `suspend` removed."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        """The function, made to run in this scope; also for generators and async functions."""
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if not callable(function):
            raise ArgumentError(
                f"{type(self).__name__}: got {a_type(function)}, expected a function to "
                f"decorate, as in @gt.{type(self).__name__}()"
            )
        for kind, wrap in _KINDS:
            if kind(function):
                return functools.wraps(function)(wrap(self, function))  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


def _steps(scope: Decorator, body: Any) -> Generator[Any, Any, Any]:
    """Run a generator or an awaitable with a scope that is off while it is suspended."""
    resume: Callable[[], Any] = functools.partial(body.send, None)
    while True:
        try:
            value = resume()
        except StopIteration as stop:
            return stop.value
        suspended = scope.suspend()
        try:
            sent = yield value
        except GeneratorExit:
            scope.resume(suspended)
            body.close()
            raise
        except BaseException as error:
            scope.resume(suspended)
            resume = functools.partial(body.throw, error)
        else:
            scope.resume(suspended)
            resume = functools.partial(body.send, sent)


_awaited = types.coroutine(_steps)


def _of_generator(decorator: Decorator, function: Callable[..., Any]) -> Callable[..., Any]:
    def generate(*args: Any, **kwargs: Any) -> Any:
        scope = decorator.again()
        with scope:
            return (yield from _steps(scope, function(*args, **kwargs)))

    return generate


def _of_coroutine(decorator: Decorator, function: Callable[..., Any]) -> Callable[..., Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        scope = decorator.again()
        with scope:
            return await _awaited(scope, function(*args, **kwargs))

    return run


def _of_async_generator(decorator: Decorator, function: Callable[..., Any]) -> Callable[..., Any]:
    async def generate(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        scope = decorator.again()
        with scope:
            body = function(*args, **kwargs)
            step = body.asend(None)
            while True:
                try:
                    value = await _awaited(scope, step)
                except StopAsyncIteration:
                    return
                suspended = scope.suspend()
                try:
                    sent = yield value
                except GeneratorExit:
                    scope.resume(suspended)
                    await _awaited(scope, body.aclose())
                    raise
                except BaseException as error:
                    scope.resume(suspended)
                    step = body.athrow(error)
                else:
                    scope.resume(suspended)
                    step = body.asend(sent)

    return generate


_KINDS = (
    (inspect.isgeneratorfunction, _of_generator),
    (inspect.iscoroutinefunction, _of_coroutine),
    (inspect.isasyncgenfunction, _of_async_generator),
)
