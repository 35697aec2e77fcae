"""`python -m privspec.kernel PLAN`: exit 0 if every claim holds, 7 if not."""

import sys

from privspec.kernel import judge


def main(path: str) -> int:
    """Judge a plan file and print its claims."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is one more thing to trust
        report = judge(file.read())
    print("\n".join(map(str, report.claims)))
    return 0 if report.ok else 7


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
