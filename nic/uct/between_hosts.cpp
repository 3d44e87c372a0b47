// Open MPI 4 uses osc/pt2pt for windows between hosts if it can, and over UCX that hangs in flushes and
// unlocks. Within a host other components are better. Only a rank knows whether all ranks are on one host, so
// the launcher passes the choice for several hosts in a variable, and this applies it before MPI starts.
#include <cstdlib>
#include <cstring>

namespace {

__attribute__((constructor)) void choose_windows() {
  const char* components = std::getenv("PEERWAY_MPI_BETWEEN_HOSTS");
  const char* all = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (components == nullptr || all == nullptr || here == nullptr || std::strcmp(all, here) == 0) return;
  setenv("OMPI_MCA_osc", components, 1);
  setenv("OMPI_MCA_btl", "self", 1);  // osc/ucx needs it; otherwise Open MPI opens all its transports
}

}  // namespace
