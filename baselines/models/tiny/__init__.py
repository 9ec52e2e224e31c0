"""The embedded model: a small Qwen3 decoder, its weights, and the recipe that made them.

``python -m flexmg.baselines.models.tiny.build`` makes it anew from nothing but the
environments' own demonstrations. Users load it like any other model: ``--model tiny``.
"""
