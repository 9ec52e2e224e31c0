"""Teams and games small enough to compute exactly what training only samples."""
