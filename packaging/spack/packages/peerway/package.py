"""Spack's recipe of Peerway: `spack repo add packaging/spack`, then `spack install peerway`.

After a release it gets a line `version("0.1.0", tag="v0.1.0")` above that of main (docs/release.md).
"""

from spack.package import *


class Peerway(CMakePackage):
    """One-sided communication between GPU memories over the fastest path that was measured."""

    homepage = "https://github.com/peerway/peerway"
    git = "https://github.com/peerway/peerway.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("python", default=True, description="The Python package and the command `peerway`")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    conflicts("%gcc@:11", msg="Peerway is C++20: GCC 12 or newer")
    conflicts("platform=darwin", msg="Peerway runs on Linux")

    generator("ninja")

    with when("+python"):
        extends("python@3.11:")
        depends_on("py-pip", type="build")
        depends_on("py-scikit-build-core@0.11:", type="build")
        depends_on("py-nanobind@2.8:", type="build")
        depends_on("py-click@8.1:", type="run")
        depends_on("py-numpy@1.26:", type="run")
        depends_on("py-nvidia-ml-py@12:", type="run")
        depends_on("py-rich@13:", type="run")
        depends_on("py-jinja2@3.1:", type="run")
        depends_on("py-scipy@1.15:", type="run")
        depends_on("py-prometheus-client@0.20:", type="run")
        # What `peerway trace` and `peerway cc` also need Spack does not have; the verbs say what to install.

    @run_after("install", when="+python")
    def install_python_package(self):
        """As `pip install .` does; fmt and nlohmann-json are Spack's, so their wheels are not asked for."""
        pip(
            "install", "--no-deps", "--no-build-isolation", "--no-index", f"--prefix={self.prefix}",
            "./common", ".", "./measure", "./trace", "./xacc", "./jobs",
            "--config-settings=cmake.define.CMAKE_PREFIX_PATH="
            + ";".join(self.spec[name].prefix for name in ("fmt", "nlohmann-json")),
        )  # fmt: skip
