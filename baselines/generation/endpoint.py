"""Models behind an OpenAI-compatible server, as players that do not learn."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

from flexmg.baselines.models.assignment import ENDPOINT
from flexmg.errors import InfraError, InvalidArgument, MissingDependency

# Local servers ask for no key, and the client insists on one.
NO_KEY = "none"


@dataclass(frozen=True)
class EndpointSettings:
    """How a server is asked.

    Args:
        timeout: seconds until an answer counts as lost.
        retries: more attempts after a time-out, a lost connection, or a status of 408, 409,
            429 or 5xx; with exponential back-off, or as the server's Retry-After says.
        concurrency: the most questions under way at once.
    """

    timeout: float = 120.0
    retries: int = 4
    concurrency: int = 16

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.retries < 0 or self.concurrency < 1:
            raise InvalidArgument(
                "an endpoint needs a positive timeout, at least 0 retries and a concurrency of at "
                f"least 1, not {self.timeout}, {self.retries} and {self.concurrency}"
            )


@dataclass
class Usage:
    """What an endpoint has cost, as the server counts.

    Args:
        calls: that were answered.
        failures: that were not, after all attempts.
        prompt_tokens: read. ``completion_tokens``: written.
    """

    calls: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, other: Usage) -> None:
        """What somebody else has spent, too."""
        for field in fields(self):
            own, more = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, own + more)


class Endpoint:
    """One model of one server; safe to ask from several threads.

    Args:
        name: ``openai:MODEL@URL``, such as ``openai:qwen3@http://localhost:8000/v1``. The key
            is taken from the environment variable ``OPENAI_API_KEY``, if there is one.
        settings: how it is asked.

    Raises:
        InvalidArgument: the name is not of that form.
        MissingDependency: the package ``openai`` is not installed.
    """

    def __init__(self, name: str, settings: EndpointSettings | None = None) -> None:
        model, at, url = name.removeprefix(ENDPOINT).rpartition("@")
        if not (name.startswith(ENDPOINT) and at and model) or "://" not in url:
            raise InvalidArgument(
                f"{name!r} names no endpoint: write openai:MODEL@URL, such as "
                "openai:qwen3@http://localhost:8000/v1"
            )
        if find_spec("openai") is None:
            raise MissingDependency(
                "endpoints need the package openai, which is not installed here. Install it with: "
                "pip install 'flexmg[openai]'"
            )
        import os

        from openai import OpenAI

        self.name = name
        self.model = model
        self.settings = settings or EndpointSettings()
        self.usage = Usage()
        self._counting = threading.Lock()
        self._client = OpenAI(
            base_url=url,
            api_key=os.environ.get("OPENAI_API_KEY") or NO_KEY,
            timeout=self.settings.timeout,
            max_retries=self.settings.retries,
        )

    def reply(
        self,
        profile: str,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> str:
        """One chat completion.

        Args:
            profile: the system message, if not empty.
            messages: with ``role`` and ``content``.
            max_tokens: the most that the server may write.
            temperature: of its sampling; 0 for the likeliest tokens.
            stop: strings that end the reply.
            seed: of the server's sampling, where it has one.

        Raises:
            InfraError: no usable answer after all attempts.
        """
        from openai import OpenAIError

        system = [{"role": "system", "content": profile}] if profile else []
        chat: Any = [*system, *(dict(message) for message in messages)]
        try:
            answer = self._client.chat.completions.create(
                model=self.model,
                messages=chat,
                max_tokens=max_tokens,
                temperature=temperature,
                stop=list(stop) or None,
                seed=seed,
            )
            text = answer.choices[0].message.content
        # A server that answers something else than a completion makes the client raise these.
        except (OpenAIError, ValueError, TypeError, AttributeError, IndexError) as error:
            with self._counting:
                self.usage.failures += 1
            raise InfraError(
                f"{self.name} gave no answer after {self.settings.retries + 1} attempts "
                f"({type(error).__name__}: {error}); see whether the server runs, knows the model "
                "and is not overloaded"
            ) from error
        with self._counting:
            self.usage.calls += 1
            if answer.usage is not None:
                self.usage.prompt_tokens += answer.usage.prompt_tokens
                self.usage.completion_tokens += answer.usage.completion_tokens
        return text or ""

    def spent(self) -> Usage:
        """What it has cost since the last call of this."""
        with self._counting:
            usage, self.usage = self.usage, Usage()
        return usage
