"""Playing episodes with a team, and the records that a learner gets of them."""
