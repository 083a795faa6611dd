"""One psql that stays, for scripts that ask a server again and again while clients drive it."""
import subprocess, sys


class Psql:
    """Its statements go to the server that the environment names; `lost` is printed when that has ended."""

    def __init__(self, environment, lost="psql has lost its server"):
        self.lost = lost
        self.process = subprocess.Popen(["psql", "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, *statements):
        """Runs statements; the lines that psql prints."""
        self.process.stdin.write("".join(f"{one};\n" for one in statements) + "\\echo done\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline().strip()) != "done":
            if self.process.poll() is not None:
                sys.exit(self.lost)
            lines.append(line)
        return lines
