"""``python -m minicluster``."""

from minicluster.cli import main

main()
