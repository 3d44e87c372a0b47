"""Runs the GPU tests and a short GPU benchmark on a host with NVIDIA GPUs. Logs and records are in
out/gpu.
"""

from __future__ import annotations

import shutil
import subprocess
import time

from steps import BUILD, ROOT, VENV, StepError, environment, main, must, run, say, show_end

OUT = ROOT / "out" / "gpu"
PYTHON = VENV / "bin" / "python"


def gpu_count() -> int:
    """The number of GPUs that the driver shows. Raises StepError if there is none."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise StepError(
            "nvidia-smi is not on the PATH: no NVIDIA driver here, and `make gpu-test` needs a GPU"
        )
    listing = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    count = sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
    if count == 0:
        raise StepError(f"`nvidia-smi -L` shows no GPU: {(listing.stdout + listing.stderr).strip()}")
    return count


def gpu_test() -> int:
    """Build the test programs, run pytest over the GPU tests, then the benchmark."""
    started = time.monotonic()
    count = gpu_count()
    say(f"gpu-test: {count} GPU{'s' if count > 1 else ''}")
    if (ROOT / "library" / "tests" / "gpu" / "programs" / "CMakeLists.txt").exists():
        settings = [f"-DPython_EXECUTABLE={PYTHON}", "-DPEERWAY_GPU_TESTS=ON"]
        must("configure the GPU programs", ["cmake", "-B", BUILD, *settings], OUT / "configure.log")
        must("build the GPU programs", ["cmake", "--build", BUILD], OUT / "build.log")
    log = OUT / "pytest.log"
    # The tests must not load plugins that the system's Python happens to have.
    status = run(
        "pytest",
        [PYTHON, "-m", "pytest", *sorted(ROOT.glob("*/tests/gpu")), f"--junitxml={OUT / 'gpu.xml'}"],
        log,
        environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
    )
    show_end(log, 12 if status == 0 else 80)
    records = OUT / "records.jsonl"
    records.unlink(missing_ok=True)
    bench = [f"{VENV}/bin/peerway", "bench", "--quick", "--device", "cuda", "--out", f"{records}"]
    measured = subprocess.run(bench, cwd=ROOT, env=environment(), check=False).returncode
    seconds = time.monotonic() - started
    say(f"gpu-test: {seconds:.0f} s; tests ended with status {status}, the benchmark with {measured}")
    say(f"  records in {records.relative_to(ROOT)}, logs in {OUT.relative_to(ROOT)}")
    return status or measured


if __name__ == "__main__":
    main(gpu_test)
