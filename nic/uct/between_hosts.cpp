// Open MPI 4 takes windows between hosts by osc/pt2pt, wherever it may, and over UCX that waits for ever in
// flushes and unlocks. Within a host others are right. Only a rank knows whether all are on one host, so the
// choice for several hosts comes in a variable, and is made here, before MPI starts.
#include <cstdlib>
#include <cstring>

namespace {

__attribute__((constructor)) void choose_windows() {
  const char* components = std::getenv("PEERWAY_MPI_BETWEEN_HOSTS");
  const char* all = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (components == nullptr || all == nullptr || here == nullptr || std::strcmp(all, here) == 0) return;
  setenv("OMPI_MCA_osc", components, 1);
  setenv("OMPI_MCA_btl", "self", 1);  // what osc/ucx needs; Open MPI opens all of its own, otherwise
}

}  // namespace
