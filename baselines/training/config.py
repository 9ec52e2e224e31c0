"""The settings of a training run: one dataclass, written to ``config.yaml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from flexmg.errors import InvalidArgument

BUDGETS = ("budget_tokens", "budget_episodes", "budget_seconds")
LIMITS = ("iterations", *BUDGETS)
# How far a run goes and who is told of it: a resumed run may change these and nothing else.
OPEN = (*LIMITS, "log")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides the outcome of a run.

    No schedule depends on how long a run is: a longer one begins exactly like a shorter one.

    Args:
        env: id of the environment.
        env_args: keyword arguments of :func:`flexmg.make`, such as ``source``.
        held_out: the arguments that differ in evaluation. Problems that are evaluated on are
            never trained on, whatever the source: they are recognised by content.
        algorithm: name of a registered algorithm.
        algorithm_args: fields of its ``Config``; ``config.yaml`` holds them all.
        model: ``tiny``, ``smollm2``, a folder, a GGUF file, or a Hugging Face id.
        dtype: ``float32``, ``bfloat16`` or ``float16`` for the base model.
        device: ``auto``, ``cpu``, ``cuda`` ...
        threads: CPU threads of PyTorch, 0 for its own choice; None for one with ``tiny``,
            whose small matrices gain nothing from two and lose much beside a busy
            process, and for PyTorch's choice with any other model. Part of the settings because
            sums may round differently with another number.
        policies: the policy map: ``isolated`` (one policy per role), ``shared``,
            ``per-agent``, or a mapping from agent or role to policy.
            A policy may also be ``scripted``, ``random`` or ``openai:MODEL@URL``, which do
            not learn.
        models: base models of single policies, by policy; the others have ``model``.
        freeze: policies that act and do not learn.
        lora_rank: rank of the adapters.
        lora_alpha: their scale is ``lora_alpha / lora_rank``.
        lora_targets: the layers that have an adapter: ``all-linear``, ``attention``, ``mlp``
            or a list of module names.
        critic_trunk: what reads the critics' inputs: ``frozen`` (the base model), ``adapter``
            (the base model with an adapter that learns) or ``model`` (another, frozen).
        critic_model: that other model.
        gradient_checkpointing: compute activations anew in the backward pass, for memory.
        iterations: how many in total; None for as many as a budget allows.
        budget_tokens: end after the iteration in which this many tokens have been generated
            in training (evaluation is not counted); None for no such limit.
        budget_episodes: the same in episodes of training.
        budget_seconds: the same in seconds of training, over all its sittings.
        seed: of everything random.
        problems: problems per iteration.
        samples: episodes per problem.
        temperature: of sampling, in training and evaluation.
        games: the most episodes in flight at once.
        rollout_workers: processes of one thread each that play the episodes; 1 plays them in
            the trainer's own; ``auto`` measures at the start whether as many as there are
            cores are faster, and is replaced by the number that was chosen.
        stop: strings that end an action, by agent or role.
        endpoint_timeout: seconds until an answer of an endpoint counts as lost.
        endpoint_retries: more attempts after that, or after a passing failure.
        endpoint_concurrency: the most questions under way at once.
        max_turns: cut an episode that has taken this many turns (it is then truncated, and
            bootstraps); None plays every episode to its end.
        max_prompt_tokens: a limit on prompts and critic inputs below the model's own.
        eval_problems: held-out problems, played before the first iteration and after the
            last; 0 for none.
        eval_samples: episodes per held-out problem.
        validate_every: iterations from one look at the validation problems to the next; 0
            for none.
        validation: the arguments that differ in validation. Its problems are never trained
            on either.
        validation_problems: how many, each played once.
        diagnose_every: iterations from one look at gradients and texts to the next, see
            docs/diagnostics.md; 0 for none.
        stop_on_cliff: end the run when validation accuracy has fallen off a cliff, twice in
            a row; ``checkpoint-best`` holds the team of the best look.
        checkpoint_every: iterations from one checkpoint to the next.
        logged_episodes: transcripts kept of each iteration.
        log: where else each iteration's figures go: ``tensorboard``, ``wandb``, ``trackio``,
            or a logger that an installed package contributes.
    """

    env: str
    env_args: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=lambda: {"split": "test"})
    algorithm: str = "marft"
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    model: str = "tiny"
    dtype: str = "float32"
    device: str = "auto"
    threads: int | None = None
    policies: str | dict[str, str] = "isolated"
    models: dict[str, str] = field(default_factory=dict)
    freeze: list[str] = field(default_factory=list)
    lora_rank: int = 8
    lora_alpha: int = 16
    lora_targets: str | list[str] = "all-linear"
    critic_trunk: Literal["frozen", "adapter", "model"] = "frozen"
    critic_model: str | None = None
    gradient_checkpointing: bool = False
    iterations: int | None = 20
    budget_tokens: int | None = None
    budget_episodes: int | None = None
    budget_seconds: float | None = None
    seed: int = 0
    problems: int = 64
    samples: int = 4
    temperature: float = 1.0
    games: int = 256
    rollout_workers: int | Literal["auto"] = 1
    stop: dict[str, list[str]] = field(default_factory=dict)
    endpoint_timeout: float = 120.0
    endpoint_retries: int = 4
    endpoint_concurrency: int = 16
    max_turns: int | None = None
    max_prompt_tokens: int | None = None
    eval_problems: int = 100
    eval_samples: int = 1
    validate_every: int = 0
    validation: dict[str, Any] = field(default_factory=lambda: {"split": "validation"})
    validation_problems: int = 100
    diagnose_every: int = 10
    stop_on_cliff: bool = False
    checkpoint_every: int = 1
    logged_episodes: int = 8
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        at_least_1 = "problems samples eval_samples checkpoint_every validation_problems"
        for name in at_least_1.split():
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name} must be at least 1, not {getattr(self, name)}")
        natural = "seed eval_problems logged_episodes threads validate_every diagnose_every"
        for name in natural.split():
            if (getattr(self, name) or 0) < 0:
                raise InvalidArgument(f"{name} must not be negative, not {getattr(self, name)}")
        for name in LIMITS:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidArgument(f"{name} must be at least 1, not {value}")
        if all(getattr(self, name) is None for name in LIMITS):
            raise InvalidArgument(f"the run would never end; set one of {', '.join(LIMITS)}")
        if self.rollout_workers != "auto" and self.rollout_workers < 1:
            raise InvalidArgument(
                f"rollout_workers must be at least 1, or auto, not {self.rollout_workers}"
            )
        if self.stop_on_cliff and not self.validate_every:
            raise InvalidArgument(
                "stop_on_cliff watches the validation accuracy; set validate_every as well"
            )

    def reached(self, finished: int, totals: dict[str, float]) -> str | None:
        """The limit that a run has reached, or None.

        Args:
            finished: iterations.
            totals: ``tokens``, ``episodes`` and ``seconds`` of training so far.
        """
        done = {"iterations": finished, **{f"budget_{k}": v for k, v in totals.items()}}
        limits = {name: getattr(self, name) for name in LIMITS}
        return next((k for k, most in limits.items() if most is not None and done[k] >= most), None)
