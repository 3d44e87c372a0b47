"""Tests the HIP device, `peerway cc` and Linpack on a host with AMD GPUs, and prints a report to send. All of
it is in out/amd.
"""

from __future__ import annotations

import platform

from steps import ROOT, VENV, environment, main, run, say

OUT = ROOT / "out" / "amd"
PYTHON = VENV / "bin" / "python"
TESTS = [*sorted(ROOT.glob("*/tests/amd")), ROOT / "library" / "tests" / "python" / "test_hip_abi.py"]


def amd_test() -> int:
    """Ask what the node has, run the tests, and join both into a report."""
    doctor = OUT / "doctor.log"
    tests = OUT / "pytest.log"
    run("doctor", [VENV / "bin" / "peerway", "doctor"], doctor, environment())
    command = [
        PYTHON,
        "-m",
        "pytest",
        "-v",
        "-rA",  # also what tests that passed have printed, and why tests were skipped
        "-p",
        "no:cacheprovider",
        *TESTS,
        f"--junitxml={OUT / 'amd.xml'}",
    ]
    status = run("pytest", command, tests, environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))
    report = OUT / "report.txt"
    head = (
        f"Peerway on AMD GPUs: {platform.node()}, {platform.platform()}; the tests ended with status {status}"
    )
    parts = [head, doctor.read_text(errors="replace"), tests.read_text(errors="replace")]
    report.write_text("\n\n".join(parts))
    say(report.read_text())
    say(f"amd-test: this report is in {report.relative_to(ROOT)}; please send it to us as an issue")
    return status


if __name__ == "__main__":
    main(amd_test)
