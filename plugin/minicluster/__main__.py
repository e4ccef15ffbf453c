"""``python -m minicluster``, and the command ``minicluster``."""

from minicluster.cli import main

if __name__ == "__main__":
    main()
