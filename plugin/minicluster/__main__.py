"""``python -m minicluster``, and the command ``minicluster``."""

from minicluster.door import door


def main() -> None:
    """Run the command behind the front door, from the first import on."""
    with door():
        from minicluster import cli  # noqa: PLC0415 - Ctrl-C comes while it is imported, too

        cli.main()


if __name__ == "__main__":
    main()
