"""The environments that ship with flexmg (imported as ``flexmg.envs``)."""
