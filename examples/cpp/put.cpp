// Every rank puts a message into its right neighbour's memory and waits for the one from its left.
//
//   c++ -std=c++20 put.cpp $(pkg-config --cflags --libs peerway) -o put && peerway run -n 2 -- ./put
#include <chrono>
#include <cstdio>
#include <cstring>
#include <peerway/peerway.hpp>
#include <string>

using namespace std::chrono_literals;

namespace {
bool exchange() {
  auto team = peerway::Team::from_launcher();
  auto context = peerway::Context(team);
  const int next = (team.rank() + 1) % team.size();
  const int previous = (team.rank() + team.size() - 1) % team.size();

  auto region = context.allocate(peerway::host, 128);  // two halves: what I send, what I receive
  auto arrived = context.signal(previous);             // a counter that the previous rank notifies
  auto target = context.import(team.all_gather(region.key(), 10s)[next]);
  auto their_signal = context.import(team.all_gather(arrived.key(), 10s)[next]);

  char* sent = static_cast<char*>(region.address());
  const char* received = sent + 64;
  std::snprintf(sent, 64, "hello from rank %d", team.rank());
  peerway::check(context.put(target.span(64, 64), region.span(0, 64), peerway::notify(their_signal)));
  peerway::check(arrived.wait(1, 10s));
  const bool correct = received == "hello from rank " + std::to_string(previous);
  std::printf("rank %d received \"%s\"%s\n", team.rank(), received, correct ? "" : ": that is wrong");

  peerway::check(context.flush(peerway::any_rank, 10s));
  team.barrier(10s);  // nobody frees what a neighbour still uses
  return correct;
}
}  // namespace

int main() try { return exchange() ? 0 : 1; } catch (const peerway::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
