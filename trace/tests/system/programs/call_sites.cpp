// Operations whose lines a trace must name.
#include <peerway/peerway.hpp>

namespace {

void halo_exchange(peerway::Context& context, const peerway::Region& region, const peerway::Remote& remote) {
  peerway::check(context.put(remote.span(0, 8), region.span(64, 8)));   // second put here
  peerway::check(context.get(region.span(128, 8), remote.span(0, 8)));  // second get here
}

}  // namespace

int main() {
  auto team = peerway::Team::from_launcher();
  auto context = peerway::Context(team);
  const auto region = context.allocate({PW_HOST, 0}, 4096);
  auto signal = context.signal();
  const auto remote = context.import(region.key());
  const auto own = context.import(signal.key());
  peerway::check(context.put(remote.span(0, 8), region.span(64, 8), peerway::notify(own)));  // put here
  peerway::check(signal.wait(1));                                                            // wait here
  halo_exchange(context, region, remote);
  peerway::check(context.notify(peerway::notify(own, 2)));  // notify here
  peerway::check(context.flush());                          // flush here
  auto stream = context.stream({PW_HOST, 0});
  auto plan = context.plan().put(remote.span(0, 8), region.span(64, 8)).prepare_alone();
  peerway::check(plan.start(stream));   // steps of a start here
  peerway::check(plan.finish(stream));  // steps of a finish here
  peerway::check(stream.wait());
  return 0;
}
