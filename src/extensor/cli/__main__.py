"""``python -m extensor.cli`` is ``extensor``."""

from . import main

if __name__ == "__main__":
    main(prog_name="extensor")
