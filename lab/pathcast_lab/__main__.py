"""`python -m pathcast_lab` is the command `pathcast-lab`."""

from pathcast_lab.cli import main

if __name__ == "__main__":
    main()
