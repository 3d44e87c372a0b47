// stencil2d: the variants of Peerway, for `peerway run`. The MPI baseline is a program of its own, mpi.cpp.
#include <cstdio>
#include <peerway/peerway.hpp>

#include "plans.h"
#include "program.h"
#ifdef STENCIL2D_CUDA
#include "in_kernel.h"
#endif
#include "backend.h"
#include "host_streams.h"

namespace stencil {

namespace {

class TeamGroup : public Group {
 public:
  TeamGroup(peerway::Team& team, peerway::Timeout timeout) : team_(team), timeout_(timeout) {}
  int rank() const override { return team_.rank(); }
  int size() const override { return team_.size(); }
  void barrier() override { team_.barrier(timeout_); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    peerway::check(
        pw_team_all_gather(team_.get(), all, mine, bytes, static_cast<uint64_t>(timeout_.count())));
  }

 private:
  peerway::Team& team_;
  peerway::Timeout timeout_;
};

/// On the GPU that Peerway has bound this rank to.
std::unique_ptr<Device> make_device_of(const Options& options, peerway::Context& context) {
  if (!options.cuda) return std::make_unique<HostStreams>(context.get());
#ifdef STENCIL2D_CUDA
  return make_device(true, context.allocate(peerway::cuda(), 8).device().index);
#else
  return make_device(true, 0);  // which says that there is none
#endif
}

int main_of_rank(int argc, char** argv) {
  std::vector<std::string> variants{"stream", "stream/serial", "host-driven", "host-driven/serial",
                                    "none",   "none/serial"};
#ifdef STENCIL2D_CUDA
  variants.insert(variants.end(),
                  {"stream/branch", "graph", "graph/serial", "graph/branch", "none/branch", "in-kernel"});
#endif
  auto team = peerway::Team::from_launcher();
  Options options;
  if (const auto end = parse_or_say(argc, argv, variants, team.rank(), options)) return *end;

  auto context = peerway::Context(team);
  TeamGroup group(team, std::chrono::nanoseconds(static_cast<int64_t>(1e9 * options.timeout_s)));
  const std::unique_ptr<Device> device = make_device_of(options, context);
  return run(options, group, *device, [&](const Problem& problem) -> std::unique_ptr<Variant> {
#ifdef STENCIL2D_CUDA
    if (problem.variant == "in-kernel") return make_in_kernel(problem, context);
#endif
    return make_planned(problem, context);
  });
}

}  // namespace

}  // namespace stencil

int main(int argc, char** argv) {
  try {
    return stencil::main_of_rank(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
