// Sums of float64 over all ranks, by plans of Peerway.
#include <peerway/peerway.hpp>

#include "rounds.h"

int main() {
  auto team = peerway::Team::from_launcher();
  auto ctx = peerway::Context(team);
  for (const uint64_t bytes : kSizes) {
    const auto from = ctx.allocate(peerway::host, bytes), to = ctx.allocate(peerway::host, bytes);
    auto plan = ctx.all_reduce(peerway::Element::float64, to.all(), from.all(), peerway::Combine::sum);
    measure("peerway", bytes, team.rank() == 0, [&] {
      peerway::check(plan.start());
      peerway::check(plan.finish());
    });
    team.barrier();
  }
}
